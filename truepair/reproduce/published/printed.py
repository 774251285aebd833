"""The printed tables as data: `read_printed()`."""

from __future__ import annotations

import csv
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Literal

from truepair.errors import InputError

FOLDER = Path(__file__).parent
RECALLS = ("i2t_r1", "i2t_r5", "i2t_r10", "t2i_r1", "t2i_r5", "t2i_r10")
FIGURES = (*RECALLS, "rsum", "i2t_map", "t2i_map")
SUM_TOLERANCE = 0.15
"""A printed sum of six rounded figures may be off by this much."""

DATA = {
    "f30k": "Flickr30K",
    "coco1k": "MS-COCO 1K × 5",
    "coco5k": "MS-COCO 5K",
    "cc152k": "CC152K",
    "nuswide": "NUS-WIDE (pairs)",
    "nuswide10": "NUS-WIDE (ten classes)",
    "xmedianet": "XMediaNet",
    "wikipedia": "Wikipedia",
}
"""Data sets of the tables and how they are scored, by the name they have in the files."""


@dataclass(frozen=True)
class PrintedRow:
    """One row of a table: a method on one data set at one noise rate.

    Attributes:
        paper, number: where it is printed.
        data: a key of `DATA`.
        noise: share of pairs or labels made wrong, in [0, 1]; None: the noise the data came with.
        method: the printed name, or the printed variant of an ablation.
        note: what the paper says of engine, ensemble and kind of noise.
        figures: those of `FIGURES` that are printed: recalls in percent, mAP in [0, 1].
        checks: "ok", or what is wrong with the row; see the README beside.
    """

    paper: str
    number: str
    data: str
    noise: float | None
    method: str
    note: str
    figures: dict[str, float]
    checks: str

    @property
    def name(self) -> str:
        """`paper:table:dataset:noise:method`, as the column `checks` names rows."""
        return f"{self.paper}:{self.number}:{self.data}:{self.rate}:{self.method}"

    @property
    def rate(self) -> str:
        return "real" if self.noise is None else f"{self.noise:g}"

    @property
    def doubt(self) -> str:
        """What is wrong with the row as printed; empty where nothing is known to be."""
        told = self.checks.removeprefix("ok; ")
        sound = told == "ok" or (told != self.checks and not told.startswith(VARIANT))
        return "" if sound else told

    @property
    def unclear(self) -> bool:
        """Which parts the row leaves out is not said where the figures are: its marks were lost."""
        return self.doubt.startswith(VARIANT)

    @property
    def sum_difference(self) -> float:
        """The printed sum minus that of the six recalls, in points; 0 where no sum is printed."""
        if "rsum" not in self.figures:
            return 0.0
        return round(self.figures["rsum"] - sum(self.figures[name] for name in RECALLS), 2)


VARIANT = "variant "  # inferred or doubtful: which parts a row of an ablation leaves out


@dataclass(frozen=True)
class PrintedTable:
    """A table of a paper.

    Attributes:
        name: as `truepair reproduce` takes it, `crcl-1`.
        shuffled: what its noise shuffles; "labels" are class labels drawn anew.
    """

    name: str
    paper: str
    title: str
    venue: str
    number: str
    about: str
    shuffled: Literal["captions", "images", "labels"]
    rows: tuple[PrintedRow, ...]

    @property
    def data(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(row.data for row in self.rows))


@cache
def read_printed() -> dict[str, PrintedTable]:
    """All tables by name, with their rows in the order of print."""
    about = tomllib.loads((FOLDER / "papers.toml").read_text(encoding="utf-8"))
    rows = [row for file in ("retrieval", "label_noise", "ablations") for row in _rows(FOLDER / f"{file}.csv")]
    return {
        name: PrintedTable(
            name=name,
            **about["papers"][table["paper"]],
            **table,
            rows=tuple(row for row in rows if (row.paper, row.number) == (table["paper"], table["number"])),
        )
        for name, table in about["tables"].items()
    }


def printed_table(name: str) -> PrintedTable:
    """The table of that name.

    Raises:
        InputError: there is none.
    """
    tables = read_printed()
    if name not in tables:
        raise InputError(f"{name} is no table that is known; there are {', '.join(tables)}")
    return tables[name]


def table_of(row: PrintedRow) -> str:
    """The name of the table that a row stands in."""
    tables = read_printed().values()
    return next(table.name for table in tables if (table.paper, table.number) == (row.paper, row.number))


def all_rows() -> Iterator[PrintedRow]:
    """The rows of all tables."""
    for table in read_printed().values():
        yield from table.rows


def _rows(path: Path) -> Iterator[PrintedRow]:
    with path.open(newline="", encoding="utf-8") as file:
        for line in csv.DictReader(file):
            yield PrintedRow(
                paper=line["paper"],
                number=line["table"],
                data=line["dataset"],
                noise=None if line["noise"] == "real" else float(line["noise"]),
                method=line["method"] if "method" in line else line["variant"],
                note=line.get("engine_or_note", ""),
                figures={name: float(line[name]) for name in FIGURES if line.get(name)},
                checks=line["checks"],
            )
