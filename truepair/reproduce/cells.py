"""A cell of a table: one run of the package, or what is made of several, in processes of their own."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import chain, count
from pathlib import Path
from typing import Any

from truepair.files.lock import locked
from truepair.methods import is_outdated
from truepair.reproduce.processes import truepair
from truepair.training.run_folder import RunFolder

Record = dict[str, Any]


@dataclass(frozen=True)
class Places:
    """Where data sets lie, and where run folders go."""

    data: Path
    runs: Path

    def absolute(self) -> Places:
        """The same wherever a process starts."""
        return Places(self.data.absolute(), self.runs.absolute())

    def source(self, data: str) -> str:
        """The path of a data set; what is built in has none."""
        return str(self.data / data) if (self.data / data).exists() else data


@dataclass(frozen=True)
class Cell:
    """One line of `results/TABLE.jsonl`.

    Attributes:
        name: unique in its table.
        facts: data, method, noise, seed and more.
        command: how to repeat it, as people type it.
        measure: does so and returns what is kept; a run that was cut off goes on where it stopped.
    """

    name: str
    facts: dict[str, Any]
    command: str
    measure: Callable[[Places], Record]


@dataclass(frozen=True)
class Context:
    """What a grid of a specification stands in: its table, the rows (name → method and options), and all other cells.

    `known` holds cells as `TABLE/NAME`, whose run folder has the same name; it is filled while specifications are read.
    """

    table: str
    rows: Mapping[str, str]
    known: Mapping[str, Cell]

    def trained(self, folder: str, places: Places) -> RunFolder:
        """The run of another cell, trained where it is missing: it, or one of the same command in another table."""
        cell = self.known[folder]
        same = (name for name, other in self.known.items() if other.command == cell.command)
        finished = next((found for name in same if is_finished(found := RunFolder(places.runs / name))), None)
        if finished is not None:
            return finished
        cell.measure(places)
        return RunFolder(places.runs / folder)


def is_finished(run: RunFolder) -> bool:
    """Whether its figures are there, and of today's revision of the method."""
    return run.finished and not is_outdated(run.read_config().get("method") or {})


def set_aside_outdated(run: RunFolder, whole: Path | None = None) -> None:
    """Rename a run of an earlier revision of its method, finished or not, to `NAME-revisionN`: its place is free.

    Args:
        whole: the folder that the run is a part of, renamed in its place.
    """
    method = (run.read_config().get("method") or {}) if run.config.exists() else {}
    if not is_outdated(method):
        return
    folder = whole or run.path
    name = f"{folder.name}-revision{method.get('revision', 1)}"
    names = chain([name], (f"{name}-{number}" for number in count(2)))
    folder.rename(next(path for each in names if not (path := folder.with_name(each)).exists()))


def train(source: str, options: list[str], path: Path) -> RunFolder:
    """A finished run of `truepair train`: begun, gone on with, or there already. Where another cell that needs it is at
    it, this one waits.
    """
    folder = RunFolder(path)
    with locked(path, path.parent / ".locks" / path.name, waits=True):
        set_aside_outdated(folder)
        if not is_finished(folder):
            begin = [source, *options, "--out", str(path), "--threads", "1"]
            truepair("train", *(["--resume", str(path)] if folder.config.exists() else begin), "--quiet")
    return folder
