"""Our figures of some methods beside printed ones: what noise takes from each, and who stands before whom."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

from truepair.reproduce.cells import Record
from truepair.reproduce.published.printed import DATA, printed_table
from truepair.reproduce.records import figure_of
from truepair.reproduce.render.markdown import cell, percent, table, warm_up_mark
from truepair.reproduce.render.values import groups_of
from truepair.reproduce.tables import Filled, Section

SUM = "result.test.rsum"


def beside_print(section: Section, shown: Filled) -> str:
    """A row for a method of ours and a printed row: rSum over the rates, and what the last one leaves of the first.

    The section's options: `printed`, key of `published.printed.DATA`; `data`, ours; `rates`; `rows`, each a method, a
    printed table and the name of a row there.
    """
    options, rates = section.options, section.options["rates"]
    groups = groups_of([record for record in shown.records if matches(record, options["data"])])
    head = ["", *(f"printed, {percent(rate)}" for rate in rates), "left", *(percent(rate) for rate in rates), "left"]
    lines = []
    for method, name, row in options["rows"]:
        printed = printed_sums(name, row, options["printed"], rates)
        runs = [[figure_of(record, SUM) for record in groups.get((method, rate), [])] for rate in rates]
        own = [[value for value in found if value is not None] for found in runs]
        means = [statistics.fmean(found) if found else None for found in own]
        lines.append(
            [
                f"{shown.table.titles[method]} ({row} of `{name}`)",
                *(cell([value], 1) for value in printed),
                left(printed),
                *(
                    cell(found, 1) + warm_up_mark(groups.get((method, rate), []))
                    for rate, found in zip(rates, own, strict=True)
                ),
                left(means),
            ]
        )
    about = f"Printed for {DATA[options['printed']]}, ours on `{options['data']}`; left: the last column of the first."
    return f"{about}\n\n{table(head, lines)}"


def matches(record: Record, data: str) -> bool:
    """Whether a record is of captions shuffled in that data set, and of the global engine."""
    facts = record["cell"]
    return facts["data"] == data and facts.get("engine", "global") == "global" and "kind" not in facts


def printed_sums(name: str, method: str, data: str, rates: Sequence[float]) -> list[float | None]:
    """The printed rSum of a row at each rate; None where it is not printed."""
    found = {
        row.noise: row.figures.get("rsum")
        for row in printed_table(name).rows
        if (row.data, row.method) == (data, method)
    }
    return [found.get(rate) for rate in rates]


def left(values: Sequence[float | None]) -> str:
    """The last value in per cent of the first."""
    first, last = values[0], values[-1]
    return "–" if first is None or last is None else percent(last / first)
