"""One picture under many captions, and one caption on many pictures."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from truepair.audit.result import DuplicateGroup
from truepair.data.pairs import IntArray

LEAST = 20
TIMES_USUAL = 10
"""A picture or a caption that repeats so many times as often as the usual one of the collection does."""
MOST = 20


def unusually_large(groups: Iterable[IntArray], pairs: int) -> list[IntArray]:
    """The groups that are far larger than is usual here, the largest first; at most 20.

    Usual is the group that the middle one of all other pairs is in, alone or not: five captions an image, or the names
    of classes, repeat everywhere, and are not meant. What was found already is no measure of what is usual.

    Args:
        groups: ascending places of the pairs that share something, disjoint.
        pairs: M, how many there are in all.
    """
    ordered = sorted(groups, key=lambda group: (-len(group), int(group[0])))
    sizes = [len(group) for group in ordered]
    found = 0
    for size in sizes[:MOST]:
        pairs -= size
        if size < max(LEAST, TIMES_USUAL * usual_size(sizes[found + 1 :], pairs)):
            break
        found += 1
    return ordered[:found]


def usual_size(sizes: list[int], pairs: int) -> int:
    """Of the group that the middle one of the pairs is in; 1 where it is in none.

    Args:
        sizes: of the groups, the largest first.
    """
    met = 0
    for size in sizes:
        met += size
        if 2 * met >= pairs:
            return size
    return 1


def of_one_picture(images: IntArray, duplicates: Iterable[DuplicateGroup], rows: IntArray) -> list[IntArray]:
    """Ascending places of the pairs of each picture that two or more pairs have; all but the same ones are one.

    Args:
        images: (M,) number of the image of each pair, below M.
        duplicates: those of the audit, told by rows.
        rows: (M,) the ascending rows.
    """
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    same = [group.rows for group in duplicates if group.kind in ("same-image", "near-image")]
    heads = np.unique(images, return_index=True)[1][np.unique(images, return_inverse=True)[1]]
    left = np.concatenate([np.arange(len(rows)), *(np.searchsorted(rows, group) for group in same)])
    right = np.concatenate([heads, *(np.full(len(group), np.searchsorted(rows, group[0])) for group in same)])
    graph = coo_array((np.ones(len(left), dtype=bool), (left, right)), shape=(len(rows), len(rows)))
    number = connected_components(graph, directed=False)[1]
    order = np.argsort(number, kind="stable")
    groups = np.split(order, np.flatnonzero(np.diff(number[order])) + 1)
    return [group for group in groups if len(group) > 1]
