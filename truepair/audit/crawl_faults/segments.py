"""Stretches of a sequence in which the values are high."""

from __future__ import annotations

import numpy as np

from truepair.data.pairs import Array


def high_segments(values: Array, *, least_sum: float, least_length: int) -> list[tuple[int, int]]:
    """Disjoint [start, stop) of largest sum, in order: the best one, then the best on either side of it, and so on.

    Args:
        values: (n,) evidence for each place to be within (above 0) or without (below 0).
        least_sum: of the values of a segment.
        least_length: of a segment; shorter ones are left out, and what lies beside them is looked at all the same.
    """
    found: list[tuple[int, int]] = []
    open_parts = [(0, len(values))]
    while open_parts:
        start, stop = open_parts.pop()
        if stop - start < least_length:
            continue
        first, last, total = best_segment(values[start:stop])
        if total < least_sum:
            continue
        first, last = start + first, start + last
        if last - first >= least_length:
            found.append((first, last))
        open_parts += [(start, first), (last, stop)]
    return sorted(found)


def best_segment(values: Array) -> tuple[int, int, float]:
    """[start, stop) of the largest sum, and that sum; the first and shortest of equals. (0, 0, 0) where none is > 0."""
    if not len(values):
        return 0, 0, 0.0
    total = np.concatenate([[0.0], np.cumsum(values, dtype=np.float64)])
    lowest = np.minimum.accumulate(total)
    stop = int(np.argmax(total - lowest))
    start = int(np.flatnonzero(total[: stop + 1] == lowest[stop])[-1])
    return start, stop, float(total[stop] - lowest[stop])


def met_segment(values: Array, first: int, last: int) -> tuple[int, int]:
    """[start, stop) of the best segment that has a place in [first, last): better ones beside it are others', and the
    values end there. (0, 0) where there is none.
    """
    low, high = 0, len(values)
    while True:
        start, stop, _ = best_segment(values[low:high])
        start, stop = low + start, low + stop
        if start == stop:
            return 0, 0
        if start < last and stop > first:
            return start, stop
        low, high = (stop, high) if stop <= first else (low, start)
