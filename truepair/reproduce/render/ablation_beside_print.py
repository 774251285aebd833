"""The ablation of a paper, run here: each variant's printed rSum or mAP beside ours, as far from the whole method."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from truepair.reproduce.cells import Record
from truepair.reproduce.published.printed import PrintedRow, printed_table
from truepair.reproduce.records import figure_of, seconds_of
from truepair.reproduce.render.ablation import signed
from truepair.reproduce.render.markdown import cell, of_seeds, percent, seeds_and_dates, table
from truepair.reproduce.tables import Filled, Section

AUROC = "result.detection.auroc"


@dataclass(frozen=True)
class Measure:
    """What is compared.

    Attributes:
        name: as the titles have it.
        digits: after the point.
        printed: figures of a printed row, of which it is the mean.
        ours: the figure of a record.
    """

    name: str
    digits: int
    printed: tuple[str, ...]
    ours: str

    def of_print(self, row: PrintedRow) -> float:
        return statistics.fmean(row.figures[name] for name in self.printed)

    @property
    def titles(self) -> tuple[str, ...]:
        return ("", f"printed {self.name}", "of the whole", "seeds", f"{self.name} here", "of the whole", "AUROC")


MEASURES = {
    "rsum": Measure("rSum", 1, ("rsum",), "result.test.rsum"),
    "map": Measure("mAP", 3, ("i2t_map", "t2i_map"), "result.test.map"),
}


def ablation_beside_print(section: Section, shown: Filled) -> str:
    """A table for each noise rate, in the order of the variants; differences from the whole method in percent of it.

    Those of ours are of runs of the same seed. Options of the section: `whole`, the row of the whole method; `printed`,
    the name of the paper's table; `variants`, row → what the paper calls it, "" for what it has not; `measure`, a key
    of `MEASURES` [rsum]; `data`, the one data set to show, where the table has several.
    """
    source = printed_table(section.options["printed"])
    data = section.options.get("data")
    found = [
        record
        for record in shown.records
        if record["cell"]["method"] in section.options["variants"] and data in (None, record["cell"]["data"])
    ]
    measure = MEASURES[section.options.get("measure", "rsum")]
    parts = []
    for rate in sorted({record["cell"]["noise"] for record in found}):
        records = [record for record in found if record["cell"]["noise"] == rate]
        printed = {row.method: row for row in source.rows if row.noise == rate}
        parts.append(f"**{percent(rate)} noise**, {told(records)}:")
        parts.append(table(measure.titles, rows_of(section, shown, records, printed, measure)))
    return "\n\n".join(parts)


def told(records: Sequence[Record]) -> str:
    seeds, dates = seeds_and_dates(records)
    hours = sum(seconds_of(record) for record in records) / 3600
    data = records[0]["cell"]["data"]
    return f"`{data}`, {of_seeds(seeds)}, {dates}, {hours:.1f} hours of training on one CPU thread"


def rows_of(
    section: Section,
    shown: Filled,
    records: Sequence[Record],
    printed: Mapping[str, PrintedRow],
    measure: Measure,
) -> list[list[str]]:
    whole, variants = section.options["whole"], section.options["variants"]
    found: dict[str, dict[int, Record]] = {name: {} for name in variants}
    for record in records:
        found[record["cell"]["method"]][record["cell"]["seed"]] = record
    full = printed.get(variants[whole])
    lines = []
    for name, runs in found.items():
        if not runs:
            continue
        row, there = printed.get(variants[name]), ["–", "–"]
        if row is not None and full is not None:
            apart = _percent_of([measure.of_print(row)], [measure.of_print(full)])
            there = [f"{measure.of_print(row):.{measure.digits}f}", apart]
        both = sorted(runs.keys() & found[whole].keys())
        ours, wholes = ([figure_of(found[each][seed], measure.ours) for seed in both] for each in (name, whole))
        here = [
            cell((figure_of(run, measure.ours) for run in runs.values()), measure.digits),
            _percent_of(ours, wholes),
        ]
        if name == whole:
            there[1] = here[1] = ""
        auroc = cell((figure_of(run, AUROC) for run in runs.values()), 4)
        lines.append([shown.table.titles[name], *there, str(len(runs)), *here, auroc])
    return lines


def _percent_of(values: Sequence[float | None], wholes: Sequence[float | None]) -> str:
    """How far above or below, in percent of the whole: mean ± standard deviation."""
    pairs = ((value, whole) for value, whole in zip(values, wholes, strict=True))
    text = cell((100 * (value / whole - 1) for value, whole in pairs if value is not None and whole), 1)
    return text if text == "–" else f"{signed(text)} %"
