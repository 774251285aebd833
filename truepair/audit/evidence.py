"""What the witnesses say of pairs, as columns of one table, and on the scale of log odds."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from truepair.data.pairs import Array, IntArray

SUREST = 1e-4


@dataclass(frozen=True)
class Witness:
    """Attributes:
    columns: similarity and indicators, name → (n,) float32.
    evidence: (n, d) float64, larger = better matched: what the verdict is made from.
    """

    columns: dict[str, Array]
    evidence: Array

    def take(self, rows: IntArray) -> Witness:
        return Witness({name: values[rows] for name, values in self.columns.items()}, self.evidence[rows])

    @property
    def similarity(self) -> Array:
        return self.columns["similarity"]

    @property
    def indicators(self) -> dict[str, Array]:
        return {name: values for name, values in self.columns.items() if name != "similarity"}


def evidence_of(columns: dict[str, Array], memory: Array | None = None) -> Array:
    """(n, d) float64: log odds of the matching probability, those of the neighbours' agreement, and the memory's.

    The other indicators say the same again, or little (`certainty`), and are there for people. `log_odds` is taken out
    of the columns: it is no indicator.

    Args:
        columns: what a bank says (`indicators.Scores.columns`).
        memory: (n,) log odds of what training came to believe, where there was one.
    """
    sides = [columns.pop("log_odds").astype(np.float64), logit(columns["neighbours"].astype(np.float64))]
    return np.stack(sides if memory is None else [*sides, memory], axis=1)


def logit(probability: Array) -> Array:
    """log p/(1 − p), with p kept within [1e-4, 1 − 1e-4]; NaN stays NaN."""
    kept = np.clip(probability, SUREST, 1 - SUREST)
    odds: Array = np.log(kept) - np.log1p(-kept)
    return odds
