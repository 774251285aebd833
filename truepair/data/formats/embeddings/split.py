"""One split of embeddings whose metadata name the split of each row."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from truepair.data.collection import EmbeddingCollection, Problem
from truepair.data.formats.embeddings.shards import Shard
from truepair.data.pairs import Array, IntArray
from truepair.data.selection import Selection
from truepair.data.splits import named
from truepair.errors import InputError

if TYPE_CHECKING:
    from truepair.data.formats.embeddings.files import EmbeddingFiles

_SPAN = 65_536
_T = TypeVar("_T")


def split_names(shards: Sequence[Shard]) -> tuple[str, ...]:
    """The names in the split columns of all shards, in alphabetical order; () where no shard has such a column."""
    return tuple(sorted({name for _, names in _split_columns(shards) for name in names if name}))


def rows_of(shards: Sequence[Shard], wanted: Sequence[str]) -> IntArray:
    """The rows, ascending, whose split is among the wanted; those of a shard without the column are in none."""
    starts = np.cumsum([0, *(shard.rows for shard in shards)])
    found = [np.empty(0, dtype=np.int64)]
    at = dict.fromkeys(range(len(shards)), 0)
    for number, names in _split_columns(shards):
        found.append(starts[number] + at[number] + np.flatnonzero(np.isin(names, wanted)))
        at[number] += len(names)
    return np.concatenate(found)


def _split_columns(shards: Sequence[Shard]) -> Iterator[tuple[int, list[str]]]:
    """(number of the shard, some of its rows' splits), a few ten thousand rows at a time."""
    for number, shard in enumerate(shards):
        if shard.metadata is not None and shard.metadata.split is not None:
            for names in shard.metadata.batches(shard.metadata.split):
                yield number, [name.strip() for name in names]


class SplitOfEmbeddings(EmbeddingCollection):
    """The rows of a split, read from the spans of the whole that they lie in.

    Raises:
        InputError: there is no such split, or rows without a name of their split beside rows with one.
    """

    writable = True

    def __init__(self, whole: EmbeddingFiles, split: str) -> None:
        known = split_names(whole.shards)
        wanted = named(split, known)
        if not wanted:
            raise InputError(
                f"{whole.name} has no split {split!r}; its splits are {', '.join(known[:20])}. Choose one of them, or "
                "leave out the split for all"
            )
        self.whole, self.split = whole, split
        self.rows = rows_of(whole.shards, wanted)
        self.name, self.width, self.root = f"{whole.name}/{split}", whole.width, whole.root
        nameless = len(whole) - len(rows_of(whole.shards, known))
        detail = f"{nameless} rows have no split, though others have one; they are in none. Name the split of each row"
        self.problems: list[Problem] = [
            *whole.problems,
            *([Problem("rows without a split", whole.name, -1, "no-split", detail)] if nameless else []),
        ]

    def __len__(self) -> int:
        return len(self.rows)

    def read(self, start: int, stop: int) -> tuple[Array, Array]:
        return self.read_side(0, start, stop), self.read_side(1, start, stop)

    def read_side(self, side: int, start: int, stop: int) -> Array:
        pieces = [self.whole.read_side(side, low, high)[rows - low] for low, high, rows in self._spans(start, stop)]
        return np.concatenate(pieces) if pieces else np.empty((0, self.width), dtype=np.float32)

    def ids(self, start: int, stop: int) -> list[str]:
        return self._told(self.whole.ids, start, stop)

    def captions(self, start: int, stop: int) -> list[str]:
        return self._told(self.whole.captions, start, stop)

    def image_names(self, start: int, stop: int) -> list[str]:
        return self._told(self.whole.image_names, start, stop)

    def source_rows(self, rows: IntArray) -> IntArray:
        return self.rows[rows]

    def picture(self, row: int) -> Array | None:
        return self.whole.picture(int(self.rows[row]))

    def place(self, row: int) -> tuple[str, int]:
        return self.whole.place(int(self.rows[row]))

    def fingerprint(self) -> str:
        return f"{self.whole.fingerprint()}-{self.split}"

    def write(self, selection: Selection, folder: Path) -> None:
        kept, flagged = np.zeros((2, len(self.whole)), dtype=bool)
        weights = np.zeros(len(self.whole), dtype=np.float32)
        for values, chosen in ((kept, selection.kept), (flagged, selection.flagged), (weights, selection.weights)):
            values[self.rows] = chosen
        self.whole.write(Selection(kept, flagged, weights), folder)

    def _told(self, what: Callable[[int, int], list[_T]], start: int, stop: int) -> list[_T]:
        found = list[_T]()
        for low, high, rows in self._spans(start, stop):
            values = what(low, high)
            found += [values[row - low] for row in rows.tolist()]
        return found

    def _spans(self, start: int, stop: int) -> Iterator[tuple[int, int, IntArray]]:
        """(first row, end, rows wanted) of spans of the whole, each short enough for the memory."""
        rows = self.rows[max(start, 0) : stop]
        while len(rows):
            here = rows[: int(np.searchsorted(rows, rows[0] + _SPAN))]
            yield int(here[0]), int(here[-1]) + 1, here
            rows = rows[len(here) :]
