"""The tables of `docs/results/audit.md`: the verdict beside other scores, and estimates beside the truth."""

from __future__ import annotations

import statistics
from typing import Any

from truepair.reproduce.cells import Record
from truepair.reproduce.records import seconds_of
from truepair.reproduce.render.against import certainty, paired
from truepair.reproduce.render.markdown import cell, of_seeds, percent, seeds_and_dates, table
from truepair.reproduce.render.values import groups_of, value_table
from truepair.reproduce.tables import Filled, Section

Place = tuple[str, str, float]
"""Data set, kind of noise, nominal rate."""
Places = dict[Place, list[Record]]
Titles = dict[str, str]
Measure = dict[str, Any]
"""A figure of a score: figure, title, digits, best (`max` or `min`), and clean where it needs no mismatched pair."""

CLEAN = "none"
KINDS = {
    "random": "random noise",
    "hard": "hard noise (captions move within a class)",
    "near": "near noise (captions of the most similar other image)",
}
ESTIMATING = {"similarity": "plain cosine", "loss mixture": "mixture of losses"}
NEAR_WITH_ONE_SEED = 0.002
POINTS = 3.0


def figures(records: list[Record], name: str, key: str) -> list[float]:
    """A figure of one score in every record that has it."""
    found = [record["rows"].get(name, {}).get(key) for record in records]
    return [float(value) for value in found if value is not None]


def decided(records: list[Record]) -> list[Record]:
    """Records with a verdict; the others are of scores alone."""
    return [record for record in records if "verdict" in record["rows"]]


def places_of(audits: Filled) -> Places:
    """Records with a verdict, of a data set, kind and rate, in the table's order; without noise there is one kind."""
    sets, kinds = [*dict.fromkeys(str(run.facts["data"]) for run in audits.table.cells)], [CLEAN, *KINDS]
    places: Places = {}
    for record in decided(audits.records):
        facts = record["cell"]
        place = facts["data"], kind_of(record), facts["noise"]
        places.setdefault(place, []).append(record)
    return dict(sorted(places.items(), key=lambda each: (sets.index(each[0][0]), kinds.index(each[0][1]), each[0][2])))


def kind_of(record: Record) -> str:
    return str(record["cell"]["kind"]) if record["cell"]["noise"] else CLEAN


def named(place: Place) -> str:
    data, kind, rate = place
    return f"`{data}` without noise" if kind == CLEAN else f"`{data}` {kind} {percent(rate)}"


def audits(section: Section, shown: Filled) -> str:
    """All figures of the audits, with the picture of `audit_picture.py`."""
    places, titles = places_of(shown), shown.table.titles
    parts = [provenance(decided(shown.records)), "**The verdict against all other rows:**"]
    parts += [standing_table(places, titles, section.parts), *aims(places)]
    parts += ["**Estimated against true noise rate, in percent:**", estimate_table(places)]
    parts.append("![Estimated against true noise rate, for each data set and kind of noise]")
    parts[-1] += f"({section.options['picture']})"
    parts += ["**Flagged where no pair is mismatched, in percent:**", clean_table(places, titles)]
    sets = dict.fromkeys((str(cell.facts["data"]), str(cell.facts["kind"])) for cell in shown.table.cells)
    measured = {(record["cell"]["data"], kind_of(record)) for record in shown.records}
    for data, kind in (each for each in sets if each in measured):
        for measure in section.parts:
            kinds = (kind, CLEAN) if measure.get("clean") else (kind,)
            here = [run for run in shown.records if run["cell"]["data"] == data and kind_of(run) in kinds]
            less = ", smaller is better" if measure["best"] == "min" else ""
            parts.append(f"**`{data}`, {KINDS[kind]}, {measure['title']}{less}:**")
            scores = [  # an audit as a record for each of its scores
                {"cell": {**record["cell"], "method": name}, "figures": found}
                for record in here
                for name, found in record["rows"].items()
            ]
            path = f"figures.{measure['figure']}"
            parts.append(value_table(titles, groups_of(scores), path, measure["digits"], best=measure["best"]))
    return "\n\n".join(parts)


def provenance(records: list[Record]) -> str:
    """Number of audits, seeds, dates and cost, read from the records, and how to read the tables."""
    seeds, dates = seeds_and_dates(records)
    hours = sum(record["seconds"] for record in records) / 3600
    example = next((record for record in records if record["cell"]["noise"] == 0.4), records[0])
    return (
        f"{len(records)} audits, seeds {seeds}, {dates}, {hours:.1f} hours of auditing on one CPU "
        "thread each (what the other rows need beside it is not counted). One of them: "
        f"`{example['command']}`. Figures are means ± standard deviations over seeds, without ± where there is one "
        "seed. The best of a column is bold; – is not measured. Every row but the verdict is one score, flagged and "
        "calibrated by a mixture of two normal distributions of it; where these find no two groups, nothing is flagged."
    )


