"""Which pairs of a collection are written anew, and the weight of each."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from truepair.data.pairs import Array, BoolArray, IntArray

_ROWS_AT_ONCE = 65_536


@dataclass(frozen=True)
class Selection:
    """One entry for each row of the collection.

    Attributes:
        kept: (N,) whether the pair is written.
        flagged: (N,) whether it was flagged as mismatched; a pair that could not be scored is neither.
        weights: (N,) float32 in [0, 1]: how far to trust each pair; 0 for those that are flagged or were not scored.
    """

    kept: BoolArray
    flagged: BoolArray
    weights: Array

    @classmethod
    def everything(cls, count: int) -> Selection:
        """All pairs kept, each with weight 1."""
        return cls(np.ones(count, np.bool_), np.zeros(count, np.bool_), np.ones(count, np.float32))

    @property
    def kept_rows(self) -> IntArray:
        """The rows of the kept pairs, ascending."""
        return np.flatnonzero(self.kept)

    def ranges(self) -> Iterator[tuple[int, int]]:
        """All rows, a few ten thousand at a time."""
        for start in range(0, len(self.kept), _ROWS_AT_ONCE):
            yield start, min(start + _ROWS_AT_ONCE, len(self.kept))
