"""The tables of the documentation, read from `specs/*.toml`.

A file holds rows (name → title, and method with options), settings (name → options of training), tables (grids of
sources × rows × noise rates × seeds, each of a kind of cells), and the sections of the documentation that show them.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from truepair.reproduce.audits import audit_cells, cells_by_method, retraining_cells
from truepair.reproduce.cells import Cell, Context, Record
from truepair.reproduce.embedding_audits import embedding_cells
from truepair.reproduce.held_out import held_out_cells
from truepair.reproduce.limits import limit_cells
from truepair.reproduce.records import read_records
from truepair.reproduce.reviews import review_cells
from truepair.reproduce.training import analysis_cells, training_cells

KINDS: dict[str, Callable[..., Iterator[Cell]]] = {
    "training": training_cells,
    "analysis": analysis_cells,
    "audit": audit_cells,
    "audit by method": cells_by_method,
    "retraining": retraining_cells,
    "embedding audits": embedding_cells,
    "reviews": review_cells,
    "limits": limit_cells,
    "held out": held_out_cells,
}


@dataclass(frozen=True)
class Table:
    """A table, kept in `results/NAME.jsonl`: its cells, the first seed of everything first, and its rows' titles.

    Attributes:
        reuses: tables whose records count as its own where the command is the same.
    """

    name: str
    about: str
    cells: list[Cell]
    titles: dict[str, str]
    reuses: tuple[str, ...] = ()

    def records(self, results: Path) -> list[Record]:
        """What is there of its cells, by name: its own records, and those of the tables that it reuses."""
        found = {record["name"]: record for record in read_records(results / f"{self.name}.jsonl")}
        others = [record for name in self.reuses for record in read_records(results / f"{name}.jsonl")]
        by_command = {record["command"]: record for record in others}
        for cell in self.cells:
            if cell.name not in found and cell.command in by_command:
                found[cell.name] = {**by_command[cell.command], "name": cell.name, "cell": cell.facts}
        return [found[name] for name in sorted(found)]


class Filled(NamedTuple):
    """A table with the records it has, by name: of finished runs, and of those that diverged."""

    table: Table
    records: list[Record]
    diverged: Sequence[Record] = ()


@dataclass(frozen=True)
class Section:
    """What stands between the markers of a file: a function of `render/`, or `parts`, one value table each.

    Attributes:
        tables: whose records are shown.
        head: parts of all records.
        per: key of a cell; `parts` repeat for each of its values.
        options: what else the function reads.
        awaits_runs: says that there is no run yet where the (one) table has none; of others that is an error.
    """

    file: str
    marker: str
    tables: list[str]
    render: str
    head: list[dict[str, Any]] = field(default_factory=list)
    per: str = ""
    parts: list[dict[str, Any]] = field(default_factory=list)
    options: dict[str, Any] = field(default_factory=dict)
    awaits_runs: bool = False


@cache
def read_specs() -> tuple[dict[str, Table], list[Section]]:
    """All tables by name, and all sections in the order of the files."""
    tables, sections = {}, []
    known: dict[str, Cell] = {}
    for path in sorted((Path(__file__).parent / "specs").glob("*.toml")):
        spec = tomllib.loads(path.read_text(encoding="utf-8"))
        rows = spec.get("rows", {})
        titles, words = ({name: row[i] for name, row in rows.items() if len(row) > i} for i in (0, 1))
        for name, table in spec["tables"].items():
            grids = [{**table.get("each", {}), **grid} for grid in table["grids"]]
            for grid in grids:
                grid |= {"settings": spec["settings"][grid["settings"]]} if "settings" in grid else {}
            at = Context(name, words, known)
            cells = [cell for grid in grids for cell in KINDS[grid.pop("kind", "training")](at, **grid)]
            known |= {f"{name}/{cell.name}": cell for cell in cells}
            in_order = sorted(cells, key=lambda cell: cell.facts["seed"])
            tables[name] = Table(name, table["about"], in_order, titles, tuple(table.get("reuses", ())))
        sections += [Section(**section) for section in spec.get("sections", ())]
    return tables, sections
