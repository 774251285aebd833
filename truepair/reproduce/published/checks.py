"""What speaks against printed figures: sums, rows printed twice, and one cell with different figures."""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass

from truepair.reproduce.published.printed import SUM_TOLERANCE, PrintedRow, all_rows, read_printed

_CLIP = {
    **dict.fromkeys(("CLIP-L", "CLIP-14", "CLIP (ViT-L/14)"), "CLIP ViT-L/14"),
    **dict.fromkeys(("CLIP-B", "CLIP-32", "CLIP (ViT-B/32)", "CLIP (zero-shot)"), "CLIP ViT-B/32"),
}


def method_of(row: PrintedRow) -> str:
    """One name for a method that papers name differently. GSC's names carry the engine; DisNCL's fine-tuned CLIP is
    ViT-B/32 where there is noise, by its figures.
    """
    name = row.method
    if row.paper == "GSC" and name not in ("SGR", "SGRAF"):
        name = re.sub(r"-SGR(AF)?$", "", name)
    if name == "CLIP (fine-tuned)" and row.noise != 0:
        return "CLIP ViT-B/32"
    return _CLIP.get(name, name)


def retrieval_rows() -> list[PrintedRow]:
    """The rows with recalls of whole methods, ablations left out."""
    return [row for row in all_rows() if row.paper and row.note and "rsum" in row.figures]


def wrong_sums() -> list[PrintedRow]:
    """Rows whose printed sum is further from that of the six recalls than rounding explains, ablations among them."""
    return [row for row in all_rows() if abs(row.sum_difference) > SUM_TOLERANCE]


def repeated_rows() -> list[PrintedRow]:
    """Rows with the six recalls of another cell: another data set, rate, kind of noise or method."""
    return [row for row in all_rows() if row.checks.startswith("repeated")]


@dataclass(frozen=True)
class Contradiction:
    """One method on one data set at one rate, with different figures.

    Attributes:
        versions: rows with the same figures together, in the order of print.
    """

    method: str
    data: str
    rate: str
    versions: tuple[tuple[PrintedRow, ...], ...]

    @property
    def papers(self) -> set[str]:
        return {row.paper for version in self.versions for row in version}

    @property
    def of_captions(self) -> bool:
        """Whether papers differ even where rows with shuffled images are left out."""
        images = {(table.paper, table.number) for table in read_printed().values() if table.shuffled == "images"}
        left = [[row for row in version if (row.paper, row.number) not in images] for version in self.versions]
        kept = [version for version in left if version]
        return len(kept) > 1 and len({row.paper for version in kept for row in version}) > 1


def contradictions() -> list[Contradiction]:
    """All cells that are printed with different figures, by method, data set and rate."""
    cells: dict[tuple[str, str, str], dict[tuple[float, ...], list[PrintedRow]]] = defaultdict(
        lambda: defaultdict(list)
    )
    for row in retrieval_rows():
        cells[method_of(row), row.data, row.rate][tuple(row.figures.values())].append(row)
    return [
        Contradiction(*cell, tuple(tuple(rows) for rows in versions.values()))
        for cell, versions in sorted(cells.items())
        if len(versions) > 1
    ]


def contradicting(row: PrintedRow) -> list[PrintedRow]:
    """Rows that print other figures for the same cell."""
    if not row.note:
        return []
    return [
        other
        for other in retrieval_rows()
        if (method_of(other), other.data, other.rate) == (method_of(row), row.data, row.rate)
        and other.figures != row.figures
    ]
