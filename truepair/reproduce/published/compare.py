"""Ours beside what is printed: one line a row."""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Sequence

from truepair import __version__
from truepair.phrases import Rows
from truepair.reproduce.cells import Record
from truepair.reproduce.published.printed import PrintedRow, PrintedTable
from truepair.reproduce.published.views import TITLES, explained, heading, left_aligned, marks, shown
from truepair.reproduce.records import finished_and_diverged
from truepair.reproduce.render.markdown import OLDER, named
from truepair.reproduce.render.markdown import table as markdown
from truepair.reproduce.revisions import outdated


def comparison(table: PrintedTable, rows: Sequence[PrintedRow], records: Sequence[Record]) -> str:
    """Rows with runs: ours, printed and the difference, for a terminal."""
    titles, body = lines_of(rows, records)
    parts = [heading(table), left_aligned([titles, *body]), *explained(ran(rows, records)), *below(records)]
    return "\n\n".join(parts)


def comparison_page(table: PrintedTable, rows: Sequence[PrintedRow], records: Sequence[Record]) -> str:
    """The same as Markdown."""
    titles, body = lines_of(rows, records)
    return "\n\n".join([heading(table), markdown(titles, body), *explained(ran(rows, records)), *below(records)]) + "\n"


def lines_of(rows: Sequence[PrintedRow], records: Sequence[Record]) -> tuple[list[str], Rows]:
    """Titles, and for each row that ran: ours (mean ± standard deviation over seeds), printed, difference."""
    here = ran(rows, records)
    names = [name for name in TITLES if any(name in row.figures for row in here)]
    names = ["i2t_r1", "t2i_r1", "rsum"] if "rsum" in names else names
    titles = ["method", "data", "noise", "seeds"]
    titles += [f"{TITLES[name]} {what}" for name in names for what in ("ours", "printed", "difference")]
    body = []
    for row in here:
        all_own = of_row(row, records)
        own, diverged = finished_and_diverged(all_own)
        line = [row.method, row.data, row.rate, str(len(own)) + (f" + {len(diverged)} diverged" if diverged else "")]
        for name in names:
            values = [record["figures"][name] for record in own]
            if not values:
                line += ["–", shown(name, row.figures[name]), "–"]
                continue
            mean = statistics.fmean(values)
            spread = f" ± {shown(name, statistics.stdev(values))}" if len(values) > 1 else ""
            change = shown(name, mean - row.figures[name])
            line += [shown(name, mean) + spread, shown(name, row.figures[name])]
            line += [change if change.startswith("-") else f"+{change}"]
        other = outdated(all_own) or any(record["truepair"] != __version__ for record in all_own)
        body.append([*line, marks(row) + (OLDER if other else "")])
    return [*titles, ""], body


def ran(rows: Sequence[PrintedRow], records: Sequence[Record]) -> list[PrintedRow]:
    return [row for row in rows if of_row(row, records)]


def of_row(row: PrintedRow, records: Sequence[Record]) -> list[Record]:
    facts = {"data": row.data, "method": row.method, "noise": row.rate}
    return [record for record in records if facts.items() <= record["cell"].items()]


def below(records: Sequence[Record]) -> list[str]:
    """What is said of the networks of ensembles, of runs that diverged, and of records of other versions of the
    package or earlier revisions of their methods; nothing where none are.
    """
    stops = [f"{each['name']} diverged: {each['diverged']['said']}" for each in finished_and_diverged(records)[1]]
    others = sorted({record["truepair"] for record in records} - {__version__})
    of_others = [f"{OLDER} run with truepair {', '.join(others)}; this is {__version__}"] if others else []
    if old := outdated(records):
        of_others.append(f"{OLDER} {named(old, 'of an earlier revision of a method, which came to other figures')}")
    return [*("\n".join(lines) for lines in (of_members(records), stops) if lines), *of_others]


def of_members(records: Sequence[Record]) -> list[str]:
    """A line a row that is an ensemble: the mean rSum of each of its networks by itself, where that is known."""
    found: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for record in records:
        facts = record["cell"]
        for place, member in enumerate(record.get("members", ()), start=1):
            name = f"{member['model']} ({place})"
            found[f"{facts['method']}, {facts['data']}, {facts['noise']}"][name].append(member["rsum"])
    return [
        f"{row}: the networks alone, rSum: "
        + ", ".join(f"{name} {shown('rsum', statistics.fmean(values))}" for name, values in members.items())
        for row, members in found.items()
    ]
