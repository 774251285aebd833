"""Runs the cells of a table: finished ones are skipped, one that was cut off goes on where it stopped."""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from typing import Any

from tqdm import tqdm

from truepair import __version__
from truepair.errors import InputError
from truepair.reproduce.cells import Cell, Places
from truepair.reproduce.records import keep_record, read_records


def chosen_cells(cells: Sequence[Cell], wanted: Mapping[str, Sequence[Any]]) -> list[Cell]:
    """The cells that have one of the values asked for, for every fact that is asked for; an InputError where no cell
    has a value.
    """
    for fact, values in wanted.items():
        known = sorted({cell.facts[fact] for cell in cells if fact in cell.facts})
        unknown = [value for value in values if value not in known]
        if unknown:
            raise InputError(f"no run of this table has {fact} {unknown[0]}; there are {', '.join(map(str, known))}")
    return [cell for cell in cells if all(cell.facts.get(fact) in values for fact, values in wanted.items())]


def run_cell(cell: Cell, results: Path, places: Places) -> None:
    """Run one cell and keep its record; an InputError says which cell failed, and why."""
    try:
        figures = cell.measure(places)
    except InputError as error:
        raise InputError(f"{cell.name} failed: {error}") from error
    head = {"name": cell.name, "cell": cell.facts, "command": cell.command}
    keep_record(results, {**head, "truepair": __version__, "date": time.strftime("%Y-%m-%d"), **figures})


def run_cells(cells: Sequence[Cell], results: Path, places: Places, *, jobs: int) -> None:
    """Run what is missing, `jobs` at a time, with a bar. A cell that fails does not stop the others; its InputError
    comes in the end.
    """
    commands = {record["name"]: record["command"] for record in read_records(results)}
    for cell in cells:
        kept = commands.get(cell.name, cell.command)
        if kept != cell.command:
            raise InputError(
                f"{results}: the record of {cell.name} is of another command ({kept}) than the table's "
                f"({cell.command}); delete its line to run it again"
            )
    missing = [cell for cell in cells if cell.name not in commands]
    pool = ThreadPoolExecutor(jobs)
    started = [pool.submit(run_cell, cell, results, places) for cell in missing]
    try:
        for _ in tqdm(as_completed(started), total=len(cells), initial=len(cells) - len(missing), unit="run"):
            pass
        for done in started:
            done.result()
    except KeyboardInterrupt:
        sys.exit("Interrupted; the same command continues.")
    finally:
        pool.shutdown(cancel_futures=True)
