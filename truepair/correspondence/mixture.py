"""A two-component mixture of normal distributions of a value per pair: the mismatched and the matched (GSC, eq. 4)."""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from truepair.errors import InputError

Array = NDArray[np.float64]
Parameters = tuple[float, ...]
"""Five: log odds of the weights, then mean and variance of either component, in no order."""

LARGEST, SMALLEST = 1e70, 1e-70  # of a value, and of a standard deviation: their fourth powers are still float64
LEAST_GROUP = 5  # values: with fewer, two components have more parameters than the smaller group has values
CLEAR_SEPARATION = 2.0
TOLERANCE, STEPS = 1e-12, 200  # of the mean log-likelihood; steps of a fit
FLOOR = 1e-6  # of a variance, as a share of that of all values: on one value the likelihood has no bound
ROUNDING = 1e-14  # of a mean log-likelihood
MOST_LOG_ODDS = 150.0  # a weight of 1e-65 is none
LIGHT_DAMPING, HEAVIEST_DAMPING = 1e-2, 1e6  # of Newton steps, in units of the complete-data information
RELEASED_FLOOR = 5e-4  # added to the variances by GSC's code
TOTALS = np.array([1.0, 0.0, 1.0])  # the means of 1, x and x² over standardised values
HANKEL = np.add.outer(np.arange(3), np.arange(3))  # moments of degree 0 … 4 → those of the products of (1, x, x²)


@dataclass(frozen=True)
class Mixture:
    """Two normal distributions fitted to `count` values; of means, variances and weights the lower one comes first.

    `log_likelihood` is that of all values. `bic_one` and `bic_two` are the Bayesian information criteria of one normal
    distribution and of this mixture: the smaller fits better for its number of parameters.
    """

    means: tuple[float, float]
    variances: tuple[float, float]
    weights: tuple[float, float]
    count: int
    iterations: int
    converged: bool
    log_likelihood: float
    bic_one: float
    bic_two: float

    @property
    def doubt(self) -> str | None:
        """Why the values do not fall into two groups, in words; None where they do (`two_components`)."""
        smaller = min(self.weights) * self.count
        if smaller < LEAST_GROUP:
            return f"the smaller group holds {smaller:.1f} of {self.count} values (at least {LEAST_GROUP})"
        if not self.bic_two < self.bic_one:
            return f"one normal distribution fits as well (BIC {self.bic_one:.0f}, of two {self.bic_two:.0f})"
        if not self.separation > CLEAR_SEPARATION:
            return f"the groups lie too near each other (separation {self.separation:.2f}, more than 2 asked)"
        return None

    @property
    def two_components(self) -> bool:
        """Whether BIC prefers two normal distributions, both hold five values or more, and Ashman's D is above 2.

        BIC alone always prefers two for many values of one skewed group; their separation is 1.3 to 1.75. A uniform
        group (3.0) passes all the same, and two true groups nearer than 2 do not.
        """
        return self.doubt is None

    @property
    def separation(self) -> float:
        """D = √2 (μ₂ − μ₁)/√(σ₁² + σ₂²) (Ashman, Bird and Zepf 1994, who ask for more than 2)."""
        return math.sqrt(2) * (self.means[1] - self.means[0]) / math.sqrt(sum(self.variances))

    def posterior(self, values: ArrayLike, *, monotone: bool = True) -> Array:
        """How probably each value comes from the component with the larger mean, in [0, 1], in the shape of `values`.

        By Bayes' rule alone the wider component wins far out on both sides: the log odds are a parabola that turns
        outside [μ₁, μ₂]. With `monotone` they stay at the turn, so that no pair gains by being worse.

        Raises:
            InputError: a value is not finite.
        """
        (mean_1, mean_2), (variance_1, variance_2) = self.means, self.variances
        x = _checked(values) - mean_1
        # The squares of the two exponents are taken together, or they would cancel badly far out.
        distance = mean_2 - mean_1
        slope, curvature = distance / variance_2, 1 / variance_1 - 1 / variance_2
        if monotone and curvature:
            x = np.maximum(x, -slope / curvature) if curvature > 0 else np.minimum(x, -slope / curvature)
        weight_odds = math.log(self.weights[1] / self.weights[0]) if self.weights[0] else math.inf
        at_mean_1 = weight_odds + 0.5 * math.log(variance_1 / variance_2) - 0.5 * distance * slope
        log_odds = at_mean_1 + x * (slope + 0.5 * curvature * x)
        posterior: Array = np.exp(np.minimum(log_odds, 0)) / (1 + np.exp(-np.abs(log_odds)))  # neither can overflow
        return posterior


