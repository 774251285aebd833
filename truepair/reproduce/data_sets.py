"""The data sets of our own tables: whether those that runs need are there, before the first run."""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from truepair.errors import InputError
from truepair.phrases import counted
from truepair.reproduce.cells import Cell, Places


@cache
def known_data_sets() -> dict[str, tuple[str, str]]:
    """What cells call a data set → its folder below the root, and what is in it; without those that are built in."""
    told = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
    return {name: (folder, each["what"]) for folder, each in told.items() for name in (folder, *each["audited"])}


def check_data_sets(cells: Sequence[Cell], places: Places) -> None:
    """An InputError where the data set of a cell is not there: which, for how many runs, and where it comes from."""
    known = known_data_sets()
    needed = [known[name] for cell in cells if (name := cell.facts.get("data")) in known]
    for folder, what in dict.fromkeys(needed):
        if not (places.data / folder).exists():
            runs = counted(needed.count((folder, what)), "run")
            raise InputError(
                f"{places.data} has no folder {folder}, which {runs} of the table would read. It holds {what}. "
                "Name the folder of the data sets with --root, or choose runs of other data with --data"
            )
