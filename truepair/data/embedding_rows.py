"""Rows of embeddings: which of them can be used, and which are captions of one image.

Images are told apart by all rows, the unusable ones included: a row left out, or an image of more captions than the
others, must not make one picture several images, some of them in train and some in test.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from truepair.data.pairs import Array, BoolArray, IntArray
from truepair.data.repeats import differ

UNUSABLE = {
    "nan-row": "a number of the image's or the text's vector is NaN or infinite",
    "zero-row": "the image's or the text's vector is all zeros",
}
"""Why a row cannot be used; audits store the place in this order."""


class RowProblem(NamedTuple):
    """A row that cannot be used: its place from 0, and why (a key of `UNUSABLE`)."""

    row: int
    reason: str


class EmbeddingRows:
    """What is noted of rows while they are read in ranges, one after the other: a few bytes a row."""

    def __init__(self) -> None:
        self._usable: list[BoolArray] = []
        self._new_names: list[BoolArray] = []  # whether a row differs from the one before
        self._new_vectors: list[BoolArray] = []
        self._new_finite: list[BoolArray] = []  # the same, compared with the last image that can be used
        self._nameless: list[BoolArray] = []
        self._last: tuple[str, Array] | None = None
        self._last_finite: Array | None = None
        self._count = 0

    def add(self, images: Array, texts: Array, names: Sequence[str]) -> tuple[IntArray, list[RowProblem]]:
        """Notes the next rows, (n, D) each. Returns which of them can be used, from 0, and what is wrong with the rest,
        by rows of the whole.
        """
        if not len(images):
            return np.empty(0, dtype=np.int64), []
        finite = np.asarray(np.isfinite(images).all(axis=1) & np.isfinite(texts).all(axis=1))
        usable = np.asarray(finite & images.any(axis=1) & texts.any(axis=1))
        self._note_images(images, names)
        self._usable.append(usable)
        bad = np.flatnonzero(~usable).tolist()
        problems = [RowProblem(self._count + row, "zero-row" if finite[row] else "nan-row") for row in bad]
        self._count += len(images)
        return np.flatnonzero(usable), problems

    def _note_images(self, images: Array, names: Sequence[str]) -> None:
        name, vector = self._last or ("", images[:0])
        listed = np.array([name, *names], dtype=object)
        self._new_names.append(differ(listed[1:], listed[:-1]))
        self._nameless.append(np.array([not name for name in names]))
        self._new_vectors.append(_changes(vector, images))
        good = np.flatnonzero(np.isfinite(images).all(axis=1) & images.any(axis=1))
        changed = np.zeros(len(images), dtype=np.bool_)
        if len(good):
            changed[good] = _changes(images[:0] if self._last_finite is None else self._last_finite, images[good])
            self._last_finite = np.array(images[good[-1:]])
        self._new_finite.append(changed)
        self._last = names[-1], np.array(images[-1:])

    def images(self) -> IntArray:
        """(usable rows,) int64: the image of each, numbered from 0 in their order.

        - Where the length of all runs of rows of equal vectors has a common divisor k, each k rows are an image, and
          the next k belong to it, too, if they bear its name.
        - Else rows in a row of one name are an image, and rows without a name as long as their vectors are equal.
        - Else, where no two rows in a row share a name, those of equal vectors are an image if most rows stand in such
          runs; single repeated vectors may be two products with one photograph.
        """
        if not self._count:
            return np.empty(0, dtype=np.int64)
        usable, vectors = np.concatenate(self._usable), _first_begins(self._new_vectors)
        names, nameless = _first_begins(self._new_names), np.concatenate(self._nameless)
        named = ~nameless & ~np.append(True, nameless[:-1])  # a row and the one before
        each = _common_length(vectors)
        if each > 1:
            begins = (np.arange(self._count) % each == 0) & ~(named & ~names & ~vectors)
        elif (named & ~names).any():
            begins = np.where(named, names, vectors)
        else:
            begins = _first_begins(self._new_finite)
            lengths = np.diff(np.flatnonzero(np.append(begins, True)))
            if 2 * lengths[lengths > 1].sum() <= self._count:
                begins = np.ones_like(begins)
        image = np.cumsum(begins)[usable]
        return np.cumsum(np.diff(image, prepend=0) > 0) - 1


def same_length(images: IntArray) -> int:
    """How many rows each image has, if they all have as many; else 1."""
    counts = np.bincount(images) if len(images) else np.ones(1, dtype=np.int64)
    return int(counts[0]) if (counts == counts[0]).all() else 1


def _changes(before: Array, rows: Array) -> BoolArray:
    """(n,) whether a row differs bit by bit from the one before it; True for the first where there is none before."""
    whole = np.concatenate([before, rows])
    changed = differ(whole[1:], whole[:-1]) if len(whole) > 1 else np.empty(0, dtype=np.bool_)
    return changed if len(before) else np.append(True, changed)


def _first_begins(parts: Sequence[BoolArray]) -> BoolArray:
    begins = np.concatenate(parts)
    begins[0] = True
    return begins


def _common_length(begins: BoolArray) -> int:
    """The greatest common divisor of the lengths of runs that begin at the rows marked."""
    return int(np.gcd.reduce(np.diff(np.flatnonzero(np.append(begins, True)))))
