"""A two-component beta mixture of values in [0, 1]: skewed groups, such as the losses of clean and of noisy pairs.

Source: Arazo et al. 2019, "Unsupervised label noise modeling and loss correction", section 3.1, as BiCro, MSCN and L2RM
use it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import betaln

from truepair.errors import InputError

Array = NDArray[np.float64]

EDGE = 1e-4  # values nearer to 0 or 1 count as this near: their logarithms would have no bound
LEAST_VARIANCE = 1e-8
LEAST_GROUP = 5  # values
STEPS, TOLERANCE = 200, 1e-9  # of expectation maximisation; of the mean log-likelihood
MOST_TRIED = 10_000  # values by which a start is chosen


@dataclass(frozen=True)
class BetaMixture:
    """Two beta distributions fitted to `count` values; of shapes and weights that of the lower mean comes first.

    `bic_one` and `bic_two` are the Bayesian information criteria of one beta distribution and of this mixture.
    """

    alphas: tuple[float, float]
    betas: tuple[float, float]
    weights: tuple[float, float]
    count: int
    iterations: int
    log_likelihood: float
    bic_one: float
    bic_two: float

    @property
    def means(self) -> tuple[float, float]:
        first, second = (a / (a + b) for a, b in zip(self.alphas, self.betas, strict=True))
        return first, second

    @property
    def variances(self) -> tuple[float, float]:
        first, second = (a * b / ((a + b) ** 2 * (a + b + 1)) for a, b in zip(self.alphas, self.betas, strict=True))
        return first, second

    @property
    def doubt(self) -> str | None:
        """Why the values do not fall into two groups, in words; None where they do."""
        smaller = min(self.weights) * self.count
        if smaller < LEAST_GROUP:
            return f"the smaller group holds {smaller:.1f} of {self.count} values (at least {LEAST_GROUP})"
        if not self.bic_two < self.bic_one:
            return f"one beta distribution fits as well (BIC {self.bic_one:.0f}, of two {self.bic_two:.0f})"
        return None

    def posterior(self, values: ArrayLike) -> Array:
        """How probably each value comes from the component with the larger mean, in [0, 1], in the shape of `values`.

        Never falling: where one component is wider on both sides, the log odds turn, and stay at the turn from there.

        Raises:
            InputError: a value is not in [0, 1].
        """
        x = _checked(values)
        rise, fall = (shapes[1] - shapes[0] for shapes in (self.alphas, self.betas))  # of log x and of log(1 − x)
        if rise * fall > 0:
            turn = rise / (rise + fall)
            x = np.minimum(x, turn) if rise > 0 else np.maximum(x, turn)
        log_odds = _log_density(x, self.alphas[1], self.betas[1]) - _log_density(x, self.alphas[0], self.betas[0])
        weights = [math.log(weight) if weight else -math.inf for weight in self.weights]
        log_odds = log_odds + (weights[1] - weights[0])
        posterior: Array = np.exp(np.minimum(log_odds, 0)) / (1 + np.exp(-np.abs(log_odds)))  # neither can overflow
        return posterior


def fit_beta_mixture(
    values: ArrayLike,
    *,
    start: tuple[ArrayLike, ArrayLike] | None = None,
    steps: int = STEPS,
    tolerance: float = TOLERANCE,
) -> BetaMixture:
    """The mixture by expectation maximisation, each component by the moments of its share of the values, in float64.

    Starts from Beta(1, 2) and Beta(2, 1) with equal weights, as the released codes do, and goes on until a step leaves
    the likelihood as it is; then again from the two sides of the cut that is likeliest. Losses near 0 with a long tail
    are lost from the first start, which ends below the likelihood of one distribution. The larger likelihood counts.
    Moments do not always raise it: the best of all steps is kept. Equal values are one component: every posterior is
    1.

    Args:
        values: N ≥ 1 in [0, 1]. Larger means better matched: give 1 minus a scaled loss.
        start: examples of the lower and of the upper group, each at least one in [0, 1], whose moments are the only
            start instead (MSCN).
        steps, tolerance: to stop sooner, by steps or by what one adds to the mean log-likelihood.

    Raises:
        InputError: no values, or one that is not in [0, 1].
    """
    x = np.sort(_checked(values), axis=None)
    if x.size == 0:
        raise InputError("values are empty; expected at least one number")
    one = _moments(x, np.ones_like(x))
    log_count = math.log(x.size)
    bic_one = 2 * log_count - 2 * float(_log_density(x, *one).sum())
    if x[0] == x[-1]:
        return BetaMixture((one[0], one[0]), (one[1], one[1]), (0.0, 1.0), x.size, 0, 0.0, bic_one, math.inf)
    if start is not None:
        starts = [_shapes(start)]
    else:
        cut = _likeliest_cut(x)
        starts = [[(1.0, 2.0), (2.0, 1.0)], _shapes((x[:cut], x[cut:]))]
    climbs = [_climb(x, shapes, steps, tolerance) for shapes in starts]
    mean, shapes, weights, step = max(climbs, key=lambda climb: climb.mean)
    lower = int(shapes[0][0] / sum(shapes[0]) > shapes[1][0] / sum(shapes[1]))
    order = (lower, 1 - lower)
    return BetaMixture(
        alphas=(shapes[order[0]][0], shapes[order[1]][0]),
        betas=(shapes[order[0]][1], shapes[order[1]][1]),
        weights=(weights[order[0]], weights[order[1]]),
        count=x.size,
        iterations=step,
        log_likelihood=mean * x.size,
        bic_one=bic_one,
        bic_two=5 * log_count - 2 * mean * x.size,
    )


Shapes = list[tuple[float, float]]


class _Climb(NamedTuple):
    """The best step of one start: its mean log-likelihood, shapes and weights; and how many steps were taken."""

    mean: float
    shapes: Shapes
    weights: list[float]
    steps: int


def _climb(x: Array, shapes: Shapes, steps: int, tolerance: float) -> _Climb:
    """Expectation maximisation from these shapes with equal weights."""
    weights = [0.5, 0.5]
    before, best, step = -math.inf, (-math.inf, shapes, weights), 0
    while step < steps:
        step += 1
        logs = np.stack([math.log(w) + _log_density(x, a, b) for w, (a, b) in zip(weights, shapes, strict=True)])
        total = np.logaddexp(logs[0], logs[1])
        mean = float(total.mean())
        if mean > best[0]:
            best = mean, shapes, weights
        if abs(mean - before) <= tolerance:
            break
        before, shares = mean, np.exp(logs - total)
        shapes = [_moments(x, share) for share in shares]
        weights = [max(float(share.mean()), np.finfo(float).tiny) for share in shares]
    return _Climb(*best, step)


def _shapes(groups: tuple[ArrayLike, ArrayLike]) -> Shapes:
    return [_moments(examples, np.ones_like(examples)) for examples in map(_checked, groups)]


def _likeliest_cut(x: Array) -> int:
    """How many of the sorted values, of which two differ, lie below the cut whose two sides are likeliest as a mixture.

    Tried at hundredths of the values; which is best is asked of a thinned series where there are many.
    """
    some = x[:: math.ceil(x.size / MOST_TRIED)]
    best, found = -math.inf, 1
    for share in np.arange(1, 100) / 100:
        cut = min(max(round(share * some.size), 1), some.size - 1)
        shapes = _shapes((some[:cut], some[cut:]))
        weights = (cut / some.size, 1 - cut / some.size)
        logs = [math.log(w) + _log_density(some, a, b) for w, (a, b) in zip(weights, shapes, strict=True)]
        mean = float(np.logaddexp(*logs).mean())
        if mean > best:
            best, found = mean, min(max(round(cut / some.size * x.size), 1), x.size - 1)
    return found


def _checked(values: ArrayLike) -> Array:
    x = np.asarray(values, dtype=np.float64)
    inside = (x >= 0) & (x <= 1)  # false for NaN
    if not inside.all():
        at = [int(i) for i in np.argwhere(~inside)[0]]
        raise InputError(f"values{at or ''} is {x[tuple(at)]}; expected a value in [0, 1]")
    return np.clip(x, EDGE, 1 - EDGE)


def _moments(x: Array, share: Array) -> tuple[float, float]:
    """α and β of the beta distribution with the mean and the variance of the shares of the values."""
    total = max(float(share.sum()), np.finfo(float).tiny)
    mean = min(max(float(share @ x) / total, EDGE), 1 - EDGE)
    variance = max(float(share @ (x - mean) ** 2) / total, LEAST_VARIANCE)
    strength = max(mean * (1 - mean) / variance - 1, LEAST_VARIANCE)
    return mean * strength, (1 - mean) * strength


def _log_density(x: Array, alpha: float, beta: float) -> Array:
    density: Array = (alpha - 1) * np.log(x) + (beta - 1) * np.log1p(-x) - betaln(alpha, beta)
    return density
