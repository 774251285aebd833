"""What each draw says of the share of mismatched pairs.

N pairs, y = 1 where people call one mismatched, q = 1 − p_match what the audit believed. A draw t takes pair i from
the undecided pairs U with the known probability π(i). Given all that was before,

    Z(t) = 1/N · ( Σ_decided y + Σ_U q + (y(i) − q(i))/π(i) )

has the mean A = 1/N · Σ y, whatever q is, and whatever else was looked at in between: pairs chosen in another way are
known, and count as known (difference estimator, Särndal et al., 1992; draws without replacement, Des Raj, 1956; active
testing, Kossen et al., ICML 2021, and LURE, Farquhar et al., ICLR 2021). A good q leaves little to vary.

U are the pairs that are undecided when i is decided. Where several people review, that is not what it was when the page
fetched i: others decided pairs meanwhile, and those of them that this person would have met are skipped. Of a draw by
the order `gain`, π(i) is therefore worked out of U here; what the decision carries says no more than that it was one.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from truepair.data.pairs import Array, BoolArray, IntArray
from truepair.decisions.order import UNIFORM, expected_error

_AHEAD = 0.9  # how far a probability that was given may be from that of the pairs that were undecided then
_BINS = 200


@dataclass(frozen=True)
class Draws:
    """Decided pairs in the order in which they were chosen.

    Attributes:
        size: N.
        total: Σ q of all pairs.
        believed: (T,) q of each.
        pool: (T,) how many pairs were undecided before it, itself among them.
        rest: (T,) Σ q of these.
        probability: (T,) of the draw; 1 where nothing was drawn.
        used: (T,) whether it was drawn, with a probability that an order of review can have had.
        reach: (2, T) the largest q/π and the largest (1 − q)/π among the undecided pairs: how far Z can go.
    """

    size: int
    total: float
    believed: Array
    pool: Array
    rest: Array
    probability: Array
    used: BoolArray
    reach: Array

    def turned(self) -> Draws:
        """The same of the share of matched pairs."""
        return replace(
            self,
            total=self.size - self.total,
            believed=1 - self.believed,
            rest=self.pool - self.rest,
            reach=self.reach[::-1],
        )

    def values(self, y: Array) -> Array:
        """Z of those that were drawn, of the judgements y (T,) of all."""
        values: Array = (_before(y) + self.rest + (y - self.believed) / self.probability) / self.size
        return values[self.used]

    def least(self, y: Array) -> Array:
        """The least that each Z could have been, whichever pair had been drawn."""
        least: Array = (_before(y) + self.rest - self.reach[0]) / self.size
        return least[self.used]

    def mean(self, y: Array) -> float:
        """A, each draw weighing 1/|U|²: what is left to vary goes as |U|. Without draws, what is known and believed."""
        if not self.used.any():
            return float(self.total + (y - self.believed).sum()) / self.size
        weights = self.pool[self.used] ** -2.0
        return float((weights * self.values(y)).sum() / weights.sum())


def draws_of(believed: Array, rows: IntArray, probability: Array, by_gain: BoolArray | None = None) -> Draws:
    """Args:
    believed: (N,) q of all pairs.
    rows: (T,) the decided ones, as they were chosen.
    probability: (T,) of the draws, 0 where nothing was drawn.
    by_gain: (T,) which were drawn by the order `gain`; None: what is given is taken for all.
    """
    here, error = believed[rows], expected_error(believed)
    pool = len(believed) - np.arange(float(len(rows)))
    rest, error_rest = (values.sum() - _before(values[rows]) for values in (believed, error))
    scale = np.maximum(error_rest, 1e-300) / pool  # mean expected error of the undecided pairs
    weighted = error_rest > 1e-9 * max(error.sum(), 1e-300)  # else they are drawn uniformly, as the order has it
    by_order = np.where(weighted, np.minimum(UNIFORM + (1 - UNIFORM) * error[rows] / scale, pool), 1.0) / pool
    if by_gain is not None:
        probability = np.where(by_gain & (probability > 0), by_order, probability)
    used = probability >= _AHEAD * UNIFORM / pool
    ours = np.abs(probability / by_order - 1) <= 1 - _AHEAD
    reach = np.where(ours, _reach(believed, scale), np.stack([believed.max(), 1 - believed.min()])[:, None] / UNIFORM)
    return Draws(
        len(believed),
        float(believed.sum()),
        here,
        pool,
        rest,
        np.where(used, probability, 1.0),
        used,
        reach * pool / _AHEAD,
    )


def _reach(believed: Array, scale: Array) -> Array:
    """(2, T) the largest q/(|U| π) and (1 − q)/(|U| π) that any of the pairs can have, by the order `gain`.

    Args:
        scale: (T,) mean expected error of the undecided pairs.
    """
    edges = np.linspace(0, 1, _BINS + 1)
    filled = np.flatnonzero(np.bincount(np.minimum((believed * _BINS).astype(int), _BINS - 1)))
    below, above = edges[filled], edges[filled + 1]
    least_error = np.minimum(*map(expected_error, (below, above)))  # it is concave: least at an end
    weight = UNIFORM + (1 - UNIFORM) * least_error / scale[:, None]
    return np.stack([(above / weight).max(axis=1), ((1 - below) / weight).max(axis=1)])


def _before(values: Array) -> Array:
    """Sum of all earlier ones, 0 at the first."""
    return np.cumsum(values) - values
