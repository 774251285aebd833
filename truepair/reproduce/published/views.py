"""The list of printed tables, and one of them as it is printed, for a terminal."""

from __future__ import annotations

from collections.abc import Sequence

from truepair.phrases import Rows, aligned, counted
from truepair.reproduce.published.checks import contradicting
from truepair.reproduce.published.printed import DATA, PrintedRow, PrintedTable, read_printed, table_of

TITLES = {
    "i2t_r1": "i→t R@1",
    "i2t_r5": "R@5",
    "i2t_r10": "R@10",
    "t2i_r1": "t→i R@1",
    "t2i_r5": "R@5",
    "t2i_r10": "R@10",
    "rsum": "rSum",
    "i2t_map": "mAP i→t",
    "t2i_map": "mAP t→i",
}
SAID = {name: f"{name[:3].replace('2', '→')} {title}" if title[0] == "R" else title for name, title in TITLES.items()}
"""The same where no column stands before: `i→t R@5`."""
DOUBTFUL, CONTRADICTED = "!", "≠"
LEGEND = (
    f"{DOUBTFUL} doubtful as printed; {CONTRADICTED} other tables print other figures for the same cell (docs/print.md)"
)


def list_of_tables() -> str:
    """Every table: name, rows, data sets, what it is of."""
    body = [["table", "rows", "data", "printed in", "of"]]
    for name, table in read_printed().items():
        body.append([name, str(len(table.rows)), " ".join(table.data), f"{table.paper}, {table.number}", table.about])
    widths = [max(map(len, column)) for column in zip(*body, strict=True)]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in body]
    return "\n".join([*lines, "", "truepair reproduce TABLE shows one; with --data FOLDER it runs its rows."])


def view_of(table: PrintedTable, rows: Sequence[PrintedRow]) -> str:
    """Some rows of a table as they are printed, doubtful ones marked and explained below."""
    names = [name for name in TITLES if any(name in row.figures for row in rows)]
    body: Rows = [["method", "data", "noise", *(TITLES[name] for name in names), ""]]
    body += [
        [row.method, row.data, row.rate, *(shown(name, row.figures.get(name)) for name in names), marks(row)]
        for row in rows
    ]
    parts = [heading(table), left_aligned(body), *explained(rows)]
    return "\n\n".join(parts)


def heading(table: PrintedTable) -> str:
    data = ", ".join(DATA[name] for name in table.data)
    return (
        f"{table.name}: {table.paper}, Table {table.number} ({table.title}; {table.venue})\n"
        f"{table.about}; {counted(len(table.rows), 'row')}; {data}"
    )


def explained(rows: Sequence[PrintedRow]) -> list[str]:
    """The legend, a line for each doubtful row, and one for each row of which others print other figures; nothing
    where no row is marked.
    """
    lines = [
        f"{DOUBTFUL} {row.method}, {row.data}, {row.rate}: {row.doubt.removeprefix('doubtful: ')}"
        for row in rows
        if row.doubt
    ]
    lines += [
        f"{CONTRADICTED} {row.method}, {row.data}, {row.rate}: {elsewhere(row)}" for row in rows if contradicting(row)
    ]
    return ["\n".join([LEGEND, *lines])] if lines else []


def elsewhere(row: PrintedRow) -> str:
    """What other tables print for the same cell: its sum where that is another one, else the figures that are."""
    tables: dict[str, list[str]] = {}
    for other in contradicting(row):
        names = [name for name, value in other.figures.items() if row.figures.get(name) != value]
        told = ["rsum"] if "rsum" in names else names
        figures = ", ".join(f"{SAID[name]} {shown(name, other.figures[name])}" for name in told)
        tables.setdefault(figures, []).append(table_of(other))
    return "; ".join(f"{figures} in {', '.join(dict.fromkeys(names))}" for figures, names in tables.items())


def marks(row: PrintedRow) -> str:
    return (DOUBTFUL if row.doubt else "") + (CONTRADICTED if contradicting(row) else "")


def shown(name: str, value: float | None) -> str:
    return "–" if value is None else f"{value:.3f}" if name.endswith("_map") else f"{value:.1f}"


def left_aligned(rows: Rows) -> str:
    """As `aligned`, the first column to the left."""
    width = max(len(row[0]) for row in rows)
    others = aligned([row[1:] for row in rows]).splitlines()
    return "\n".join(f"{row[0]:{width}}  {rest}".rstrip() for row, rest in zip(rows, others, strict=True))
