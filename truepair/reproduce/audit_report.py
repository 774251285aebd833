"""Turn the records of the audit grid into the tables and the picture of `docs/audit.md`.

python -m truepair.reproduce.audit_report
"""

from __future__ import annotations

import argparse
import statistics
import sys
from dataclasses import dataclass
from pathlib import Path

from truepair.errors import InputError
from truepair.files import write_bytes_atomically
from truepair.reproduce.audit_grid import RATES
from truepair.reproduce.audit_groups import CLEAN, ESTIMATING, ROWS, Groups, figures, group, named
from truepair.reproduce.label_report import row
from truepair.reproduce.noise_report import Record, cell, read_records, replace_section

HOW_KINDS_ARE_MADE = {"random": "random noise", "hard": "hard noise (captions move within a class)"}
NEAR_WITH_ONE_SEED = 0.002
POINTS = 3.0


@dataclass(frozen=True)
class Measure:
    """A figure of the records, and how it is shown.

    Attributes:
        clean: whether it says something where no pair is mismatched.
    """

    key: str
    title: str
    digits: int
    smaller_is_better: bool = False
    clean: bool = False

    def of(self, records: list[Record], name: str) -> list[float]:
        return figures(records, name, self.key)

    def shown(self, records: list[Record], name: str) -> float:
        """The mean as it stands in the table."""
        return float(f"{statistics.fmean(self.of(records, name)):.{self.digits}f}")

    def best(self, values: list[float]) -> float:
        return min(values) if self.smaller_is_better else max(values)


MEASURES = (
    Measure("auroc", "AUROC", 4),
    Measure("average_precision", "average precision", 4),
    Measure("f1", "F1 of the flagged pairs", 3),
    Measure("calibration_error", "expected calibration error", 3, smaller_is_better=True, clean=True),
)


def audit_report(records: list[Record], picture: str | None = None) -> str:
    """The section of docs/audit.md. `picture`: the file name of what `estimate_picture` draws."""
    groups = group(records)
    parts = [provenance(records), "**The verdict against all other rows:**", standing_table(groups), *aims(groups)]
    parts += ["**Estimated against true noise rate, in percent:**", estimate_table(groups)]
    if picture:
        parts.append(f"![Estimated against true noise rate, for each data set and kind of noise]({picture})")
    if any(kind == CLEAN for _, kind, _ in groups):
        parts += ["**Flagged where no pair is mismatched, in percent:**", clean_table(groups)]
    for data, kind in dict.fromkeys((data, kind) for data, kind, _ in groups if kind != CLEAN):
        for measure in MEASURES:
            less = ", smaller is better" if measure.smaller_is_better else ""
            parts.append(f"**`{data}`, {HOW_KINDS_ARE_MADE[kind]}, {measure.title}{less}:**")
            parts.append(measure_table(groups, data, kind, measure))
    return "\n\n".join(parts)


def provenance(records: list[Record]) -> str:
    """Number of audits, seeds, dates and cost, read from the records, and how to read the tables."""
    seeds = sorted({record["cell"]["seed"] for record in records})
    dates = sorted({record["date"] for record in records})
    hours = sum(record["seconds"] for record in records) / 3600
    when = dates[0] if len(dates) == 1 else f"{dates[0]} to {dates[-1]}"
    example = next((record for record in records if record["cell"]["noise"] == 0.4), records[0])
    return (
        f"{len(records)} audits, seeds {', '.join(map(str, seeds))}, {when}, {hours:.1f} hours of auditing on one CPU "
        "thread each (what the other rows need beside it is not counted). One of them: "
        f"`{example['command']}`. Figures are means ± standard deviations over seeds, without ± where there is one "
        "seed. The best of a column is bold; – is not measured. Every row but the verdict is one score, flagged and "
        "calibrated by a mixture of two normal distributions of it; where these find no two groups, nothing is flagged."
    )


# --- The verdict beside the other rows ----------------------------------------------------------------------------


def measure_table(groups: Groups, data: str, kind: str, measure: Measure) -> str:
    """A row a score, a column a noise rate, the best of each column bold."""
    rates = sorted({*RATES, *(rate for at, of, rate in groups if (at, of) == (data, kind))})
    rates = [rate for rate in rates if rate or measure.clean]
    columns = [measure_column(groups.get((data, kind if rate else CLEAN, rate), []), measure) for rate in rates]
    lines = head("", *(f"{100 * rate:.0f} %" for rate in rates))
    for name, title in ROWS.items():
        cells = [column.get(name, "–") for column in columns]
        if any(text != "–" for text in cells):
            lines.append(row(title, cells))
    return "\n".join(lines)


def measure_column(records: list[Record], measure: Measure) -> dict[str, str]:
    shown = {name: measure.shown(records, name) for name in ROWS if measure.of(records, name)}
    texts = {name: cell(measure.of(records, name), measure.digits) for name in shown}
    best = measure.best([*shown.values()]) if shown else None
    return {name: f"**{text}**" if shown[name] == best else text for name, text in texts.items()}


def standing_table(groups: Groups) -> str:
    """In how many cells the verdict is first, or as good as first, and where it falls behind most."""
    lines = head("", "cells", "first", "first or near", "farthest behind")
    for measure in MEASURES:
        found = {
            place: behind_first(records, measure)
            for place, records in groups.items()
            if (measure.clean or place[1] != CLEAN) and measure.of(records, "verdict")
        }
        if not found:
            continue
        first = sum(gap <= 0 for gap, _, _ in found.values())
        near = sum(is_near for _, is_near, _ in found.values())
        worst = max(found, key=lambda place: found[place][0])
        gap, _, ahead = found[worst]
        text = f"{gap:.{measure.digits}f}, {named(worst)}: {ROWS[ahead]}" if gap > 0 else "–"
        lines.append(row(measure.title, [str(len(found)), str(first), str(near), text]))
    return "\n".join(lines)


