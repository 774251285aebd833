"""A mixture of two normal distributions of one value per pair: the mismatched and the matched (GSC, eq. 4)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from truepair.errors import InputError

Array = NDArray[np.float64]

LARGEST = 1e70  # far beyond any similarity or loss, and its fourth power still is a float64
SMALLEST = 1e-70  # a standard deviation below this counts as none
PARAMETERS_OF_ONE = 2
PARAMETERS_OF_TWO = 5
CLEAR_SEPARATION = 2.0

TOTALS = np.array([1.0, 0.0, 1.0])  # the means of 1, x and x² over standardised values
HANKEL = np.add.outer(np.arange(3), np.arange(3))  # moments of degree 0 … 4 → those of the products of (1, x, x²)
ROUNDING = 1e-14  # of a mean log-likelihood, which is of the order of 1
MOST_LOG_ODDS = 150.0  # of the weights of the two components: a weight of 1e-65 is none
LIGHT_DAMPING, HEAVIEST_DAMPING = 1e-2, 1e6  # of Newton steps, in units of the complete-data information


@dataclass(frozen=True)
class Mixture:
    """Two normal distributions fitted to N values; the first has the smaller mean.

    Attributes:
        means, variances, weights: (lower, upper) each; the weights sum to 1.
        count: N.
        iterations: steps taken.
        converged: the log-likelihood stopped rising within the allowed steps.
        log_likelihood: of all values, at the fit.
        bic_one, bic_two: Bayesian information criterion of one normal distribution and of this mixture; the lower fits
            better for its number of parameters.
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
    def two_components(self) -> bool:
        """Whether the values fall into two groups: BIC prefers two (`prefers_two`), and they are `separated`.

        BIC alone does not tell. Values of one skewed group follow no normal distribution, so with enough of them it
        always prefers two: for 145,000 exponential, gamma, log-normal, beta or χ² values it did each time, with a
        third to four fifths of them in the lower group. Their separation was 1.3 to 1.75, so `separated` refuses them.
        Two limits: one group spread evenly (uniform) has a separation of 3.0 and passes; two true groups nearer than
        2 are refused. A caller who knows that there is noise may ask `prefers_two` alone.
        """
        return self.prefers_two and self.separated

    @property
    def prefers_two(self) -> bool:
        """Whether BIC prefers the mixture to one normal distribution, and both components hold five values or more.

        With fewer, a component is an outlier on its own, and two components have more parameters than the values.
        """
        return self.bic_two < self.bic_one and min(self.weights) * self.count >= PARAMETERS_OF_TWO

    @property
    def doubt(self) -> str | None:
        """Why there are no `two_components`, in words; None where there are."""
        smaller = min(self.weights) * self.count
        if smaller < PARAMETERS_OF_TWO:
            return f"the smaller group holds {smaller:.1f} of {self.count} values (at least {PARAMETERS_OF_TWO})"
        if not self.bic_two < self.bic_one:
            return f"one normal distribution fits as well (BIC {self.bic_one:.0f}, of two {self.bic_two:.0f})"
        if not self.separated:
            return f"the groups lie too near each other (separation {self.separation:.2f}, more than 2 asked)"
        return None

    @property
    def separation(self) -> float:
        """Ashman's D = √2 (μ₂ − μ₁)/√(σ₁² + σ₂²) (Ashman, Bird and Zepf 1994, Astronomical Journal 108:2348)."""
        return math.sqrt(2) * (self.means[1] - self.means[0]) / math.sqrt(sum(self.variances))

    @property
    def separated(self) -> bool:
        """D > 2, what Ashman, Bird and Zepf ask for before two groups are told apart."""
        return self.separation > CLEAR_SEPARATION

    def posterior(self, values: ArrayLike, *, monotone: bool = True) -> Array:
        """How probably each value comes from the component with the larger mean, in [0, 1], in the shape of `values`.

        Bayes' rule alone (`monotone=False`) turns round where the variances differ: far out, on one side, the wider
        component wins, so that a wide upper component claims the very lowest values, and a wide lower one the very
        highest. The log odds are a parabola that turns outside [μ₁, μ₂]; with `monotone` they stay at the turn
        beyond it. So a larger value is never less probable, and nothing changes between the means. It is the default,
        because a label must not reward a pair for being worse.

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


def fit_mixture(
    values: ArrayLike, *, tolerance: float = 1e-12, iterations: int = 200, variance_floor: float = 1e-6
) -> Mixture:
    """The two-component normal mixture that (locally) maximises the likelihood of N values, in float64.

    Starts at the best split into two groups (exact 2-means) and takes damped Newton steps on the log-likelihood, or
    steps of expectation maximisation (EM) where a component is at the variance floor. The likelihood never falls, and
    the result does not depend on the order of the values. 145,000 values take about ten steps.

    Degenerate input has a defined result. Equal values (N = 1 included): both components lie on them, the upper one
    has all the weight (every posterior is 1), and one component is preferred. Two distinct values: one component on
    each. An isolated outlier may get a component of its own: `prefers_two` is then false.

    Args:
        values: N ≥ 1 finite numbers, at most 1e70 in size. Larger means better matched: negate losses.
        tolerance: stop when a step can raise the mean log-likelihood of a value by no more than this. Newton steps
            converge quadratically, so what is left is far less.
        iterations: most steps; a fit not done by then is returned with `converged=False`. Values of one normal
            distribution may come to this: there is no second component to find.
        variance_floor: no component is narrower than this share of the variance of all values, or the likelihood
            could grow without bound (a component on one value).

    Raises:
        InputError: no values, a value that is not finite or too large (the message names its index), or an option
            that is not positive.
    """
    if not tolerance > 0 or not variance_floor > 0 or iterations < 1:
        raise InputError(
            f"tolerance is {tolerance}, variance_floor {variance_floor}, iterations {iterations}; expected all above 0"
        )
    x = np.sort(_checked(values), axis=None)  # a copy; sums in this order do not depend on the given one
    if x.size == 0:
        raise InputError("values are empty; expected at least one number")
    centre, scale = _standardise(x)
    if scale == 0:
        return _of_equal_values(centre, x.size, variance_floor)
    fit, steps, converged = _maximise(x, tolerance, iterations, variance_floor)
    lower, upper = fit.parameters.components()
    unit = math.log(scale)  # the density of a standardised value is `scale` times that of the value
    log_likelihood = x.size * (fit.log_likelihood - unit)
    return Mixture(
        means=(centre + scale * lower.mean, centre + scale * upper.mean),
        variances=(scale**2 * lower.variance, scale**2 * upper.variance),
        weights=(lower.weight, upper.weight),
        count=x.size,
        iterations=steps,
        converged=converged,
        log_likelihood=log_likelihood,
        bic_one=_bic(PARAMETERS_OF_ONE, x.size, x.size * (-0.5 * (math.log(2 * math.pi) + 1) - unit)),
        bic_two=_bic(PARAMETERS_OF_TWO, x.size, log_likelihood),
    )


def _of_equal_values(value: float, count: int, variance: float) -> Mixture:
    log_likelihood = count * (-0.5 * math.log(2 * math.pi * variance))
    return Mixture(
        means=(value, value),
        variances=(variance, variance),
        weights=(0.0, 1.0),
        count=count,
        iterations=0,
        converged=True,
        log_likelihood=log_likelihood,
        bic_one=_bic(PARAMETERS_OF_ONE, count, log_likelihood),
        bic_two=_bic(PARAMETERS_OF_TWO, count, log_likelihood),
    )


def _bic(parameters: int, count: int, log_likelihood: float) -> float:
    return parameters * math.log(count) - 2 * log_likelihood


def _checked(values: ArrayLike) -> Array:
    """The values as float64.

    Raises:
        InputError: a value is not finite, or too large to be squared twice.
    """
    x = np.asarray(values, dtype=np.float64)
    usable = np.abs(x) <= LARGEST  # false for NaN
    if not usable.all():
        index = [int(i) for i in np.argwhere(~usable)[0]]
        raise InputError(
            f"values{index or ''} is {x[tuple(index)]}; expected a finite number, at most {LARGEST} in size"
        )
    return x


def _standardise(x: Array) -> tuple[float, float]:
    """Give sorted values mean 0 and variance 1 in place; returns what was their mean and standard deviation.

    A standard deviation of 0 says that the values are all equal; they are then left as they come.
    """
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


# --- The fit, on sorted values of mean 0 and variance 1 -----------------------------------------------------------


class _Component(NamedTuple):
    weight: float
    mean: float
    variance: float


class _Parameters(NamedTuple):
    """Of the components 1 and 2, in no order; the weight of 2 is sigmoid(log_odds)."""

    log_odds: float
    mean_1: float
    variance_1: float
    mean_2: float
    variance_2: float

    def components(self) -> list[_Component]:
        """Lower mean first."""
        first = _Component(_sigmoid(-self.log_odds), self.mean_1, self.variance_1)
        second = _Component(_sigmoid(self.log_odds), self.mean_2, self.variance_2)
        return sorted((first, second), key=lambda component: component.mean)


class _Survey(NamedTuple):
    """What one pass over the values tells about some parameters; all are means over the values.

    With r the posterior of component 2: `claimed` holds r xᵏ for k = 0, 1, 2, `contested` r (1 − r) xᵏ for k = 0 … 4.
    """

    parameters: _Parameters
    log_likelihood: float
    claimed: Array
    contested: Array


class _Step(NamedTuple):
    """Proposed parameters, the mean log-likelihood they promise to gain, and the damping that was needed."""

    parameters: _Parameters
    promised: float
    damping: float


def _maximise(x: Array, tolerance: float, iterations: int, floor: float) -> tuple[_Survey, int, bool]:
    """The last survey, the number of steps and whether they converged."""
    squares = x * x
    powers = np.stack([np.ones_like(x), x, squares, squares * x, squares * squares])
    now = _survey(_two_means(x, floor), powers)
    damping = 0.0
    for step in range(1, iterations + 1):
        proposal = _newton_step(now, damping, floor)
        if proposal is None:
            after = _survey(_em_step(now, floor), powers)
            gained = after.log_likelihood - now.log_likelihood
            now = after if gained > 0 else now
            if gained <= tolerance:
                return now, step, True
            continue
        after = _survey(proposal.parameters, powers)
        # Levenberg and Marquardt: trust the approximation more where it keeps its promise, less where it does not.
        gained = after.log_likelihood - now.log_likelihood
        kept = (gained + ROUNDING) / (proposal.promised + ROUNDING)
        damping = proposal.damping
        if kept >= 0.1:
            now = after
            if proposal.promised <= tolerance and damping <= LIGHT_DAMPING:
                return now, step, True
        if kept >= 0.7:
            damping = damping / 10 if damping > LIGHT_DAMPING / 100 else 0.0
        elif kept < 0.3:
            damping = max(4 * damping, LIGHT_DAMPING)
    return now, iterations, False


def _two_means(x: Array, floor: float) -> _Parameters:
    """The moments of the two groups of the split with the least variance within them."""
    below = np.cumsum(x)[:-1]
    size = np.arange(1, len(x), dtype=np.float64)
    between = below**2 / (size * (len(x) - size))  # the total is 0: both groups are the same distance from it
    cut = int(np.argmax(between)) + 1
    first, second = x[:cut], x[cut:]
    return _Parameters(
        math.log(len(second) / len(first)),
        float(first.mean()),
        max(float(first.var()), floor),
        float(second.mean()),
        max(float(second.var()), floor),
    )


def _survey(parameters: _Parameters, powers: Array) -> _Survey:
    log_odds, mean_1, variance_1, mean_2, variance_2 = parameters
    x = powers[1]
    first = _log_density(x, mean_1, variance_1, _sigmoid(-log_odds))
    odds = _log_density(x, mean_2, variance_2, _sigmoid(log_odds))
    odds -= first
    small = np.exp(-np.abs(odds))  # cannot overflow
    largest = np.maximum(odds, 0)
    first += largest
    first += np.log1p(small)
    posterior = np.exp(odds - largest) / (1 + small)
    contested = small / (1 + small) ** 2  # posterior · (1 − posterior), exact where either is close to 1
    return _Survey(parameters, float(first.mean()), powers[:3] @ posterior / len(x), powers @ contested / len(x))


def _em_step(survey: _Survey, floor: float) -> _Parameters:
    """The moments of the values, each divided among the components by its posterior."""
    second = survey.claimed
    first = TOTALS - second
    weights = np.clip([first[0], second[0]], SMALLEST, None)
    means = np.array([first[1], second[1]]) / weights
    variances = np.maximum(np.array([first[2], second[2]]) / weights - means**2, floor)
    return _Parameters(math.log(weights[1] / weights[0]), means[0], variances[0], means[1], variances[1])


def _newton_step(survey: _Survey, damping: float, floor: float) -> _Step | None:
    """The step to the top of the quadratic approximation of the log-likelihood.

    Taken in the log odds of the weights and the natural parameters of each component, (μ/σ², −1/2σ²) with statistics
    (x, x²): there `claimed` and `contested` are all the derivatives need. More damping than asked for is used where the
    approximation has no top; much of it makes the step a short one of expectation maximisation. None where the step
    leaves the range of the parameters.
    """
    log_odds, mean_1, variance_1, mean_2, variance_2 = survey.parameters
    share_2 = _sigmoid(log_odds)
    claimed_1, claimed_2 = TOTALS - survey.claimed, survey.claimed
    expected_1, covariance_1 = _statistics(mean_1, variance_1)
    expected_2, covariance_2 = _statistics(mean_2, variance_2)
    gradient = np.empty(5)
    gradient[0] = claimed_2[0] - share_2
    gradient[1:3] = claimed_1[1:] - claimed_1[0] * expected_1
    gradient[3:5] = claimed_2[1:] - claimed_2[0] * expected_2
    # The log odds of one value change with the parameters by `slopes` @ (1, x, x²).
    slopes = np.zeros((5, 3))
    slopes[0, 0] = 1
    slopes[1:3] = np.column_stack([expected_1, -np.eye(2)])
    slopes[3:5] = np.column_stack([-expected_2, np.eye(2)])
    # What the values would tell if their components were known, less what not knowing them costs.
    complete = np.zeros((5, 5))
    complete[0, 0] = share_2 * (1 - share_2)
    complete[1:3, 1:3] = claimed_1[0] * covariance_1
    complete[3:5, 3:5] = claimed_2[0] * covariance_2
    information = complete - slopes @ survey.contested[HANKEL] @ slopes.T
    factor = _cholesky(information + damping * complete)
    while factor is None and damping < HEAVIEST_DAMPING:
        damping = max(4 * damping, LIGHT_DAMPING)
        factor = _cholesky(information + damping * complete)
    if factor is None:
        return None
    change = np.linalg.solve(factor.T, np.linalg.solve(factor, gradient))
    new_odds = float(log_odds + change[0])
    linear_1, square_1 = mean_1 / variance_1 + change[1], -0.5 / variance_1 + change[2]
    linear_2, square_2 = mean_2 / variance_2 + change[3], -0.5 / variance_2 + change[4]
    if abs(new_odds) > MOST_LOG_ODDS or not (-0.5 / floor <= square_1 < 0 and -0.5 / floor <= square_2 < 0):
        return None
    new_1, new_2 = -0.5 / square_1, -0.5 / square_2
    means = float(linear_1 * new_1), float(linear_2 * new_2)
    parameters = _Parameters(new_odds, means[0], float(new_1), means[1], float(new_2))
    return _Step(parameters, float(change @ gradient - 0.5 * change @ information @ change), damping)


def _cholesky(matrix: Array) -> Array | None:
    """The lower factor; None unless the matrix is positive definite."""
    try:
        factor: Array = np.linalg.cholesky(matrix).astype(np.float64)
    except np.linalg.LinAlgError:
        return None
    return factor


def _statistics(mean: float, variance: float) -> tuple[Array, Array]:
    """Expectation (2,) and covariance (2, 2) of (x, x²) under a normal distribution."""
    cross = 2 * mean * variance
    covariance = np.array([[variance, cross], [cross, 2 * mean * cross + 2 * variance**2]])
    return np.array([mean, mean**2 + variance]), covariance


def _log_density(x: Array, mean: float, variance: float, weight: float) -> Array:
    """log of weight · normal density."""
    constant = math.log(weight) - 0.5 * math.log(2 * math.pi * variance)
    density: Array = (x - mean) / math.sqrt(variance)
    density *= density
    density *= -0.5
    density += constant
    return density


def _sigmoid(log_odds: float) -> float:
    small = math.exp(-abs(log_odds))
    return (1.0 if log_odds >= 0 else small) / (1.0 + small)
