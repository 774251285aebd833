"""Reading scattered rows of a collection in ranges, as collections are read."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise

import numpy as np

from truepair.data.pairs import Array, IntArray
from truepair.phrases import printable

GAP = 64
MOST = 4096


def row_ranges(rows: IntArray) -> Iterator[tuple[slice, int, int]]:
    """Ascending rows in pieces that lie close together: the slice of `rows`, and the range [start, stop) to read.

    A range spans at most 4096 rows, of which at most 64 in a row are read for nothing.
    """
    breaks = np.flatnonzero(np.diff(rows) > GAP) + 1
    for first, end in pairwise([0, *breaks.tolist(), len(rows)]):
        while first < end:
            start = int(rows[first])
            last = first + int(np.searchsorted(rows[first:end], start + MOST))
            yield slice(first, last), start, int(rows[last - 1]) + 1
            first = last


def words_at(read: Callable[[int, int], list[str]], rows: IntArray) -> list[str]:
    """What `read(start, stop)` gives for ascending rows, one string each; half characters become question marks."""
    found: list[str] = []
    for piece, start, stop in row_ranges(rows):
        here = read(start, stop)
        found += [printable(here[row - start]) for row in rows[piece].tolist()]
    return found


def vectors_at(read: Callable[[int, int], Array], rows: IntArray) -> Array:
    """What `read(start, stop)` gives for ascending rows, (n, D) float32."""
    parts = [np.asarray(read(start, stop))[rows[piece] - start] for piece, start, stop in row_ranges(rows)]
    return np.concatenate(parts).astype(np.float32, copy=False)