def standing_table(places: Places, titles: Titles, measures: list[Measure]) -> str:
    """In how many cells the verdict is first, or as good as first, and where it falls behind most."""
    rows = []
    for measure in measures:
        found = {
            place: behind_first(records, titles, measure)
            for place, records in places.items()
            if (measure.get("clean") or place[1] != CLEAN) and figures(records, "verdict", measure["figure"])
        }
        if found:
            first = sum(gap <= 0 for gap, _, _ in found.values())
            near = sum(is_near for _, is_near, _ in found.values())
            worst = max(found, key=lambda place: found[place][0])
            gap, _, ahead = found[worst]
            text = f"{gap:.{measure['digits']}f}, {named(worst)}: {titles[ahead]}" if gap > 0 else "–"
            rows.append([measure["title"], str(len(found)), str(first), str(near), text])
    return table(["", "cells", "first", "first or near", "farthest behind"], rows)


def behind_first(records: list[Record], titles: Titles, measure: Measure) -> tuple[float, bool, str]:
    """How far the verdict is behind the best other row in the table (≤ 0: first), whether it is near, and that row.

    Near is within one standard deviation of the best other row over seeds, with one seed within 0.002.
    """
    sign, digits = -1 if measure["best"] == "min" else 1, measure["digits"]
    values = {name: found for name in titles if (found := figures(records, name, measure["figure"]))}
    means = {name: statistics.fmean(found) for name, found in values.items()}
    ours = means.pop("verdict")
    if not means:
        return 0.0, True, "verdict"
    ahead = max(means, key=lambda name: sign * means[name])
    gap = round(sign * (float(f"{means[ahead]:.{digits}f}") - float(f"{ours:.{digits}f}")), digits)
    allowed = statistics.stdev(values[ahead]) if len(values[ahead]) > 1 else NEAR_WITH_ONE_SEED
    return gap, gap <= 0 or sign * (means[ahead] - ours) <= allowed, ahead


def aims(places: Places) -> list[str]:
    """What the first table means, and how near the estimates come."""
    gaps = {place: off(records) for place, records in places.items()}
    farthest = max(gaps, key=lambda place: gaps[place])
    close = sum(gap <= POINTS for gap in gaps.values())
    held = [inside(record) for records in places.values() for record in records]
    return [
        "A cell is a data set, a kind of noise and a rate. Near first is within one standard deviation over seeds of "
        f"the best other row; with one seed, within {NEAR_WITH_ONE_SEED}.",
        f"The estimated noise rate is within {POINTS:.0f} points of the truth in {close} of {len(gaps)} cells, "
        f"farthest off by {gaps[farthest]:.1f} points ({named(farthest)}). Its 95 % interval holds the truth in "
        f"{sum(held)} of {len(held)} audits.",
    ]


def estimate_table(places: Places) -> str:
    """A row a cell: the truth, the verdict's estimate and interval, and what mixtures of one score say."""
    titles = ("verdict", "95 % interval", "holds the truth", "two groups", "flagged", *ESTIMATING.values())
    rows = []
    for place, records in places.items():
        low, high, estimate, flagged = (
            figures(records, "verdict", key) for key in ("estimate_low", "estimate_high", "estimate", "flagged")
        )
        interval = " – ".join(percents([statistics.fmean(end)]) for end in (low, high))
        row = [named(place), percents([record["mismatch_rate"] for record in records]), percents(estimate), interval]
        row.append(count([inside(record) for record in records]))
        row.append(count([record["rows"]["verdict"]["two_groups"] for record in records]))
        rows.append([*row, *map(percents, (flagged, *(figures(records, name, "estimate") for name in ESTIMATING)))])
    return table(["noise", "truth", *titles], rows)


def clean_table(places: Places, titles: Titles) -> str:
    """A row a score, a column a data set: the share of clean data that is flagged."""
    clean = {data: records for (data, kind, _), records in places.items() if kind == CLEAN}
    rows = [
        [title, *(percents(figures(records, name, "flagged"), 2) for records in clean.values())]
        for name, title in titles.items()
    ]
    return table(["", *(f"`{data}`" for data in clean)], rows)


def off(records: list[Record]) -> float:
    """Distance of the mean estimate from the mean truth, in points."""
    truth = statistics.fmean(record["mismatch_rate"] for record in records)
    return abs(100 * (statistics.fmean(figures(records, "verdict", "estimate")) - truth))


def inside(record: Record) -> bool:
    verdict = record["rows"]["verdict"]
    return bool(verdict["estimate_low"] <= record["mismatch_rate"] <= verdict["estimate_high"])


def percents(shares: list[float], digits: int = 1) -> str:
    return cell([100 * share for share in shares], digits)


def count(answers: list[bool]) -> str:
    return f"{sum(answers)} of {len(answers)}" if len(answers) > 1 else "yes" if answers[0] else "no"