def fit_mixture(values: ArrayLike) -> Mixture:
    """The two-component normal mixture that (locally) maximises the likelihood of N ≥ 1 values, in float64.

    Starts at the best split into two groups (exact 2-means) and takes damped Newton steps, or steps of expectation
    maximisation (EM) where a component is at the variance floor: about ten for 145,000 values, in any order. Equal
    values (N = 1 included) are one component: every posterior is 1. An outlier may get a component of its own, which
    `two_components` refuses. A fit that is not done after 200 steps has `converged=False`.

    Args:
        values: at most 1e70 in size. Larger means better matched: negate losses.

    Raises:
        InputError: no values, or one that is not finite or too large (the message names its index).
    """
    x = np.sort(_checked(values), axis=None)  # a copy; sums in this order do not depend on the given one
    count = x.size
    if count == 0:
        raise InputError("values are empty; expected at least one number")
    centre, scale = _standardise(x)
    if scale:
        at, mean_log_likelihood, steps, converged = _maximise(x)
        unit = math.log(scale)  # the density of a standardised value is `scale` times that of the value
        likelihood = count * (mean_log_likelihood - unit)
        likelihood_of_one = count * (-0.5 * (math.log(2 * math.pi) + 1) - unit)
        parts = sorted(((at[1], at[2], _sigmoid(-at[0])), (at[3], at[4], _sigmoid(at[0]))), key=lambda part: part[0])
    else:
        scale, steps, converged = 1.0, 0, True
        likelihood = likelihood_of_one = count * (-0.5 * math.log(2 * math.pi * FLOOR))
        parts = [(0.0, FLOOR, 0.0), (0.0, FLOOR, 1.0)]
    lower, upper = parts
    return Mixture(
        means=(centre + scale * lower[0], centre + scale * upper[0]),
        variances=(scale**2 * lower[1], scale**2 * upper[1]),
        weights=(lower[2], upper[2]),
        count=count,
        iterations=steps,
        converged=converged,
        log_likelihood=likelihood,
        bic_one=2 * math.log(count) - 2 * likelihood_of_one,
        bic_two=5 * math.log(count) - 2 * likelihood,
    )


def _checked(values: ArrayLike) -> Array:
    x = np.asarray(values, dtype=np.float64)
    usable = np.abs(x) <= LARGEST  # false for NaN
    if not usable.all():
        at = [int(i) for i in np.argwhere(~usable)[0]]
        raise InputError(f"values{at or ''} is {x[tuple(at)]}; expected a finite number, at most {LARGEST} in size")
    return x


def _standardise(x: Array) -> tuple[float, float]:
    """Give sorted values mean 0 and variance 1 in place; their mean and standard deviation, 0 where all are equal."""
    centre = float(x.mean())
    if x[0] == x[-1]:
        return float(x[0]), 0.0
    x -= centre
    rest = float(x.mean())  # of the rounding of a large mean
    x -= rest
    scale = math.sqrt(float(x @ x) / x.size)
    if scale < SMALLEST:
        return centre, 0.0
    x /= scale
    return centre + rest, scale


