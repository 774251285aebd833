"""Runs the cells of a table: finished ones are skipped, one that was cut off goes on where it stopped."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from typing import Any, Literal

from tqdm import tqdm

from truepair import __version__
from truepair.cluster import connected, result_of, task_of
from truepair.errors import DivergedError, InputError, TruepairError
from truepair.reproduce.cells import Cell, Places
from truepair.reproduce.processes import ended_together
from truepair.reproduce.records import keep_record, read_records
from truepair.reproduce.revisions import outdated

Engine = Literal["local", "ray"]


UNNAMED = {"kind": "caption"}
"""What a cell is of that does not say so."""


def chosen_cells(cells: Sequence[Cell], wanted: Mapping[str, Sequence[Any]]) -> list[Cell]:
    """The cells that have one of the values asked for, for every fact that is asked for; an InputError where no cell
    has a value.
    """

    def value(cell: Cell, fact: str) -> Any:
        return cell.facts.get(fact, UNNAMED.get(fact))

    for fact, values in wanted.items():
        known = sorted({found for cell in cells if (found := value(cell, fact)) is not None})
        unknown = [value for value in values if value not in known]
        if unknown:
            raise InputError(f"no run of this table has {fact} {unknown[0]}; there are {', '.join(map(str, known))}")
    return [cell for cell in cells if all(value(cell, fact) in values for fact, values in wanted.items())]


def run_cell(cell: Cell, results: Path, places: Places) -> None:
    """Run one cell and keep its record; an InputError says which cell failed, and why."""
    try:
        figures = cell.measure(places)
    except (InputError, DivergedError) as error:
        raise InputError(f"{cell.name} failed: {error}") from error
    head = {"name": cell.name, "cell": cell.facts, "command": cell.command}
    keep_record(results, {**head, "truepair": __version__, "date": time.strftime("%Y-%m-%d"), **figures})


def missing_cells(cells: Sequence[Cell], results: Path, *, anew: bool = False) -> list[Cell]:
    """The cells without a record, and with `anew` those whose record is of an earlier revision of the method; an
    InputError where one has the record of another command.
    """
    records = read_records(results)
    old = {record["name"] for record in outdated(records)} if anew else set()
    commands = {record["name"]: record["command"] for record in records}
    for cell in cells:
        kept = commands.get(cell.name, cell.command)
        if kept != cell.command:
            raise InputError(
                f"{results}: the record of {cell.name} is of another command ({kept}) than the table's "
                f"({cell.command}); delete its line to run it again"
            )
    return [cell for cell in cells if cell.name not in commands or cell.name in old]


def run_cells(
    cells: Sequence[Cell],
    results: Path,
    places: Places,
    *,
    jobs: int | None,
    engine: Engine = "local",
    anew: bool = False,
) -> None:
    """Run what is missing, `jobs` at a time, with a bar. A cell that fails does not stop the others; its InputError
    comes in the end.

    Args:
        anew: also what is there, but of an earlier revision of its method; the new record takes the place of the old.
        engine: processes here, or tasks of Ray, whose machines see the same folders; one core each.
        jobs: None: as many as Ray has cores.
    """
    missing = missing_cells(cells, results, anew=anew)
    with tqdm(total=len(cells), initial=len(cells) - len(missing), unit="run") as bar:
        try:
            ENGINES[engine](missing, results.absolute(), places.absolute(), jobs, bar.update)
        except KeyboardInterrupt:
            sys.exit("Interrupted; the same command continues.")


def run_here(
    cells: Sequence[Cell], results: Path, places: Places, jobs: int | None, done: Callable[[], object]
) -> None:
    pool = ThreadPoolExecutor(jobs or 1)
    started = [pool.submit(run_cell, cell, results, places) for cell in cells]
    try:
        with ended_together():
            try:
                for _ in as_completed(started):
                    done()
                for running in started:
                    running.result()
            finally:  # before the commands that run are ended, or the next cell would begin
                pool.shutdown(wait=False, cancel_futures=True)
    finally:
        pool.shutdown()


def run_on_ray(
    cells: Sequence[Cell], results: Path, places: Places, jobs: int | None, done: Callable[[], object]
) -> None:
    with connected(jobs) as ray:
        task = task_of(ray, run_cell)
        running = {task.remote(cell, results, places): cell for cell in cells}
        left, failed = [*running], None
        while left:
            finished, left = ray.wait(left)
            for one in finished:
                try:
                    result_of(ray, one, running[one].name, "what is finished is kept; run the same command again")
                except TruepairError as error:
                    failed = failed or error
                done()
        if failed is not None:
            raise failed


ENGINES: dict[Engine, Callable[..., None]] = {"local": run_here, "ray": run_on_ray}