def embedding_audits(section: Section, shown: Filled) -> str:
    """A row a kind and rate of noise: truth, estimates with their intervals, and how well pairs are ranked."""
    first, (seeds, dates) = shown.records[0], seeds_and_dates(shown.records)
    found: dict[tuple[str, float], list[Record]] = {}
    for record in shown.records:
        for audit in record["audits"]:
            found.setdefault((audit["kind"] if audit["noise"] else CLEAN, audit["noise"]), []).append(audit)
    data, rows, held = first["cell"]["data"], [], []
    for (kind, rate), audits in found.items():
        held += [audit["estimate"][1] <= audit["mismatch_rate"] <= audit["estimate"][2] for audit in audits]
        row = [named((data, kind, rate)), percents([audit["mismatch_rate"] for audit in audits])]
        for name in ("estimate", "random", "near"):
            value, *ends = ([audit[name][i] for audit in audits] for i in range(3))
            row.append(f"{percents(value)} ({' – '.join(percents([statistics.fmean(end)]) for end in ends)})")
        row.append(percents([audit["flagged"] for audit in audits]))
        row += [cell((audit[name] for audit in audits), 3) for name in ("auroc", "auroc_similarity")]
        rows.append([*row, cell((audit["calibration_error"] for audit in audits), 3)])
    titles = ["estimate", "random", "near", "flagged", "AUROC", "of the plain similarity", "calibration error"]
    said = (
        f"{first['pairs']:,} pairs, seeds {seeds} (of the model and of the noise), {dates}: "
        f"`{first['command']}`. Shares in percent, means ± standard deviations over seeds, with the mean ends of their "
        f"95 % intervals; that of the estimate holds the truth in {sum(held)} of {len(held)} audits."
    )
    return said + "\n\n" + table(["noise", "truth", *titles], rows)


def audits_by_method(section: Section, shown: Filled) -> str:
    """A row a data set, rate and method: how well pairs are ranked, the estimate, and what training took; and, where
    there are two methods, what the second one changes in audits of the same seed.
    """
    titles, names = section.options["rows"], section.options["names"]
    found: dict[tuple[str, float, str], dict[int, Record]] = {}
    for record in shown.records:
        facts = record["cell"]
        found.setdefault((facts["data"], facts["noise"], facts["method"]), {})[facts["seed"]] = record
    rows, said = [], []
    for data, rate in dict.fromkeys(place[:2] for place in found):
        by_method = {method: found[data, rate, method] for method in titles if (data, rate, method) in found}
        for method, records in by_method.items():
            audits = [*records.values()]
            scores = [[audit["scores"][key] for audit in audits] for key in ("auroc", "average_precision")]
            row = [f"{names[data]}, {percent(rate)}", titles[method], str(len(audits)), *(cell(of, 4) for of in scores)]
            row.append(cell([audit["scores"]["calibration_error"] for audit in audits], 3))
            row.append(percents([audit["random"]["share"] for audit in audits if audit["random"]]))
            row.append(percents([audit["noise_rate"] for audit in audits]))
            inside = [audit["noise_rate_low"] <= audit["mismatch_rate"] <= audit["noise_rate_high"] for audit in audits]
            rows.append([*row, count(inside), cell([seconds_of(audit) for audit in audits], 0)])
        if len(by_method) == 2:
            said.append(f"{names[data]}, {percent(rate)}: {gained(*by_method.values())}")
    seeds, dates = seeds_and_dates(shown.records)
    head = ["", "models", "seeds", "AUROC", "average precision", "calibration error", "random mismatches, %"]
    head += ["all mismatches, %", "95 % interval holds the truth", "processor time of training, s"]
    command = shown.records[0]["command"]
    parts = [f"{of_seeds(seeds).capitalize()}, {dates}; one of them: `{command}`.", table(head, rows)]
    if said:
        first, second = titles.values()
        parts.append(f"{second} beside {first}, in audits of the same seed: " + "; ".join(said) + ".")
    return "\n\n".join(parts)


def gained(before: dict[int, Record], after: dict[int, Record]) -> str:
    """AUROC gained, with the p of a paired t-test where there are two seeds or more, and how many times as long."""
    both = sorted({*before} & {*after})
    gaps = [after[seed]["scores"]["auroc"] - before[seed]["scores"]["auroc"] for seed in both]
    longer = [seconds_of(after[seed]) / seconds_of(before[seed]) for seed in both]
    if not both:
        return "no seed has both"
    chance = f", {certainty(paired(gaps))}" if len(gaps) > 1 else ""
    return f"AUROC {'+' if statistics.fmean(gaps) >= 0 else ''}{cell(gaps, 4)}{chance}, {cell(longer, 1)} times as long"


def retraining(section: Section, shown: Filled) -> str:
    """Pairs and test rSum of a model trained on what an audit keeps, beside the truly matched pairs and all of them."""
    rows = []
    for key, title in section.options["rows"]:
        found = [record[key] for record in shown.records]
        pairs = " / ".join(f"{figures['pairs']:,}" for figures in found)
        rows.append([title, pairs, cell((figures["test"]["rsum"] for figures in found), 1)])
    return table(["trained on", "pairs", "test rSum"], rows)