def _maximise(x: Array) -> tuple[Parameters, float, int, bool]:
    """Parameters for sorted values of mean 0 and variance 1, their mean log-likelihood, steps taken, converged."""
    squares = x * x
    powers = np.stack([np.ones_like(x), x, squares, squares * x, squares * squares])
    at = _two_means(x)
    now, damping = _survey(at, powers), 0.0
    for step in range(1, STEPS + 1):
        newton = _newton_step(at, now, damping)
        proposal, promised, damping = newton or (_em_step(now), 0.0, damping)
        after = _survey(proposal, powers)
        gained = after[0] - now[0]
        if newton is None:
            if gained > 0:
                at, now = proposal, after
            if gained <= TOLERANCE:
                return at, now[0], step, True
            continue
        # Levenberg and Marquardt: trust the approximation more where it keeps its promise, less where it does not.
        kept = (gained + ROUNDING) / (promised + ROUNDING)
        if kept >= 0.1:
            at, now = proposal, after
            if promised <= TOLERANCE and damping <= LIGHT_DAMPING:
                return at, now[0], step, True
        if kept >= 0.7:
            damping = damping / 10 if damping > LIGHT_DAMPING / 100 else 0.0
        elif kept < 0.3:
            damping = max(4 * damping, LIGHT_DAMPING)
    return at, now[0], STEPS, False


def _two_means(x: Array) -> Parameters:
    """The moments of the two groups of the split with the least variance within them."""
    below = np.cumsum(x)[:-1]
    size = np.arange(1, len(x), dtype=np.float64)
    between = below**2 / (size * (len(x) - size))  # the total is 0: both groups are the same distance from it
    cut = int(np.argmax(between)) + 1
    (mean_1, variance_1), (mean_2, variance_2) = ((float(x.mean()), float(x.var())) for x in (x[:cut], x[cut:]))
    return math.log((len(x) - cut) / cut), mean_1, max(variance_1, FLOOR), mean_2, max(variance_2, FLOOR)


def _survey(at: Parameters, powers: Array) -> tuple[float, Array, Array]:
    """The mean log-likelihood, the means of r xᵏ (k ≤ 2) and of r (1 − r) xᵏ (k ≤ 4); r: posterior of component 2."""
    log_odds, mean_1, variance_1, mean_2, variance_2 = at
    first, odds = (
        math.log(weight)
        - 0.5 * math.log(2 * math.pi * variance)
        - 0.5 * ((powers[1] - mean) / math.sqrt(variance)) ** 2
        for weight, mean, variance in (
            (_sigmoid(-log_odds), mean_1, variance_1),
            (_sigmoid(log_odds), mean_2, variance_2),
        )
    )
    odds -= first
    small = np.exp(-np.abs(odds))  # cannot overflow
    largest = np.maximum(odds, 0)
    likelihood = float((first + largest + np.log1p(small)).mean())
    posterior = np.exp(odds - largest) / (1 + small)
    contested = small / (1 + small) ** 2  # posterior · (1 − posterior), exact where either is close to 1
    return likelihood, powers[:3] @ posterior / len(odds), powers @ contested / len(odds)


def _em_step(survey: tuple[float, Array, Array]) -> Parameters:
    """The moments of the values, each divided among the components by its posterior."""
    moments = np.stack([TOTALS - survey[1], survey[1]], axis=1)
    weights = np.clip(moments[0], SMALLEST, None)
    means = moments[1] / weights
    variances = np.maximum(moments[2] / weights - means**2, FLOOR)
    return math.log(weights[1] / weights[0]), means[0], variances[0], means[1], variances[1]


