"""A cell of a table: one run of the package, or what is made of several, in processes of their own."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from truepair.errors import InputError
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
    """Whether its figures are there; an InputError where those are of an earlier revision of the method."""
    if not run.finished:
        return False
    if is_outdated(method := run.read_config()["method"]):
        raise InputError(
            f"{run.path} is of an earlier revision of the method {method['name']}, which came to other figures; move "
            "it away to run it again"
        )
    return True


def train(source: str, options: list[str], path: Path) -> RunFolder:
    """A finished run of `truepair train`: begun, gone on with, or there already."""
    folder = RunFolder(path)
    if not is_finished(folder):
        begin = [source, *options, "--out", str(path), "--threads", "1"]
        truepair("train", *(["--resume", str(path)] if folder.config.exists() else begin), "--quiet")
    return folder
