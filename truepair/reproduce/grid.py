"""What the grids of experiments share: a cell is one run of `truepair train` in a process of its own, with one record.

Finished cells are skipped, a run that was cut off goes on where it stopped.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import asdict
from pathlib import Path
from typing import Any, ClassVar, Protocol, TypeVar

from tqdm import tqdm

from truepair import __version__
from truepair.errors import InputError
from truepair.files import write_json_atomically
from truepair.training.run_folder import RunFolder, read_lines


class Cell(Protocol):
    """One run of a grid: a dataclass, whose fields are kept in its record."""

    __dataclass_fields__: ClassVar[dict[str, Any]]

    @property
    def name(self) -> str:
        """Of its record and its run folder."""
        ...

    @property
    def command(self) -> str:
        """How to repeat it, as people type it."""
        ...

    def options(self) -> list[str]:
        """Command-line options of the run, its data and folder left out."""
        ...


AnyCell = TypeVar("AnyCell", bound=Cell)


def is_done(cell: Cell, results: Path) -> bool:
    """Whether the cell has its record.

    Raises:
        InputError: there is one, of another command.
    """
    record = results / f"{cell.name}.json"
    if not record.exists():
        return False
    command = json.loads(record.read_text(encoding="utf-8"))["command"]
    if command != cell.command:
        raise InputError(f"{record} is of another command ({command}); move it away, or write to another --results")
    return True


def train_cell(cell: Cell, source: str, results: Path, runs: Path) -> None:
    """Train one cell in a process of its own and keep its figures; nothing to do if they are there."""
    if is_done(cell, results):
        return
    folder = RunFolder(runs / cell.name)
    command = [sys.executable, "-m", "truepair", "train"]
    if folder.config.exists():
        command += ["--resume", str(folder.path)]
    else:
        command += [str(source), *cell.options(), "--out", str(folder.path), "--threads", "1"]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run([*command, "--quiet"], capture_output=True, text=True, env=environment, check=False)
    if done.returncode:
        raise InputError(f"{cell.name} failed: {done.stderr.strip()}")
    write_json_atomically(results / f"{cell.name}.json", record_of(cell, folder))


def run_all(cells: Sequence[AnyCell], run: Callable[[AnyCell], None], *, jobs: int) -> None:
    """Run every cell, `jobs` at a time, with a bar; ends the process with a sentence where one fails."""
    pool = ThreadPoolExecutor(jobs)
    started = [pool.submit(run, cell) for cell in cells]
    try:
        for _ in tqdm(as_completed(started), total=len(cells), unit="run"):
            pass
        for cell in started:
            cell.result()
    except KeyboardInterrupt:
        sys.exit("Interrupted; the same command continues.")
    except InputError as error:
        sys.exit(str(error))
    finally:
        pool.shutdown(cancel_futures=True)


def record_of(cell: Cell, folder: RunFolder) -> dict[str, Any]:
    """What is kept of a finished run: what it was, what came out, when, and how long it took."""
    timings = read_lines(folder.timings)
    config = folder.read_config()
    return {
        "cell": asdict(cell),
        "command": cell.command,
        "truepair": __version__,
        "date": time.strftime("%Y-%m-%d"),
        "options": {name: config[name] for name in ("method", "model", "augmentation", "training")},
        "threads": config["threads"],
        "result": json.loads(folder.result.read_text(encoding="utf-8")),
        "epochs_trained": len(timings),
        "training_seconds": round(sum(line["seconds"] for line in timings), 1),
        "epochs": [epoch_of(line) for line in read_lines(folder.metrics)],
    }


def epoch_of(line: dict[str, Any]) -> dict[str, Any]:
    """What is kept of an epoch: how well it ranks, how it divides."""
    found = line["detection"] or {}
    return {
        "epoch": line["epoch"],
        **dev_of(line["dev"]),
        "auroc": found.get("auroc") and round(found["auroc"], 4),
        "division_accuracy": found.get("division_accuracy") and round(found["division_accuracy"], 4),
        **{
            name: value if isinstance(value, int) else value and round(value, 4)
            for name, value in line["division"].items()
        },
    }


def dev_of(dev: dict[str, float] | None) -> dict[str, Any]:
    """The figure that selects the best epoch."""
    if dev is not None and "map" in dev:
        return {"dev_map": round(dev["map"], 4)}
    return {"dev_rsum": None if dev is None else round(dev["rsum"], 2)}
