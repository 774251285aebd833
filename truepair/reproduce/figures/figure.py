"""A figure's specification, and how it is drawn."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from truepair.errors import InputError
from truepair.reproduce.cells import Places, Record
from truepair.reproduce.figures.drawn import Drawn, Numbers, write_figure
from truepair.reproduce.figures.from_records import against_noise, beliefs_by_epoch, by_epoch, recalls, sweep
from truepair.reproduce.figures.from_runs import corrected_labels, histograms, plane_of_classes, subspaces
from truepair.reproduce.figures.of_disbelieved import ranks_of_disbelieved
from truepair.reproduce.figures.of_formulas import risk_bounds
from truepair.reproduce.figures.of_pairs import agreements, queries
from truepair.reproduce.figures.of_proposals import precision_of_proposals
from truepair.reproduce.figures.of_retrieval import retrieved, retrieved_pairs
from truepair.reproduce.figures.of_soft_targets import soft_targets
from truepair.reproduce.records import finished_and_diverged
from truepair.reproduce.tables import read_specs
from truepair.training.run_folder import RunFolder

OF_RECORDS: dict[str, Callable[..., Drawn]] = {
    draw.__name__: draw for draw in (against_noise, by_epoch, sweep, recalls, beliefs_by_epoch)
}
OF_RUNS: dict[str, Callable[..., Drawn]] = {
    draw.__name__: draw
    for draw in (
        histograms,
        corrected_labels,
        plane_of_classes,
        subspaces,
        agreements,
        queries,
        retrieved,
        retrieved_pairs,
        soft_targets,
        ranks_of_disbelieved,
        precision_of_proposals,
    )
}
OF_FORMULAS: dict[str, Callable[..., Drawn]] = {draw.__name__: draw for draw in (risk_bounds,)}


@dataclass(frozen=True)
class FigureSpec:
    """One `[figures.NAME]` of `figures.toml`.

    Attributes:
        paper: which figure of which paper it is ours of.
        draw: the name of a function in `OF_RECORDS`, `OF_RUNS` or `OF_FORMULAS`.
        table: whose records are drawn.
        where: facts that these have.
        rows: names of rows of the table, separated by spaces, in the order of the legend.
        runs: title → `TABLE/NAME` of a run; one that is missing is trained.
        options: what else the function takes.
    """

    paper: str
    draw: str
    table: str = ""
    where: dict[str, Any] = field(default_factory=dict)
    rows: str = ""
    runs: dict[str, str] = field(default_factory=dict)
    options: dict[str, Any] = field(default_factory=dict)


@cache
def read_figures() -> dict[str, FigureSpec]:
    """All figures by name."""
    text = (Path(__file__).parent / "figures.toml").read_text(encoding="utf-8")
    return {name: FigureSpec(**spec) for name, spec in tomllib.loads(text)["figures"].items()}


def draw(name: str, results: Path, places: Places, out: Path) -> list[Path]:
    """Draw a figure into `out`: NAME.svg, NAME.png and the numbers, NAME.json.

    Raises:
        InputError: there are no records of what it shows, or a run fails.
    """
    spec = read_figures()[name]
    return write_figure(drawn(spec, results, places), out, name, about(name, spec))


def drawn(spec: FigureSpec, results: Path, places: Places) -> Drawn:
    if spec.draw in OF_FORMULAS:
        return OF_FORMULAS[spec.draw](**spec.options)
    return drawn_of_runs(spec, places) if spec.runs else drawn_of_records(spec, results)


def redraw(out: Path, results: Path, tables: Collection[str], *, check: bool = False) -> list[str]:
    """Draw the figures of records of the tables named anew, where they are in `out` and show other numbers; a sentence
    for each that was, or with `check` would be, changed.
    """
    changes = []
    for name, spec in read_figures().items():
        numbers = out / f"{name}.json"
        if not spec.table or not numbers.exists() or not {spec.table, *read_specs()[0][spec.table].reuses} & {*tables}:
            continue
        now = drawn_of_records(spec, results)
        if json.loads(numbers.read_text(encoding="utf-8")) != now.told(about(name, spec)):
            if not check:
                write_figure(now, out, name, about(name, spec))
            changes.append(f"{numbers.with_suffix('.svg')}: it shows other records")
    return changes


def drawn_of_runs(spec: FigureSpec, places: Places) -> Drawn:
    runs = {title: trained(run, places) for title, run in spec.runs.items()}
    options = {**spec.options}
    if "source" in options:
        options["source"] = places.source(options["source"])
    return OF_RUNS[spec.draw](runs, **options)


def drawn_of_records(spec: FigureSpec, results: Path) -> Drawn:
    titles = read_specs()[0][spec.table].titles
    rows = {row: titles[row] for row in spec.rows.split()}
    return OF_RECORDS[spec.draw](chosen(spec, rows, results), rows, **spec.options)


def about(name: str, spec: FigureSpec) -> Numbers:
    """What the numbers of a figure are of."""
    of: Numbers = {"runs": spec.runs} if spec.runs else {}
    if spec.table:
        of = {"table": spec.table, "where": spec.where, "rows": spec.rows.split()}
    return {"figure": name, "paper": spec.paper, "command": f"python -m truepair.reproduce figure {name}", **of}


def chosen(spec: FigureSpec, rows: Mapping[str, str], results: Path) -> list[Record]:
    """The records that a figure is of, in the order of its rows; those count that its table takes from others."""
    records, _ = finished_and_diverged(read_specs()[0][spec.table].records(results))
    found = [
        record for row in rows for record in records if {**record["cell"], "method": row} == record["cell"] | spec.where
    ]
    if not found:
        raise InputError(
            f"{results / spec.table}.jsonl has no record of what the figure shows; run "
            f"`python -m truepair.reproduce run {spec.table}` first"
        )
    return found


def trained(run: str, places: Places) -> RunFolder:
    """The run of a cell, `TABLE/NAME`, trained where it is missing."""
    table, _, name = run.partition("/")
    cell = next(cell for cell in read_specs()[0][table].cells if cell.name == name)
    cell.measure(places)
    return RunFolder(places.runs / run)
