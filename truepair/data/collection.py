"""What is audited: pairs as their source gives them, whatever the source, and the entries that cannot be used."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from truepair.data.pairs import Array, BoolArray, IntArray, Pairs

_T = TypeVar("_T")


@dataclass(frozen=True)
class Problem:
    """An entry that cannot be used, or should be looked at, and why.

    Attributes:
        entry: what people know it by: the id of the pair, else the name of a file.
        file: the file it stands in, relative to the input.
        row: its place in that file from 0 (row of a table or an array, member of a shard); −1 for a whole file.
        reason: what kind, in a word or two joined by hyphens: "missing-picture", "broken-picture", "nan-row", …
        detail: the same in a sentence, with what was found and what would help.
        used: whether the entry was audited all the same ("long-caption" is cut, not dropped).
    """

    entry: str
    file: str
    row: int
    reason: str
    detail: str
    used: bool = False


class Collection(ABC):
    """The usable pairs of a source, numbered from 0 in the order of the source, and the problems met on the way.

    Rows are read in ranges, so that a collection may be far larger than the memory.

    Attributes:
        name: for messages and reports ("my_data", "fashion_precomp/train"); never a whole path.
        problems: entries that were left out or altered when the source was opened.
    """

    name: str
    problems: Sequence[Problem]

    @abstractmethod
    def __len__(self) -> int:
        """Number of usable pairs."""

    @abstractmethod
    def ids(self, start: int, stop: int) -> list[str]:
        """What people know the pairs [start, stop) by; unique within the collection."""

    @abstractmethod
    def captions(self, start: int, stop: int) -> list[str]:
        """The captions of the pairs [start, stop); empty strings where the source has no words."""

    def image_names(self, start: int, stop: int) -> list[str]:
        """The names of the images of the pairs [start, stop)."""
        return self.ids(start, stop)

    def source_rows(self, rows: IntArray) -> IntArray:
        """The places of some pairs in their source, from 0."""
        return rows

    def picture(self, row: int) -> Array | None:
        """(H, W, 3) uint8 pixels of the image of a pair, longer side at most 192; None where there are none."""
        return None

    def mismatched(self) -> BoolArray | None:
        """(N,) True where a pair is known to be mismatched; None when nobody knows. Only ever used for scoring."""
        return None


class PairsCollection(Collection):
    """A collection with features to train on.

    Attributes:
        pairs: row p of its table is pair p of the collection; its ids are those of the collection.
    """

    def __init__(self, pairs: Pairs, *, name: str | None = None, problems: Sequence[Problem] = ()) -> None:
        self.pairs = pairs
        self.name = name or pairs.name
        self.problems = problems

    def __len__(self) -> int:
        return len(self.pairs)

    def ids(self, start: int, stop: int) -> list[str]:
        return self.pairs.ids(start, stop)

    def captions(self, start: int, stop: int) -> list[str]:
        return [self.pairs.texts.captions[row] for row in self.pairs.text_index[start:stop]]

    def image_names(self, start: int, stop: int) -> list[str]:
        return [self.pairs.images.ids[row] for row in self.pairs.image_index[start:stop]]

    def source_rows(self, rows: IntArray) -> IntArray:
        return self.pairs.source_rows[rows]

    def picture(self, row: int) -> Array | None:
        pictures = self.pairs.images.pictures
        return None if pictures is None else pictures[self.pairs.image_index[row]]

    def mismatched(self) -> BoolArray | None:
        return self.pairs.mismatched


class EmbeddingCollection(Collection):
    """A collection whose two sides are vectors of one space already (CLIP's, say); nothing needs to be trained.

    Rows may be unusable (NaN, infinite, all zero): whoever reads them leaves these out and lists them.

    Attributes:
        width: D of the vectors, the same on both sides.
    """

    width: int

    @abstractmethod
    def read(self, start: int, stop: int) -> tuple[Array, Array]:
        """Image and text vectors of the pairs [start, stop), (n, D) float32 each, as stored (of any length).

        Reads only these rows, and keeps nothing: the memory a scan needs does not grow with the collection.
        """

    def read_side(self, side: int, start: int, stop: int) -> Array:
        """The vectors of the images (0) or of the texts (1) alone."""
        return self.read(start, stop)[side]

    @abstractmethod
    def fingerprint(self) -> str:
        """A short hash that changes when the collection does (names, sizes, times of its files), for exact resume."""

    def coming(self, ranges: Iterable[tuple[_T, int, int]]) -> Iterable[tuple[_T, int, int]]:
        """The same (anything, start, stop), each read when it comes; a store may fetch the next ones meanwhile."""
        return ranges

    def place(self, row: int) -> tuple[str, int]:
        """The file a row stands in, and its place there from 0."""
        return self.name, row
