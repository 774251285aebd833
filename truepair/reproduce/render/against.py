"""One method beside others, data set by data set: means over seeds, and what it is ahead in the same cells."""

from __future__ import annotations

from collections.abc import Sequence, Set

from truepair.reproduce.cells import Record
from truepair.reproduce.records import figure_of
from truepair.reproduce.render.markdown import DIVERGED, cell, of_seeds, percent, seeds_and_dates, table
from truepair.reproduce.render.ranks import chance_of, holm
from truepair.reproduce.render.values import Groups, Place, groups_of, places_of
from truepair.reproduce.tables import Filled, Section

TEST, AUROC = "result.test.rsum", "result.detection.auroc"
KIND = "--noise-kind"
CLEAN = ("infonce", 0.0)
TESTED = 6
"""Differences that there must be for a test: of fewer, all of one sign, Wilcoxon's p is above 0.05."""
LEAST_PAIRED = 3  # seeds for a t-test
SMALLEST = 0.0001  # chance that is told


def against(section: Section, *shown: Filled) -> str:
    """Tables a data set: test rSum and AUROC by noise rate, how far ahead one row is of each other one, and what it
    reaches of others that bound it.

    Options of the section: `row`, the one; `others`; `bounds`, where there are some; `names`, data set → its name in
    the text.
    """
    parts = []
    for data, name in section.options["names"].items():
        for filled in shown:
            names = [section.options["row"], *section.options["others"]]
            bounds = section.options.get("bounds", [])
            records = [
                record
                for record in filled.records
                if record["cell"]["data"] == data and known(record, [*names, *bounds])
            ]
            if any(record["cell"]["method"] == names[0] for record in records):
                titles = {row: filled.table.titles[row] for row in names}
                seeds, dates = seeds_and_dates(records)
                words = records[0]["command"].split()
                noise = f", `--noise-kind {words[words.index(KIND) + 1]}`" if KIND in words else ""
                parts += [
                    f"**{name[0].upper()}{name[1:]}** (`{data}`){noise}, test rSum, {of_seeds(seeds)}, {dates}:",
                    means(titles, records, places_of([run for run in filled.diverged if run["cell"]["data"] == data])),
                    f"What {titles[names[0]]} is ahead, in runs of the same rate and seed:",
                    leads(titles, records),
                ]
                if bounds:
                    limits = {row: filled.table.titles[row] for row in bounds}
                    parts += [
                        f"What {titles[names[0]]} reaches, in percent, in runs of the same seed:",
                        shares(names[0], limits, records),
                    ]
    return "\n\n".join(parts)


def known(record: Record, names: Sequence[str]) -> bool:
    """Whether a record is of one of these rows; the oracle without noise is InfoNCE."""
    method, rate = record["cell"]["method"], record["cell"]["noise"]
    return method in names or (method == CLEAN[0] and rate == 0 and "oracle" in names)


def means(titles: dict[str, str], records: list[Record], stops: Set[Place]) -> str:
    groups, one = groups_of(records), next(iter(titles))
    lines = []
    for rate in sorted({rate for name, rate in groups if name == one}):
        of_rate = {name: groups.get((name, rate), []) for name in titles}
        figures = [
            DIVERGED if not runs and (name, rate) in stops else cell((figure_of(run, TEST) for run in runs), 1)
            for name, runs in of_rate.items()
        ]
        detection = [cell((figure_of(run, AUROC) for run in runs), 4) for runs in list(of_rate.values())[:2]]
        lines.append([percent(rate), str(len(of_rate[one])), *figures, *detection])
    head = [f"AUROC, {title}" for title in list(titles.values())[:2]]
    return table(["noise", "seeds", *titles.values(), *head], lines)


def leads(titles: dict[str, str], records: list[Record]) -> str:
    """A line a rate, its chances by paired t-tests; and one of all rates with noise where there are several: how many
    of the differences are positive, and the chance of them by Wilcoxon's signed-rank test. Two-sided, with Holm's
    correction for all cells of the rates, and for those of the last line.
    """
    groups, (one, *others) = groups_of(records), titles
    found = by_seed(groups)

    def gaps(other: str, rate: float) -> list[float]:
        ours, theirs = found.get((one, rate), {}), found.get((other, rate), {})
        return [ours[seed] - theirs[seed] for seed in sorted(ours.keys() & theirs.keys())]

    rates = sorted({rate for name, rate in groups if name == one})
    cells = {(other, rate): gaps(other, rate) for rate in rates for other in others}
    certain = holm({place: paired(gap) for place, gap in cells.items() if len(gap) >= LEAST_PAIRED})
    lines = [
        [percent(rate), *(signed(cells[other, rate], certain.get((other, rate))) for other in others)] for rate in rates
    ]
    if sum(rate > 0 for rate in rates) > 1:
        everywhere = {other: [gap for rate in rates if rate for gap in gaps(other, rate)] for other in others}
        chances = holm({other: chance_of(gap) for other, gap in everywhere.items() if len(gap) >= TESTED})
        lines.append(["all with noise", *(judged(gap, chances.get(other)) for other, gap in everywhere.items())])
    return table(["noise", *(titles[other] for other in others)], lines)


def shares(one: str, bounds: dict[str, str], records: list[Record]) -> str:
    """A line a rate with noise: percent of the test rSum of each bound there, and of that of InfoNCE without noise."""
    groups = groups_of(records)
    found = by_seed(groups)

    def share(rate: float, of: tuple[str, float]) -> str:
        ours, theirs = found[one, rate], found.get(of, {})
        reached = [100 * ours[seed] / theirs[seed] for seed in sorted(ours.keys() & theirs.keys())]
        return f"{cell(reached, 1)} ({len(reached)})" if reached else "–"

    rates = sorted({rate for name, rate in groups if name == one and rate})
    lines = [[percent(rate), *(share(rate, (row, rate)) for row in bounds), share(rate, CLEAN)] for rate in rates]
    return table(["noise", *(f"of the {title}" for title in bounds.values()), "of InfoNCE without noise"], lines)


def by_seed(groups: Groups) -> dict[tuple[str, float], dict[int, float]]:
    """Test rSum by row and rate, and then by seed."""
    return {
        place: {run["cell"]["seed"]: value for run in runs if (value := figure_of(run, TEST)) is not None}
        for place, runs in groups.items()
    }


def judged(gaps: list[float], chance: float | None) -> str:
    above = f"{sum(gap > 0 for gap in gaps)} of {len(gaps)} above" if gaps else "–"
    return above if chance is None else f"{above}, {certainty(chance)}"


def paired(gaps: list[float]) -> float:
    """The chance of differences so far from 0 by the paired t-test, two-sided."""
    from scipy.stats import ttest_1samp

    if min(gaps) == max(gaps):
        return float(not any(gaps))
    return float(ttest_1samp(gaps, 0.0).pvalue)


def signed(gaps: list[float], chance: float | None) -> str:
    """`+1.0 ± 0.5 (3), p = 0.01`, the number of seeds in brackets."""
    text = cell(gaps, 1)
    if text == "–":
        return text
    shown = f"{'+' if text[0].isdigit() else ''}{text} ({len(gaps)})"
    return shown if chance is None else f"{shown}, {certainty(chance)}"


def certainty(chance: float) -> str:
    return "p < 0.0001" if chance < SMALLEST else f"p = {chance:.4f}"
