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


def read_splits(shards: Sequence[Shard]) -> tuple[tuple[str, ...], Array]:
    """The names of the splits in alphabetical order, () where no shard has such a column; and which one each row is in.

    Returns:
        names, and (N,) int32 places among them, −1 for rows without a split.
    """
    found: dict[str, int] = {}
    parts = [np.empty(0, dtype=np.int32)]
    for shard in shards:
        if shard.metadata is None or shard.metadata.split is None:
            parts.append(np.full(shard.rows, -1, dtype=np.int32))
            continue
        for values in shard.metadata.batches(shard.metadata.split):
            named_rows = (value.strip() for value in values)
            parts.append(
                np.array([found.setdefault(name, len(found)) if name else -1 for name in named_rows], dtype=np.int32)
            )
    names = tuple(sorted(found))
    places = np.array([*(names.index(name) for name in found), -1], dtype=np.int32)  # the last one is that of −1
    return names, places[np.concatenate(parts)]


class SplitOfEmbeddings(EmbeddingCollection):
    """The rows of a split, read from the spans of the whole that they lie in; rows without a split are a problem.

    Raises:
        InputError: there is no such split.
    """

    writable = True

    def __init__(self, whole: EmbeddingFiles, split: str) -> None:
        names, split_of = read_splits(whole.shards)
        wanted = named(split, names)
        if not wanted:
            raise InputError(
                f"{whole.name} has no split {split!r}; its splits are {', '.join(names[:20])}. Choose one of them, or "
                "leave out the split for all"
            )
        self.whole, self.split = whole, split
        self.rows: IntArray = np.flatnonzero(np.isin(split_of, [names.index(name) for name in wanted]))
        self.name, self.width, self.root = f"{whole.name}/{split}", whole.width, whole.root
        self.problems: list[Problem] = [*whole.problems]
        if nameless := int((split_of < 0).sum()):
            detail = (
                f"{nameless} rows have no split, though others have one; they are in none. Name the split of each row"
            )
            self.problems.append(Problem("rows without a split", whole.name, -1, "no-split", detail))

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
        """As that of the whole; rows of other splits stay, with the weight 1."""
        kept, flagged = np.ones(len(self.whole), dtype=bool), np.zeros(len(self.whole), dtype=bool)
        weights = np.ones(len(self.whole), dtype=np.float32)
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