def _newton_step(
    at: Parameters, survey: tuple[float, Array, Array], damping: float
) -> tuple[Parameters, float, float] | None:
    """New parameters, the mean log-likelihood they promise to gain and the damping needed; None: out of range.

    Taken in the log odds and the natural parameters (μ/σ², −1/2σ²) with statistics (x, x²): there the survey has all
    that the derivatives need. Much damping makes it a short step of expectation maximisation.
    """
    _, claimed, contested = survey
    share = _sigmoid(at[0])
    gradient, slopes, complete = np.zeros(5), np.zeros((5, 3)), np.zeros((5, 5))
    gradient[0], slopes[0, 0], complete[0, 0] = claimed[0] - share, 1.0, share * (1 - share)
    natural = []
    for part, sign, mass in ((slice(1, 3), -1.0, TOTALS - claimed), (slice(3, 5), 1.0, claimed)):
        mean, variance = at[part]
        natural += [mean / variance, -0.5 / variance]
        expected, cross = np.array([mean, mean**2 + variance]), 2 * mean * variance  # of (x, x²)
        gradient[part] = mass[1:] - mass[0] * expected
        # The log odds of one value change with the parameters by `slopes` @ (1, x, x²).
        slopes[part] = sign * np.column_stack([-expected, np.eye(2)])
        complete[part, part] = mass[0] * np.array([[variance, cross], [cross, 2 * mean * cross + 2 * variance**2]])
    # What the values would tell if their components were known, less what not knowing them costs.
    information = complete - slopes @ contested[HANKEL] @ slopes.T
    while (factor := _cholesky(information + damping * complete)) is None:
        if damping >= HEAVIEST_DAMPING:
            return None
        damping = max(4 * damping, LIGHT_DAMPING)
    change = np.linalg.solve(factor.T, np.linalg.solve(factor, gradient))
    log_odds = float(at[0] + change[0])
    linear_1, square_1, linear_2, square_2 = (old + new for old, new in zip(natural, change[1:], strict=True))
    if abs(log_odds) > MOST_LOG_ODDS or not (-0.5 / FLOOR <= square_1 < 0 and -0.5 / FLOOR <= square_2 < 0):
        return None
    new_1, new_2 = -0.5 / square_1, -0.5 / square_2
    proposal = log_odds, float(linear_1 * new_1), float(new_1), float(linear_2 * new_2), float(new_2)
    return proposal, float(change @ gradient - 0.5 * change @ information @ change), damping


def _cholesky(matrix: Array) -> Array | None:
    """The lower factor; None unless the matrix is positive definite."""
    try:
        return np.asarray(np.linalg.cholesky(matrix), dtype=np.float64)
    except np.linalg.LinAlgError:
        return None


def _sigmoid(log_odds: float) -> float:
    small = math.exp(-abs(log_odds))
    return (1.0 if log_odds >= 0 else small) / (1.0 + small)


def released_posterior(values: Array) -> Array:
    """How probably each value is of the group with the larger mean, (N,), by the mixture that GSC's code fits.

    Expectation maximisation from two means, until a step adds less than 0.01 to the mean log-likelihood (as a rule two
    steps) or after ten, with 5e-4 added to the variances: far from the largest likelihood (`fit_mixture`), nearer to
    the two means. By Bayes' rule alone, so the wider group wins far out on both sides. 1 where all values are equal.

    Args:
        values: (N,), scaled to [0, 1].
    """
    from sklearn.mixture import GaussianMixture

    if np.ptp(values) == 0:
        return np.ones(len(values))
    centre = float(values.mean())
    log_odds, mean_1, variance_1, mean_2, variance_2 = _two_means(np.sort(values - centre))
    mixture = GaussianMixture(
        2,
        max_iter=10,
        tol=1e-2,
        reg_covar=RELEASED_FLOOR,
        random_state=0,
        weights_init=[_sigmoid(-log_odds), _sigmoid(log_odds)],
        means_init=[[centre + mean_1], [centre + mean_2]],
        precisions_init=[[[1 / (variance + RELEASED_FLOOR)]] for variance in (variance_1, variance_2)],
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # ten steps may not be enough, as released
        mixture.fit(values[:, None])
    posterior: Array = mixture.predict_proba(values[:, None])[:, mixture.means_.argmax()]
    return posterior
