"""What `open` gives: pairs as their source has them, whatever the source, and the entries that cannot be used."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import numpy as np

from truepair.data.embedding_rows import UNUSABLE, EmbeddingRows, RowProblem, same_length
from truepair.data.pairs import Array, BoolArray, Images, IntArray, Pairs, Texts
from truepair.data.selection import Selection
from truepair.device import check_memory
from truepair.errors import InputError
from truepair.phrases import counted

_ROWS_AT_ONCE = 65_536
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
        used: whether the entry is used all the same ("long-caption" is cut, not dropped).
    """

    entry: str
    file: str
    row: int
    reason: str
    detail: str
    used: bool = False

    def __str__(self) -> str:
        """The file, what the entry is known by, and its row where a table knows it by its picture."""
        if self.row < 0 or not self.detail.startswith(self.entry):
            place = self.file if self.row < 0 else f"{self.file}, {self.entry}"
        else:
            counted = self.entry.startswith("row ") or self.file.endswith(".tar")
            place = self.file if counted else f"{self.file}, row {self.row}"
        return f"{place}: {self.detail}"


class Collection(ABC):
    """The usable pairs of a source, numbered from 0 in the order of the source, and the problems met on the way.

    Rows are read in ranges, so that a collection may be far larger than the memory.

    Attributes:
        name: for messages and reports ("my_data", "fashion_precomp/train"); never a whole path.
        problems: entries that were left out or altered when the source was opened.
        writable: whether `write` can write these pairs in a format of their own.
        written_from_pairs: whether it writes the pairs as they are, with noise that was injected into them, instead of
            parts of the source's files.
    """

    name: str
    problems: Sequence[Problem]
    writable: bool = False
    written_from_pairs: bool = False

    def __repr__(self) -> str:
        problems = f", {counted(len(self.problems), 'problem')}" if self.problems else ""
        return f"{type(self).__name__}({self.name!r}: {counted(len(self), 'pair')}{problems})"

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

    def place(self, row: int) -> tuple[str, int]:
        """The file a pair stands in, and its place there from 0, as far as that is known."""
        return self.name, row

    def load(self) -> Pairs:
        """The same pairs as arrays, in the same order and of the same ids; all of them, so they must fit the memory.

        Raises:
            InputError: they do not, or none can be used.
        """
        raise InputError(f"{self.name} cannot be read into arrays")

    def write(self, selection: Selection, folder: Path) -> None:
        """Write the kept pairs into a new folder, in the format of the source, to be opened in its place.

        Raises:
            InputError: these pairs have no format of their own, or are not those of its files any more.
        """
        raise InputError(
            f"{self.name} has no format of its own that can be written. Export ids, csv, jsonl or parquet instead"
        )


class PairsCollection(Collection):
    """A collection with features to train on.

    Attributes:
        pairs: row p of its table is pair p of the collection; its ids are those of the collection.
    """

    def __init__(self, pairs: Pairs, *, problems: Sequence[Problem] = ()) -> None:
        self.pairs, self.name, self.problems = pairs, pairs.name, problems

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
        return self.pairs.images.picture(int(self.pairs.image_index[row]))

    def mismatched(self) -> BoolArray | None:
        return self.pairs.mismatched

    def place(self, row: int) -> tuple[str, int]:
        return self.name, int(self.pairs.source_rows[row])

    def load(self) -> Pairs:
        return self.pairs

    def check_pairs_are_of_files(self) -> None:
        """Raises InputError: noise was injected, so that the files do not hold these pairs."""
        if self.pairs.mismatched is not None and self.pairs.mismatched.any():
            raise InputError(
                f"{self.name}: noise was injected, and its pairs are not those of its files. Export ids, csv, jsonl or "
                "parquet instead"
            )


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

    def load(self) -> Pairs:
        """Rows that are not finite or all zero are left out, and told in `problems`. Rows in a row of one image (of
        one name, or equal bit by bit) are captions of it, however many; see `EmbeddingRows.images`.
        """
        count, width = len(self), self.width
        check_memory(8 * count * width, f"{self.name}: its {count:,} pairs of vectors (take some of the shards)")
        sides = np.empty((count, width), np.float32), np.empty((count, width), np.float32)
        captions, names, ids, rows = list[str](), list[str](), list[str](), list[IntArray]()
        noted, problems = EmbeddingRows(), list[Problem]()
        kept = 0
        for start in range(0, count, _ROWS_AT_ONCE):
            stop = min(start + _ROWS_AT_ONCE, count)
            read = self.read(start, stop)
            told = (self.captions(start, stop), self.image_names(start, stop), self.ids(start, stop))
            good, bad = noted.add(*read, told[1])
            for side, vectors in zip(sides, read, strict=True):
                side[kept : kept + len(good)] = vectors[good]
            kept += len(good)
            rows.append(start + good)
            for found, values in zip((captions, names, ids), told, strict=True):
                found += [values[row] for row in good.tolist()]
            problems += [self.row_problem(entry, told[2][entry.row - start]) for entry in bad]
        if not kept:
            raise InputError(f"{self.name}: no row can be used, all are zero or not finite. Compute them again")
        known = {(problem.entry, problem.reason) for problem in self.problems}
        self.problems = [*self.problems, *(entry for entry in problems if (entry.entry, entry.reason) not in known)]
        images, texts = (side[:kept] for side in sides)
        index = noted.images()
        firsts = np.flatnonzero(np.diff(index, prepend=-1))
        return Pairs(
            images=Images(
                images if len(firsts) == kept else images[firsts],
                tuple(names[row] for row in firsts.tolist()),
                copies=same_length(index) if kept == count else 1,
            ),
            texts=Texts(tuple(captions), tuple(ids), texts),
            image_index=index,
            text_index=np.arange(kept, dtype=np.int64),
            name=self.name,
            source_rows=np.concatenate(rows),
            pair_ids=ids,
        )

    def row_problem(self, found: RowProblem, name: str | None = None) -> Problem:
        """A row that cannot be used, as an entry of the list of problems; its id is looked up where it is not given."""
        entry = self.ids(found.row, found.row + 1)[0] if name is None else name
        return Problem(entry, *self.place(found.row), found.reason, f"{UNUSABLE[found.reason]}; embed this pair again")
