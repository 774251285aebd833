"""Which pairs of a collection an audit keeps, and the weight of each."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from truepair.audit.result import AuditResult
from truepair.data.pairs import Array, BoolArray, IntArray

_ROWS_AT_ONCE = 65_536


@dataclass(frozen=True)
class Selection:
    """One entry for each row of the collection.

    Attributes:
        kept: (N,) whether the pair was scored, not flagged, and is at least as probable as the option `keep` asks.
        flagged: (N,) whether it was flagged; a pair that could not be scored is neither kept nor flagged.
        weights: (N,) float32 in [0, 1]: p_match of the pairs that are not flagged, 0 of all others.
    """

    kept: BoolArray
    flagged: BoolArray
    weights: Array

    @property
    def kept_rows(self) -> IntArray:
        """The rows of the kept pairs, ascending."""
        return np.flatnonzero(self.kept)

    def ranges(self) -> Iterator[tuple[int, int]]:
        """All rows, a few ten thousand at a time."""
        for start in range(0, len(self.kept), _ROWS_AT_ONCE):
            yield start, min(start + _ROWS_AT_ONCE, len(self.kept))


def selection_of(result: AuditResult) -> Selection:
    """What the verdict keeps."""
    count, flagged = len(result.collection), result.verdict.flagged
    selection = Selection(np.zeros(count, np.bool_), np.zeros(count, np.bool_), np.zeros(count, np.float32))
    selection.kept[result.rows] = ~flagged & (result.verdict.p_match >= float(result.options.get("keep", 0.0)))
    selection.flagged[result.rows] = flagged
    selection.weights[result.rows] = np.where(flagged, 0, result.verdict.p_match)
    return selection
