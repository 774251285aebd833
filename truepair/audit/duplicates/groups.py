"""From a class for every pair to groups of pairs that share it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from truepair.data.pairs import Array, IntArray


def numbered(values: Array) -> IntArray:
    """(M,) values → (M,) int64 class numbers from 0; equal values share a number."""
    return np.asarray(np.unique(values, return_inverse=True)[1], dtype=np.int64)


def groups_of(classes: IntArray, *, varying: Sequence[IntArray] = (), most: int) -> list[IntArray]:
    """Positions of the pairs that share a class, ascending, a group each; the largest first, then by first pair.

    Args:
        classes: (M,) the class of each pair; −1 is none.
        varying: (M,) arrays that must each take two or more values within a group.
        most: of so many groups the largest are kept.
    """
    order = np.argsort(classes, kind="stable")
    order = order[np.searchsorted(classes[order], 0) :]
    if not len(order):
        return []
    starts = np.flatnonzero(np.diff(classes[order], prepend=-1))
    sizes = np.diff(starts, append=len(order))
    wanted = sizes > 1
    for values in varying:
        inside = values[order]
        wanted &= np.minimum.reduceat(inside, starts) != np.maximum.reduceat(inside, starts)
    starts, sizes = starts[wanted], sizes[wanted]
    ranked = np.lexsort((order[starts], -sizes))[:most]
    return [order[starts[group] : starts[group] + sizes[group]] for group in ranked]
