"""What the decided pairs teach about the others: the verdict and the indicators weighed anew.

The log odds of a mismatch are a + b · (log odds of the verdict) − w · (indicators), a logistic regression on the
decided pairs. It starts from the verdict itself (a = 0, b = 1, w = 0), from which normal priors let it go only as far
as the decisions say: the probabilities are a mean over priors of several widths, each weighing as probable as it makes
the decisions (evidence, by Laplace's approximation; MacKay, 1992). A decision is a mistake with a small probability, so
that a single one moves little.

Pairs that were reviewed since they look worst say little of the others: beyond the interval of the share of mismatched
pairs the regression is not believed.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product

import numpy as np

from truepair.correspondence.calibration import logit
from truepair.data.pairs import Array, BoolArray, IntArray
from truepair.decisions.estimate import MISTAKES

SLOPE = 0.5  # prior standard deviation of b
SHIFTS, WEIGHTS = (0.1, 0.5, 2.0), (0.02, 0.1, 0.3, 1.0)  # those of a and w that are tried; w in units of the spread
SUREST = 1e-6
FARTHEST = 30.0  # that log odds are moved


def learned(
    p_match: Array, similarity: Array, indicators: Mapping[str, Array], rows: IntArray, matched: BoolArray
) -> tuple[Array, dict[str, float]]:
    """p_match of all pairs after the decisions about some, and the weights that were learned.

    Args:
        p_match: (M,) of the verdict.
        similarity, indicators: (M,) each; NaN is unknown and counts as the mean.
        rows: (D,) places of the decided pairs.
        matched: (D,) whether people say that they match.

    Returns:
        (M,) float64 in (0, 1); that of the verdict where nothing is decided. Decided pairs are not fixed here.
    """
    if not len(rows):
        return p_match.astype(np.float64), {}
    columns = {name: logit(values.astype(np.float64)) for name, values in indicators.items()}
    columns["similarity"] = similarity.astype(np.float64)
    told = np.stack([_standard(values) for values in columns.values()], axis=1)
    table = np.column_stack([np.ones(len(told)), -logit(p_match.astype(np.float64)), -told])
    fits = [_fit(table[rows], ~matched, shift, width) for shift, width in product(SHIFTS, WEIGHTS)]
    believed = np.exp(np.array([evidence for _, evidence in fits]) - max(evidence for _, evidence in fits))
    believed /= believed.sum()
    p = sum(part / (1 + np.exp(np.clip(table @ fit, -50, 50))) for part, (fit, _) in zip(believed, fits, strict=True))
    weights = sum(part * fit for part, (fit, _) in zip(believed, fits, strict=True))
    names = ("shift", "verdict", *columns)
    return np.clip(p, SUREST, 1 - SUREST), {
        name: round(float(weight), 4) for name, weight in zip(names, weights, strict=True)
    }


def within(p_match: Array, decided: BoolArray, low: float, high: float) -> Array:
    """p_match with the log odds of all undecided pairs moved alike, until the mean of 1 − p_match is in [low, high].

    Left alone where it is, and where the decided pairs alone exceed the interval: they refute it then.

    Args:
        p_match: (M,) in [0, 1]; that of decided pairs is 0 or 1.
        decided: (M,) bool.
        low, high: ends of the interval of the share of mismatched pairs, in [0, 1].
    """
    from scipy.optimize import brentq

    mean = float((1 - p_match).mean())
    end = min(max(mean, low), high)
    others, known = np.clip(p_match[~decided], SUREST, 1 - SUREST), float((1 - p_match[decided]).sum())
    odds = np.log(others) - np.log1p(-others)

    def beyond(shift: float) -> float:
        return float(known + (1 / (1 + np.exp(np.clip(odds + shift, -50, 50)))).sum()) / len(p_match) - end

    if end == mean or beyond(FARTHEST) > 0 or beyond(-FARTHEST) < 0:
        return p_match
    moved = p_match.copy()
    moved[~decided] = 1 / (1 + np.exp(-np.clip(odds + brentq(beyond, -FARTHEST, FARTHEST), -50, 50)))
    return moved


def _fit(table: Array, mismatch: BoolArray, shift: float, width: float) -> tuple[Array, float]:
    """Weights, the most probable ones after the decisions, and log evidence of these priors."""
    from scipy.optimize import minimize

    start = np.zeros(table.shape[1])
    start[1] = 1
    precision = np.full(len(start), width**-2.0)
    precision[:2] = shift**-2.0, SLOPE**-2.0
    sign = np.where(mismatch, 1.0, -1.0)

    def loss(weights: Array) -> tuple[float, Array]:
        p = 1 / (1 + np.exp(-np.clip(sign * (table @ weights), -50, 50)))  # of what was decided, without mistakes
        likely = MISTAKES + (1 - 2 * MISTAKES) * p
        slope = (1 - 2 * MISTAKES) * p * (1 - p) / likely
        away = weights - start
        return float(-np.log(likely).sum() + precision @ away**2 / 2), precision * away - table.T @ (sign * slope)

    found = minimize(loss, start, jac=True, method="L-BFGS-B")
    p = 1 / (1 + np.exp(-np.clip(table @ found.x, -50, 50)))
    curvature = table.T @ (table * ((1 - 2 * MISTAKES) ** 2 * p * (1 - p))[:, None]) + np.diag(precision)
    evidence = -found.fun + (np.log(precision).sum() - np.linalg.slogdet(curvature)[1]) / 2
    return found.x, float(evidence)


def _standard(values: Array) -> Array:
    """In units of the spread among all pairs; 0 where unknown or the same for all."""
    known = np.isfinite(values)
    if not known.any():
        return np.zeros(len(values))
    mean, spread = values[known].mean(), values[known].std()
    scaled: Array = np.where(known, values - mean, 0.0) / (spread if spread > 1e-9 else np.inf)
    return scaled
