"""How probable it is that a pair of some score matches, given the share of mismatched ones and how those score."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from truepair.data.pairs import Array

SUREST = 1e-4


def logit(probability: Array) -> Array:
    """log p/(1 − p), with p kept within [1e-4, 1 − 1e-4]; NaN stays NaN."""
    kept = np.clip(probability, SUREST, 1 - SUREST)
    odds: Array = np.log(kept) - np.log1p(-kept)
    return odds


@dataclass(frozen=True)
class Calibration:
    """p_match as an increasing function of the score: linear log odds between knots, and beyond them."""

    knots: Array
    log_odds: Array

    @classmethod
    def of(cls, score: Array, synthetic: Array, synthetic_weights: Array, share: float) -> Calibration:
        """1 − π f₀/f, with f₀/f from an isotonic regression of "synthetic" on the score, both weighing the same.

        Args:
            score, synthetic: (M,) of the given pairs and (P,) of synthetic mismatches.
            synthetic_weights: (P,), of the sum 1.
            share: π.
        """
        from sklearn.isotonic import IsotonicRegression

        values = np.concatenate([score, synthetic])
        known = np.concatenate([np.zeros(len(score)), np.ones(len(synthetic))])
        weights = np.concatenate([np.full(len(score), 1 / len(score)), synthetic_weights])
        order = np.argsort(values, kind="stable")
        fitted = IsotonicRegression(increasing=False).fit_transform(
            values[order], known[order], sample_weight=weights[order]
        )
        edges = np.flatnonzero(np.diff(fitted)) + 1
        starts, stops = np.concatenate([[0], edges]), np.concatenate([edges, [len(fitted)]])
        knots = np.array([np.median(values[order[a:b]]) for a, b in zip(starts, stops, strict=True)])
        level = fitted[starts]
        # A block without a synthetic one, or with hardly any: the odds of one more or less are all that can be said.
        least = 0.5 / len(synthetic) / (0.5 / len(synthetic) + weights.sum() / 2)
        odds = np.clip(level, least, 1 - 1e-9) / (1 - np.clip(level, least, 1 - 1e-9))
        if len(knots) == 1:  # the ends of the one block keep the order
            knots, odds = values[order[[0, -1]]], np.repeat(odds, 2)
        return cls(*_strictly_increasing(knots, logit(1 - share * odds)))

    def __call__(self, score: Array) -> Array:
        """p_match of every score, within [1e-6, 1 − 1e-6], larger for a larger score."""
        inner = np.interp(score, self.knots, self.log_odds)
        slope = 1 / max(float(np.std(self.knots)), 1e-12) if len(self.knots) > 1 else 0.0
        beyond = np.minimum(score - self.knots[0], 0) + np.maximum(score - self.knots[-1], 0)
        # Beyond the last knots only the order is known: a gentle slope keeps it.
        inner = inner + 0.5 * np.tanh(beyond * slope)
        p_match: Array = 1 / (1 + np.exp(-inner))
        return np.clip(p_match, 1e-6, 1 - 1e-6)


def _strictly_increasing(knots: Array, log_odds: Array) -> tuple[Array, Array]:
    """The knots with distinct places; equal log odds at the clipped ends are spread by a little, in order.

    At the upper end by more: so close to 1 the next float32 is far away in log odds.
    """
    places, first = np.unique(knots, return_index=True)
    levels = np.maximum.accumulate(log_odds[first])
    spread = 1e-3 * np.arange(len(levels))
    top = levels >= logit(np.array(1 - SUREST))
    spread[top] += np.linspace(0, 1, int(top.sum()))
    return places, levels + spread
