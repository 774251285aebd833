"""`truepair reproduce TABLE --data …`: checks, plan, runs, comparison."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from truepair.errors import InputError
from truepair.files import write_text_atomically
from truepair.reproduce.cells import Places
from truepair.reproduce.published.compare import comparison, comparison_page
from truepair.reproduce.published.configurations import source_of
from truepair.reproduce.published.data_sets import find_sources, read_data_sets
from truepair.reproduce.published.printed import PrintedRow, PrintedTable
from truepair.reproduce.published.runs import Plan, plans
from truepair.reproduce.records import read_records
from truepair.reproduce.runner import Engine, run_cells


@dataclass(frozen=True)
class Asked:
    """What is to be run of a table.

    Attributes:
        data: folders and files of data sets, or folders of them.
        methods, rates: printed names and noise rates; empty: all.
        index: folder of the field's index files; None: noise is drawn by the seed.
        out: for records, runs and the page.
        jobs: runs at a time; None: one here, one a core with Ray.
        engine: `local` or `ray`.
    """

    data: Sequence[Path]
    methods: Sequence[str]
    rates: Sequence[str]
    seeds: Sequence[int]
    index: Path | None
    jobs: int | None
    out: Path
    engine: Engine = "local"


def chosen_rows(table: PrintedTable, methods: Sequence[str], rates: Sequence[str]) -> list[PrintedRow]:
    """The rows of these methods and rates, empty: all; an InputError where the table has no such method or rate."""
    for what, wanted, known in (
        ("row", methods, [row.method for row in table.rows]),
        ("noise rate", rates, [row.rate for row in table.rows]),
    ):
        unknown = [value for value in wanted if value not in known]
        if unknown:
            raise InputError(f"{table.name} has no {what} {unknown[0]}; it has {', '.join(dict.fromkeys(known))}")
    return [row for row in table.rows if (not methods or row.method in methods) and (not rates or row.rate in rates)]


def planned(table: PrintedTable, asked: Asked) -> tuple[list[Plan], list[str]]:
    """What runs, and a sentence for each row that does not and each data set that is missing. Data are checked first.

    Raises:
        InputError: a data set is not as published, an index file is of something else, or nothing can be run.
    """
    rows = chosen_rows(table, asked.methods, asked.rates)
    needed = list(dict.fromkeys(source_of(row) for row in rows))
    sources = {name: place for name, place in find_sources(asked.data).items() if name in needed}
    for name, place in sources.items():
        read_data_sets()[name].check(place)
    missing = [read_data_sets()[name].where for name in needed if name in read_data_sets() and name not in sources]
    found = list(plans(table, rows, sources, asked.index))
    ready = [plan for plan in found if isinstance(plan, Plan)]
    left = [f"{row.method}, {row.data}, {row.rate}: {why}" for row, why in (x for x in found if isinstance(x, tuple))]
    if not ready:
        raise InputError("\n".join([f"nothing of {table.name} can be run", *left, *missing]))
    return ready, [*left, *missing]


def show_plan(ready: Sequence[Plan], left: Sequence[str], seeds: Sequence[int]) -> str:
    """The commands of every row, and what is left out."""
    lines = [f"{plan.row.name}\n  " + plan.cell(seeds[0]).command.replace("; ", "\n  ") for plan in ready]
    remarks = dict.fromkeys(f"{p.row.method}: {p.configuration.remark}" for p in ready if p.configuration.remark)
    return "\n".join([*lines, "", *remarks, *left])


def reproduce(table: PrintedTable, asked: Asked) -> str:
    """Run what is missing, keep `TABLE.jsonl` and `TABLE.md` in the folder `out`; the comparison."""
    ready, left = planned(table, asked)
    records = asked.out / f"{table.name}.jsonl"
    cells = [plan.cell(seed) for seed in asked.seeds for plan in ready]
    run_cells(cells, records, Places(Path(), asked.out / "runs"), jobs=asked.jobs, engine=asked.engine)
    kept = read_records(records)
    write_text_atomically(asked.out / f"{table.name}.md", comparison_page(table, table.rows, kept))
    return "\n".join([comparison(table, table.rows, kept), "", *left])
