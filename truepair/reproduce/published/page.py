"""The check of print as Markdown, for `docs/print.md`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from truepair.reproduce.published.checks import Contradiction, contradictions, repeated_rows, wrong_sums
from truepair.reproduce.published.printed import (
    DATA,
    SUM_TOLERANCE,
    PrintedRow,
    all_rows,
    read_printed,
)
from truepair.reproduce.render.markdown import table


def check_of_print() -> str:
    """Counts, then sums, rows printed twice, doubtful figures, and contradictions."""
    sums, twice, cells = wrong_sums(), repeated_rows(), contradictions()
    unclear = [row for row in all_rows() if row.unclear]
    others = [row for row in all_rows() if row.doubt and row not in (*sums, *twice, *unclear)]
    rows = list(all_rows())
    figures = sum(len(row.figures) for row in rows)
    across = sum(len(cell.papers) > 1 for cell in cells)
    captions = sum(cell.of_captions for cell in cells)
    parts = [
        f"{len(rows)} rows with {figures:,} figures in {len(read_printed())} tables of "
        f"{len({row.paper for row in rows})} papers: {len(sums)} sums are off, {len(twice)} rows have the figures of "
        f"another cell, {len(others)} more are doubtful, of {len(unclear)} it was inferred which parts they leave out, "
        f"and {len(cells)} cells (one method, data set and noise rate) "
        f"are printed with different figures. {across} of these take in more than one paper, {captions} even where the "
        "table of shuffled images is left out.",
        "### Sums",
        f"The printed rSum against the sum of the six recalls, where they differ by more than {SUM_TOLERANCE}, which "
        "is more than rounding explains.",
        sum_table(sums),
        "### Rows with the figures of another cell",
        row_table(twice, lambda row: row.checks.removeprefix("repeated").lstrip(": ")),
        "### Doubtful for other reasons",
        row_table(others, lambda row: row.checks.removeprefix("doubtful").lstrip(": ")),
        "### Ablations whose rows are not told apart",
        row_table(unclear, lambda row: row.doubt),
        "### Contradictions",
        "rSum of one method on one data set at one noise rate, by the tables that print it. Tables in one bracket "
        "print the same figures throughout.",
        *contradiction_tables(cells),
    ]
    return "\n\n".join(parts)


def sum_table(rows: Iterable[PrintedRow]) -> str:
    titles = ("row", "printed", "sum of the six", "difference")
    body = []
    for row in rows:
        printed = row.figures["rsum"]
        body.append((where(row), f"{printed:.1f}", f"{printed - row.sum_difference:.1f}", f"{row.sum_difference:+.1f}"))
    return table(titles, body)


def row_table(rows: Iterable[PrintedRow], said: Callable[[PrintedRow], str]) -> str:
    return table(("row", "what is wrong"), [(where(row), said(row)) for row in rows])


def contradiction_tables(cells: Sequence[Contradiction]) -> Iterable[str]:
    """A table for each data set: a row a method, a column a rate."""
    for data in dict.fromkeys(row.data for row in all_rows()):
        here = [cell for cell in cells if cell.data == data]
        if here:
            rates = sorted({cell.rate for cell in here})
            methods = list(dict.fromkeys(cell.method for cell in here))
            found = {(cell.method, cell.rate): versions(cell) for cell in here}
            body = [(method, *(found.get((method, rate), "–") for rate in rates)) for method in methods]
            yield f"**{DATA[data]}**"
            yield table(("method", *(shown_rate(rate) for rate in rates)), body)


def versions(cell: Contradiction) -> str:
    """`491.1 (DisNCL I, GSC 1); 497.0 (CRCL 1)`."""
    said = []
    for rows in cell.versions:
        places = ", ".join(dict.fromkeys(f"{row.paper} {row.number}" for row in rows))
        said.append(f"{rows[0].figures['rsum']:.1f} ({places})")
    return "; ".join(said)


def where(row: PrintedRow) -> str:
    """`CRCL 6, MS-COCO 1K × 5, 80 %, BiCro-SAF`."""
    return (
        f"{row.paper} {row.number}, {DATA[row.data]}, {shown_rate(row.rate)}, {row.method.replace('*', chr(92) + '*')}"
    )


def shown_rate(rate: str) -> str:
    return "as collected" if rate == "real" else f"{100 * float(rate):.0f} %"