def behind_first(records: list[Record], measure: Measure) -> tuple[float, bool, str]:
    """How far the verdict is behind the best other row in the table (≤ 0: first), whether it is near, and that row.

    Near is within one standard deviation of the best other row over seeds, with one seed within 0.002.
    """
    sign = -1 if measure.smaller_is_better else 1
    means = {name: statistics.fmean(measure.of(records, name)) for name in ROWS if measure.of(records, name)}
    ours = means.pop("verdict")
    if not means:
        return 0.0, True, "verdict"
    ahead = max(means, key=lambda name: sign * means[name])
    gap = round(sign * (measure.shown(records, ahead) - measure.shown(records, "verdict")), measure.digits)
    best = measure.of(records, ahead)
    allowed = statistics.stdev(best) if len(best) > 1 else NEAR_WITH_ONE_SEED
    return gap, gap <= 0 or sign * (means[ahead] - ours) <= allowed, ahead


# --- How many are mismatched --------------------------------------------------------------------------------------


def aims(groups: Groups) -> list[str]:
    """What the first table means, and how near the estimates come."""
    gaps = {place: off(records) for place, records in groups.items()}
    farthest = max(gaps, key=lambda place: gaps[place])
    close = sum(gap <= POINTS for gap in gaps.values())
    held = [inside(record) for records in groups.values() for record in records]
    return [
        "A cell is a data set, a kind of noise and a rate. Near first is within one standard deviation over seeds of "
        f"the best other row; with one seed, within {NEAR_WITH_ONE_SEED}.",
        f"The estimated noise rate is within {POINTS:.0f} points of the truth in {close} of {len(gaps)} cells, "
        f"farthest off by {gaps[farthest]:.1f} points ({named(farthest)}). Its 95 % interval holds the truth in "
        f"{sum(held)} of {len(held)} audits.",
    ]


def estimate_table(groups: Groups) -> str:
    """A row a cell: the truth, the verdict's estimate and interval, and what mixtures of one score say."""
    titles = ("verdict", "95 % interval", "holds the truth", "two groups", "flagged", *ESTIMATING.values())
    lines = head("noise", "truth", *titles)
    for place, records in groups.items():
        ends = [statistics.fmean(figures(records, "verdict", f"estimate_{end}")) for end in ("low", "high")]
        cells = [
            percent([record["mismatch_rate"] for record in records]),
            percent(figures(records, "verdict", "estimate")),
            " – ".join(percent([end]) for end in ends),
            count([inside(record) for record in records]),
            count([record["rows"]["verdict"]["two_groups"] for record in records]),
            percent(figures(records, "verdict", "flagged")),
            *(percent(figures(records, name, "estimate")) for name in ESTIMATING),
        ]
        lines.append(row(named(place), cells))
    return "\n".join(lines)


def clean_table(groups: Groups) -> str:
    """A row a score, a column a data set: the share of clean data that is flagged."""
    clean = {data: records for (data, kind, _), records in groups.items() if kind == CLEAN}
    lines = head("", *(f"`{data}`" for data in clean))
    for name, title in ROWS.items():
        lines.append(row(title, [percent(figures(records, name, "flagged"), 2) for records in clean.values()]))
    return "\n".join(lines)


def off(records: list[Record]) -> float:
    """Distance of the mean estimate from the mean truth, in points."""
    truth = statistics.fmean(record["mismatch_rate"] for record in records)
    return abs(100 * (statistics.fmean(figures(records, "verdict", "estimate")) - truth))


def inside(record: Record) -> bool:
    verdict = record["rows"]["verdict"]
    return bool(verdict["estimate_low"] <= record["mismatch_rate"] <= verdict["estimate_high"])


def percent(shares: list[float], digits: int = 1) -> str:
    return cell([100 * share for share in shares], digits)


def count(answers: list[bool]) -> str:
    if len(answers) == 1:
        return "yes" if answers[0] else "no"
    return f"{sum(answers)} of {len(answers)}"


def head(*titles: str) -> list[str]:
    return ["| " + " | ".join(titles) + " |", "|---" * len(titles) + "|"]


# --- In place -------------------------------------------------------------------------------------------------------


def write_report(results: Path, docs: Path) -> int:
    """Put tables and picture in their places; returns the number of audits shown.

    Raises:
        InputError: there are no records, or the file is missing or lacks its markers.
    """
    if not any(results.glob("*.json")):
        raise InputError(f"{results} holds no records; run python -m truepair.reproduce.audit_grid first")
    if not docs.exists():
        raise InputError(
            f"{docs} does not exist; make it, with the lines <!-- audit table: begin --> and <!-- audit table: end -->"
        )
    from truepair.pages.run.canvas import png_of
    from truepair.reproduce.audit_picture import estimate_picture

    records = read_records(results)
    picture = docs.with_name(f"{docs.stem}-estimate.png")
    replace_section(docs, "audit table", audit_report(records, picture.name))
    write_bytes_atomically(picture, png_of(estimate_picture(group(records))))
    return len(records)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--results", type=Path, default=Path("results/audit"), help="JSON records [results/audit]")
    parser.add_argument("--docs", type=Path, default=Path("docs/audit.md"), help="file with markers [docs/audit.md]")
    options = parser.parse_args()
    try:
        audits = write_report(options.results, options.docs)
    except InputError as error:
        sys.exit(str(error))
    print(f"{options.docs}: tables of {audits} audits")


if __name__ == "__main__":
    main()
