"""`truepair reproduce TABLE --data …`: checks, plan, runs, comparison."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from truepair.errors import InputError, TruepairError
from truepair.files import write_text_atomically
from truepair.reproduce.cells import Cell, Places
from truepair.reproduce.published.compare import comparison, comparison_page
from truepair.reproduce.published.configurations import Configuration, configuration_of
from truepair.reproduce.published.data_sets import NoDataSet, find_sources, read_data_sets
from truepair.reproduce.published.left_out import LeftOut
from truepair.reproduce.published.printed import PrintedRow, PrintedTable
from truepair.reproduce.published.runs import Plan, plans
from truepair.reproduce.published.weights import SIZES, Weights, find_weights
from truepair.reproduce.records import read_records
from truepair.reproduce.runner import Engine, missing_cells, run_cells

SEED = re.compile(r"--seed \d+")


@dataclass(frozen=True)
class Asked:
    """What is to be run of a table.

    Attributes:
        data: folders and files of data sets, or folders of them.
        methods, rates: printed names and noise rates; empty: all.
        index: folder of the field's index files; None: noise is drawn by the seed.
        weights: folders of CLIP, or names of the hub.
        known: file of pairs that are known to match, for the rows that need one.
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
    weights: Sequence[str] = ()
    known: Path | None = None


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


def planned(table: PrintedTable, asked: Asked) -> tuple[list[Plan], LeftOut]:
    """What runs, and what does not. Weights and data are checked first.

    Raises:
        InputError: nothing can be run; a data set is not as published; or an index file is of something else.
    """
    rows = chosen_rows(table, asked.methods, asked.rates)
    if asked.index is not None and (table.shuffled == "labels" or not any(row.noise for row in rows)):
        raise InputError(f"--noise-index has no effect: no row asked for of {table.name} shuffles pairs; leave it out")
    found = [configuration_of(table, row) for row in rows]
    ours = [entry for entry in found if isinstance(entry, Configuration)]
    if not ours:
        none = LeftOut([entry for entry in plans(table, rows, {}) if not isinstance(entry, Plan)])
        raise InputError("\n".join([f"nothing of {table.name} can be run, whatever the data", *none.lines]))
    weights = weights_of(table, asked.weights)
    check_known(table, ours, asked.known)
    needed = list(dict.fromkeys(entry.data for entry in ours))
    try:
        there = find_sources(asked.data)
    except NoDataSet as error:
        where = [read_data_sets()[name].where for name in needed if name in read_data_sets()]
        raise InputError("\n".join([str(error), *where])) from error
    sources = {name: place for name, place in there.items() if name in needed}
    unused = [f"{place} is {name}, of which no row is" for name, place in there.items() if name not in needed]
    for name, place in sources.items():
        read_data_sets()[name].check(place)
    missing = [read_data_sets()[name].where for name in needed if name in read_data_sets() and name not in sources]
    wanted = dict.fromkeys(entry.weights for entry in ours if entry.weights)
    missing += [SIZES[size].where for size in wanted if size not in weights]
    made = list(plans(table, rows, sources, asked.index, weights, asked.known))
    ready = [plan for plan in made if isinstance(plan, Plan)]
    left = LeftOut([entry for entry in made if not isinstance(entry, Plan)], [*unused, *missing])
    if not ready:
        raise InputError("\n".join([f"nothing of {table.name} can be run", *left.lines]))
    return ready, left


def weights_of(table: PrintedTable, given: Sequence[str]) -> dict[str, Weights]:
    """The weights of CLIP by size; an InputError where the table has no rows of it."""
    found = (configuration_of(table, row) for row in table.rows)
    if given and not any(isinstance(entry, Configuration) and entry.weights for entry in found):
        raise InputError(f"{table.name} has no rows of CLIP that can be run; leave --weights out")
    return find_weights(given)


def check_known(table: PrintedTable, ours: Sequence[Configuration], known: Path | None) -> None:
    """Raises InputError: the file of known pairs is not there, or no row needs it."""
    if known is None:
        return
    if not any(entry.known for entry in ours):
        raise InputError(f"--clean-pairs has no effect: no row asked for of {table.name} needs the file; leave it out")
    if not known.is_file():
        raise InputError(f"--clean-pairs {known} is no file; expected the pairs that are known to match, one a line")


def show_plan(ready: Sequence[Plan], left: LeftOut, seeds: Sequence[int]) -> str:
    """The commands of every row, where what they name lies, and what is left out."""
    lines = [f"{plan.row.name}\n  " + plan.cells(seeds)[0].command.replace("; ", "\n  ") for plan in ready]
    places = {plan.data.name: str(plan.source) for plan in ready}
    places |= {name: path for plan in ready for path, name in plan.files.items()}
    lines += ["", "In these commands", *(f"  {name} is {path}" for name, path in places.items())]
    remarks = dict.fromkeys(f"{p.row.method}: {p.configuration.remark}" for p in ready if p.configuration.remark)
    weights = dict.fromkeys(plan.weights.described for plan in ready if plan.weights is not None)
    return "\n".join([*lines, "", *remarks, *weights, *left.lines])


def check_alike(cells: Sequence[Cell], records: Path) -> None:
    """Raises InputError: seeds of one row, of the records and those to come, are of other commands but for the seed."""
    kept = [(record["name"], record["cell"], record["command"]) for record in read_records(records)]
    first: dict[tuple[str, ...], tuple[str, str]] = {}
    for name, facts, command in [*kept, *((cell.name, cell.facts, cell.command) for cell in cells)]:
        row = tuple(str(facts[fact]) for fact in ("data", "method", "noise"))
        known, like = first.setdefault(row, (name, command))
        if SEED.sub("", like) != SEED.sub("", command):
            raise InputError(
                f"{records}: {name} ({command}) is of other options than {known} ({like}), so that they have no mean; "
                "give another --out, or delete the lines of the record"
            )


def reproduce(table: PrintedTable, asked: Asked) -> str:
    """Run what is missing, keep `TABLE.jsonl` and `TABLE.md` in the folder `out`; the comparison.

    Raises:
        InputError: as `planned`, or a record is of another command or of other options than its row.
        TruepairError: a row failed; says where the others are.
    """
    ready, left = planned(table, asked)
    records, page = asked.out / f"{table.name}.jsonl", asked.out / f"{table.name}.md"
    cells = {cell.name: cell for seed in asked.seeds for plan in ready for cell in plan.cells([seed])}
    places, failed = Places(Path(), asked.out / "runs"), None
    missing_cells([*cells.values()], records)  # or a refusal, before anything is written
    check_alike([*cells.values()], records)
    try:
        run_cells([*cells.values()], records, places, jobs=asked.jobs, engine=asked.engine)
    except TruepairError as error:
        failed = error
    kept = read_records(records)
    if kept:
        write_text_atomically(page, comparison_page(table, table.rows, kept))
    if failed is not None:
        raise TruepairError(f"{failed}\nThe rows that ran are in {page}" if kept else str(failed)) from failed
    return "\n".join([comparison(table, table.rows, kept), "", *left.lines])
