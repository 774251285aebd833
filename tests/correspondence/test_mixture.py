"""The two-component mixture against scikit-learn's, converged tightly from the same start, and against plain sums."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from truepair.correspondence import Mixture, fit_mixture
from truepair.correspondence import mixture as mixture_module
from truepair.errors import InputError


def normal(*groups, seed=0):
    """Values of (mean, standard deviation, count) groups, in random order."""
    rng = np.random.default_rng(seed)
    return rng.permutation(np.concatenate([rng.normal(mean, deviation, count) for mean, deviation, count in groups]))


def rng(seed=0):
    return np.random.default_rng(seed)


TWO_GROUPS = {
    "far apart": normal((0.2, 0.05, 1500), (0.8, 0.1, 2500)),
    "moderate": normal((0.3, 0.1, 2000), (0.6, 0.08, 3000)),
    "few mismatches": normal((0.3, 0.1, 150), (0.75, 0.08, 4000)),
    "many mismatches": normal((0.1, 0.05, 4000), (0.5, 0.1, 500)),
    "large offset": 1e6 + normal((0.0, 1.0, 1000), (6.0, 1.5, 1500)),
    "tiny scale": 1e-40 * normal((0.0, 1.0, 1000), (6.0, 1.5, 1500)),
    "huge scale": 1e40 * normal((0.0, 1.0, 1000), (6.0, 1.5, 1500)),
}
ONE_SKEWED_GROUP = {
    "exponential": rng().exponential(size=4000),
    "gamma": rng().gamma(2, size=4000),
    "negated gamma": -rng().gamma(2, size=4000),
    "log-normal": rng().lognormal(0, 0.5, size=4000),
    "beta": rng().beta(8, 1.5, size=4000),
    "chi-squared": rng().chisquare(1, size=4000),
}
EVERY = TWO_GROUPS | ONE_SKEWED_GROUP


def prefers_two(found):
    """What `two_components` asks beside the separation."""
    return found.bic_two < found.bic_one and min(found.weights) * found.count >= 5


def two_means(values):
    """The start by the definition: every split of the sorted values, the least sum of squares within."""
    ordered = np.sort(values)
    sums = [
        ((ordered[:cut] - ordered[:cut].mean()) ** 2).sum() + ((ordered[cut:] - ordered[cut:].mean()) ** 2).sum()
        for cut in range(1, len(ordered))
    ]
    cut = int(np.argmin(sums)) + 1
    return ordered[:cut], ordered[cut:]


def scikit_learn(values):
    """(weights, means, variances, mean log-likelihood) of the values in their standard units, lower mean first."""
    from sklearn.mixture import GaussianMixture

    groups = two_means(values)
    model = GaussianMixture(
        2,
        tol=1e-14,
        max_iter=20_000,
        reg_covar=0.0,
        weights_init=[len(group) / len(values) for group in groups],
        means_init=[[group.mean()] for group in groups],
        precisions_init=[[[1 / group.var()]] for group in groups],
    ).fit(values[:, None])
    order = np.argsort(model.means_[:, 0])
    return (
        model.weights_[order],
        model.means_[order, 0],
        model.covariances_[order, 0, 0],
        model.score(values[:, None]),
        lambda new: model.predict_proba(new[:, None])[:, order[1]],
    )


@pytest.mark.parametrize("name", EVERY)
def test_fit_equals_scikit_learn(name):
    values = EVERY[name]
    centre, scale = values.mean(), values.std()
    standard = (values - centre) / scale  # scikit-learn's own arithmetic needs values of moderate size
    weights, means, variances, mean_log_likelihood, posterior = scikit_learn(standard)
    found = fit_mixture(values)
    assert found.converged and found.count == len(values)
    np.testing.assert_allclose(found.weights, weights, rtol=0, atol=2e-5)
    np.testing.assert_allclose((np.array(found.means) - centre) / scale, means, rtol=0, atol=2e-5)
    np.testing.assert_allclose(np.array(found.variances) / scale**2, variances, rtol=0, atol=2e-5)
    np.testing.assert_allclose(found.posterior(values, monotone=False), posterior(standard), atol=5e-5)
    # At least as likely: Newton steps go on where expectation maximisation has become slow.
    ours = found.log_likelihood / len(values) + math.log(scale)
    assert mean_log_likelihood - 1e-12 <= ours <= mean_log_likelihood + 1e-8


def loop_log_likelihood(values, mixture):
    total = 0.0
    for value in values:
        density = sum(
            weight * math.exp(-((value - mean) ** 2) / (2 * variance)) / math.sqrt(2 * math.pi * variance)
            for weight, mean, variance in zip(mixture.weights, mixture.means, mixture.variances, strict=True)
        )
        total += math.log(density)
    return total


def loop_em_step(values, mixture):
    """One plain step of expectation maximisation: (weights, means, variances)."""
    posterior = mixture.posterior(values, monotone=False)
    results = []
    for claimed in (1 - posterior, posterior):
        mean = float((claimed * values).sum() / claimed.sum())
        variance = float((claimed * (values - mean) ** 2).sum() / claimed.sum())
        results.append((float(claimed.mean()), mean, variance))
    return tuple(zip(*results, strict=True))


@pytest.mark.parametrize("name", ["moderate", "few mismatches", *ONE_SKEWED_GROUP])
def test_likelihood_criteria_and_stationarity(name):
    values = EVERY[name]
    found = fit_mixture(values)
    assert found.log_likelihood == pytest.approx(loop_log_likelihood(values, found), rel=1e-10, abs=1e-7)
    one = sum(
        -0.5 * math.log(2 * math.pi * values.var()) - (value - values.mean()) ** 2 / (2 * values.var())
        for value in values
    )
    assert found.bic_one == pytest.approx(2 * math.log(len(values)) - 2 * one, rel=1e-10)
    assert found.bic_two == pytest.approx(5 * math.log(len(values)) - 2 * found.log_likelihood, rel=1e-12)
    for after, now in zip(loop_em_step(values, found), (found.weights, found.means, found.variances), strict=True):
        np.testing.assert_allclose(after, now, rtol=1e-6, atol=1e-8)


def test_overlapping_groups_converge_where_expectation_maximisation_crawls():
    values = normal((0.5, 0.12, 20_000), (0.7, 0.1, 80_000))
    found = fit_mixture(values)
    assert found.converged and found.iterations < 50
    for after, now in zip(loop_em_step(values, found), (found.weights, found.means, found.variances), strict=True):
        np.testing.assert_allclose(after, now, rtol=1e-6)
    np.testing.assert_allclose(found.weights, (0.2, 0.8), atol=0.05)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("count", [50, 2000])
def test_one_normal_group_is_one_component(seed, count):
    found = fit_mixture(rng(seed).normal(size=count))
    assert not prefers_two(found) and not found.two_components
    assert found.bic_one < found.bic_two


@pytest.mark.parametrize("name", TWO_GROUPS)
def test_two_groups_are_two_components(name):
    found = fit_mixture(TWO_GROUPS[name])
    assert prefers_two(found) and found.separation > 2 and found.two_components


@pytest.mark.parametrize("name", ONE_SKEWED_GROUP)
def test_a_skewed_clean_group_deceives_bic_but_is_not_separated(name):
    """What the documentation of `two_components` says; by BIC alone a large part would count as mismatched."""
    found = fit_mixture(ONE_SKEWED_GROUP[name])
    assert prefers_two(found)
    assert 1.2 < found.separation < 1.9
    assert not found.two_components
    assert (found.posterior(ONE_SKEWED_GROUP[name]) < 0.5).mean() > 0.2


def test_the_limits_of_separation_are_as_documented():
    uniform = fit_mixture(rng().uniform(size=20_000))
    assert uniform.two_components and uniform.separation == pytest.approx(3.0, abs=0.1)
    near = fit_mixture(normal((0.5, 0.1, 8_000), (0.65, 0.1, 12_000)))
    assert prefers_two(near) and not near.two_components


def test_separation_is_ashmans_d():
    mixture = fit_mixture(TWO_GROUPS["far apart"])
    expected = 2**0.5 * (mixture.means[1] - mixture.means[0]) / (mixture.variances[0] + mixture.variances[1]) ** 0.5
    assert mixture.separation == pytest.approx(expected, rel=1e-14)


# --- Degenerate and extreme input ---------------------------------------------------------------------------------


@pytest.mark.parametrize("values", [[0.3], [0.3] * 2, [0.1] * 1000, [0.0] * 7, [-1e70] * 3, [1.0, 1.0 + 1e-80]])
def test_equal_values_are_one_component_with_every_posterior_one(values):
    found = fit_mixture(values)
    assert found.converged
    assert found.means == pytest.approx((values[0], values[0]))
    assert found.weights == (0.0, 1.0)
    assert not prefers_two(found) and not found.two_components and found.separation == 0
    assert found.posterior(values).tolist() == [1.0] * len(values)
    assert all(
        math.isfinite(number)
        for number in (*found.variances, found.log_likelihood, found.bic_one, found.bic_two, found.separation)
    )


def test_two_distinct_values_get_a_component_each():
    found = fit_mixture([0.2] * 30 + [0.8] * 70)
    assert found.converged
    assert found.means == pytest.approx((0.2, 0.8), abs=1e-9)
    assert found.weights == pytest.approx((0.3, 0.7), abs=1e-9)
    assert found.variances == pytest.approx((1e-6 * 0.21 * 0.36,) * 2, rel=1e-6)  # the floor
    assert found.two_components
    np.testing.assert_allclose(found.posterior([0.2, 0.8]), [0, 1], atol=1e-12)


def test_two_values_are_fitted_but_are_no_two_groups():
    found = fit_mixture([1.0, 3.0])
    assert found.converged
    assert found.means == pytest.approx((1.0, 3.0), abs=1e-9)
    assert not prefers_two(found)


def test_a_lone_outlier_is_not_a_group():
    found = fit_mixture(np.append(rng().normal(size=5000), 1e6))
    assert found.means[1] == pytest.approx(1e6)
    assert min(found.weights) == pytest.approx(1 / 5001, rel=1e-6)
    assert not prefers_two(found)
    assert np.isfinite(found.posterior([-1e70, 0.0, 1e6, 1e70])).all()


def test_a_spike_of_equal_values_beside_a_group():
    """As of pairs whose similarity is defined to be 0: its component stands on the variance floor."""
    values = np.concatenate([np.zeros(500), normal((0.6, 0.1, 1500))])
    found = fit_mixture(values)
    assert found.converged and found.two_components
    assert found.means == pytest.approx((0.0, 0.6), abs=0.02)
    assert found.weights == pytest.approx((0.25, 0.75), abs=0.01)


def test_no_likelihood_is_lost_to_the_start_or_to_the_floor(monkeypatch):
    values = normal((0.0, 1e-9, 500), (1.0, 0.2, 500))
    found = fit_mixture(values)
    assert found.variances[0] == pytest.approx(1e-6 * values.var(), rel=1e-6)
    monkeypatch.setattr(mixture_module, "FLOOR", 1e-15)
    assert fit_mixture(values).log_likelihood > found.log_likelihood


def test_the_order_of_the_values_does_not_matter():
    values = TWO_GROUPS["moderate"]
    assert fit_mixture(values) == fit_mixture(values[::-1]) == fit_mixture(np.sort(values)) == fit_mixture(values)


@pytest.mark.parametrize(("factor", "offset"), [(1e-30, 0.0), (3.0, -7.0), (1e20, 1e20), (0.01, 100.0)])
def test_fit_follows_scale_and_offset(factor, offset):
    values = TWO_GROUPS["far apart"]
    plain, moved = fit_mixture(values), fit_mixture(factor * values + offset)
    np.testing.assert_allclose(np.array(plain.means) * factor + offset, moved.means, rtol=1e-9)
    np.testing.assert_allclose(np.array(plain.variances) * factor**2, moved.variances, rtol=1e-8)
    np.testing.assert_allclose(plain.weights, moved.weights, rtol=1e-8)
    np.testing.assert_allclose(plain.bic_two - plain.bic_one, moved.bic_two - moved.bic_one, rtol=1e-6)


def test_a_large_offset_costs_no_more_than_the_rounding_of_the_values():
    values = np.round(TWO_GROUPS["far apart"] * 1000) / 1024  # exact beside the offset
    plain, moved = fit_mixture(values), fit_mixture(values + 2.0**40)
    np.testing.assert_allclose(plain.variances, moved.variances, rtol=1e-9)
    np.testing.assert_allclose(plain.weights, moved.weights, rtol=1e-9)


def test_negation_swaps_the_components():
    values = TWO_GROUPS["few mismatches"]
    plain, negated = fit_mixture(values), fit_mixture(-values)
    np.testing.assert_allclose(plain.means, -np.array(negated.means[::-1]), rtol=1e-9)
    np.testing.assert_allclose(plain.posterior(values), 1 - negated.posterior(-values), atol=1e-9)


def test_a_fit_that_is_cut_short_says_so(monkeypatch):
    monkeypatch.setattr(mixture_module, "STEPS", 1)
    found = fit_mixture(TWO_GROUPS["moderate"])
    assert not found.converged and found.iterations == 1
    assert np.isfinite(found.posterior([0.1, 0.5])).all()


def test_it_takes_tensors_and_float32():
    values = TWO_GROUPS["far apart"].astype(np.float32)
    assert fit_mixture(torch.from_numpy(values)) == fit_mixture(values.astype(np.float64))


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf, 1e71])
def test_values_that_are_not_finite_are_refused_and_named(bad):
    with pytest.raises(InputError, match=r"values\[2\] is"):
        fit_mixture([0.1, 0.2, bad, 0.4])
    with pytest.raises(InputError, match=r"values\[1\] is"):
        fit_mixture([0.1, 0.2, 0.9]).posterior([0.1, bad])


def test_no_values_are_refused():
    with pytest.raises(InputError, match="empty"):
        fit_mixture([])


# --- The posterior ------------------------------------------------------------------------------------------------


def mixture_of(lower, upper, deviation_1, deviation_2, weight):
    return Mixture(
        means=(lower, upper),
        variances=(deviation_1**2, deviation_2**2),
        weights=(1 - weight, weight),
        count=100,
        iterations=1,
        converged=True,
        log_likelihood=0.0,
        bic_one=0.0,
        bic_two=0.0,
    )


def loop_posterior(value, mixture):
    logs = [
        math.log(weight) - 0.5 * math.log(2 * math.pi * variance) - (value - mean) ** 2 / (2 * variance)
        for weight, mean, variance in zip(mixture.weights, mixture.means, mixture.variances, strict=True)
    ]
    return math.exp(logs[1] - max(logs)) / sum(math.exp(log - max(logs)) for log in logs)


@settings(max_examples=100, deadline=None)
@given(
    lower=st.floats(-2, 2),
    gap=st.floats(0, 4),
    deviation_1=st.floats(0.01, 3),
    deviation_2=st.floats(0.01, 3),
    weight=st.floats(0.01, 0.99),
)
def test_posterior(lower, gap, deviation_1, deviation_2, weight):
    mixture = mixture_of(lower, lower + gap, deviation_1, deviation_2, weight)
    values = np.concatenate([np.linspace(-20, 20, 101), np.linspace(lower, lower + gap, 21), [-1e6, 1e6]])
    plain, monotone = mixture.posterior(values, monotone=False), mixture.posterior(values)
    expected = [loop_posterior(value, mixture) for value in values[:-2]]  # exact at moderate distances only
    np.testing.assert_allclose(plain[:-2], expected, rtol=1e-7, atol=1e-300)
    for posterior in (plain, monotone):
        assert ((posterior >= 0) & (posterior <= 1)).all()
    assert (np.diff(monotone[np.argsort(values)]) >= -1e-12).all()
    between = (values >= lower) & (values <= lower + gap)
    np.testing.assert_allclose(monotone[between], plain[between], rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(("deviation_1", "deviation_2"), [(0.1, 0.5), (0.5, 0.1)])
def test_plain_posterior_turns_round_and_the_default_does_not(deviation_1, deviation_2):
    """The trap: the wider component claims the far end that belongs to the other one."""
    mixture = mixture_of(0.0, 1.0, deviation_1, deviation_2, 0.5)
    far = np.array([-10.0]) if deviation_2 > deviation_1 else np.array([10.0])
    wrong, right = mixture.posterior(far, monotone=False)[0], mixture.posterior(far)[0]
    assert (wrong > 0.99 and right < 0.1) if far[0] < 0 else (wrong < 0.01 and right > 0.9)


def test_posterior_keeps_the_shape():
    mixture = fit_mixture(TWO_GROUPS["moderate"])
    assert mixture.posterior(np.zeros((2, 3))).shape == (2, 3)
    assert mixture.posterior(0.5).shape == ()
    assert mixture.posterior([]).shape == (0,)


# --- Doubt in words -------------------------------------------------------------------------------------------------


def test_doubt_says_which_condition_fails_and_nothing_where_none_does():
    assert fit_mixture(TWO_GROUPS["far apart"]).doubt is None
    outlier = fit_mixture(np.append(rng().normal(size=5000), 1e6)).doubt
    assert outlier is not None and "the smaller group holds 1.0 of 5001 values" in outlier
    near = fit_mixture(normal((0.5, 0.1, 8_000), (0.65, 0.1, 12_000)))
    assert near.doubt is not None and f"separation {near.separation:.2f}, more than 2 asked" in near.doubt
    one = fit_mixture(rng().normal(size=300))
    assert one.doubt is not None
    assert ("one normal distribution fits as well" in one.doubt) == (not one.bic_two < one.bic_one)


@pytest.mark.parametrize("name", [*TWO_GROUPS, *ONE_SKEWED_GROUP])
def test_there_is_doubt_exactly_where_there_are_no_two_components(name):
    found = fit_mixture({**TWO_GROUPS, **ONE_SKEWED_GROUP}[name])
    assert (found.doubt is None) == found.two_components
