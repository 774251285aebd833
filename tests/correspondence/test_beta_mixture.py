"""The beta mixture against plain steps of expectation maximisation by scipy's densities; where there is one group."""

import numpy as np
import pytest
from scipy import stats

from truepair.correspondence import beta_mixture
from truepair.correspondence.beta_mixture import fit_beta_mixture
from truepair.errors import InputError

DRAW = np.random.default_rng(0)
VALUES = np.concatenate([DRAW.beta(2, 8, 300), DRAW.beta(9, 3, 700)])


def plain_fit(values, steps):
    x = np.clip(values, 1e-4, 1 - 1e-4)
    shapes, weights = [(1.0, 2.0), (2.0, 1.0)], [0.5, 0.5]
    for _ in range(steps):
        densities = np.stack([w * stats.beta.pdf(x, *shape) for w, shape in zip(weights, shapes, strict=True)])
        shares = densities / densities.sum(axis=0)
        weights, shapes = list(shares.mean(axis=1)), []
        for share in shares:
            mean = np.average(x, weights=share)
            variance = np.average((x - mean) ** 2, weights=share)
            alpha = mean * (mean * (1 - mean) / variance - 1)
            shapes.append((alpha, alpha * (1 - mean) / mean))
    return shapes, weights


def plain_posterior(values, shapes, weights):
    x = np.clip(values, 1e-4, 1 - 1e-4)
    first, second = (w * stats.beta.pdf(x, *shape) for w, shape in zip(weights, shapes, strict=True))
    return second / (first + second)


def test_ten_steps_are_those_of_a_plain_loop():
    edges = np.sort(np.clip(VALUES, 1e-4, 1 - 1e-4))
    found = beta_mixture._climb(edges, [(1.0, 2.0), (2.0, 1.0)], 11, 0)  # the last one only looks at what ten made
    shapes, weights = plain_fit(VALUES, 10)
    assert found.shapes == [pytest.approx(shape, rel=1e-9) for shape in shapes]
    assert found.weights == pytest.approx(weights, rel=1e-9)


def test_posteriors_are_those_of_the_densities():
    found = fit_beta_mixture(VALUES)
    shapes, weights = list(zip(found.alphas, found.betas, strict=True)), found.weights
    at = np.linspace(found.means[0], found.means[1], 50)
    assert found.posterior(at) == pytest.approx(plain_posterior(at, shapes, weights), abs=1e-9)


def test_two_groups_are_found():
    found = fit_beta_mixture(VALUES)
    assert found.doubt is None
    assert found.weights[0] == pytest.approx(0.3, abs=0.05)
    assert found.means == pytest.approx((0.2, 0.75), abs=0.05)
    draws = [stats.beta(a, b) for a, b in zip(found.alphas, found.betas, strict=True)]
    assert found.variances == pytest.approx([draw.var() for draw in draws])
    density = sum(w * draw.pdf(np.clip(VALUES, 1e-4, 1 - 1e-4)) for w, draw in zip(found.weights, draws, strict=True))
    assert found.log_likelihood == pytest.approx(np.log(density).sum())
    assert np.mean((found.posterior(VALUES) > 0.5) == (np.arange(1000) >= 300)) > 0.95


def test_the_group_of_the_larger_mean_comes_second_wherever_it_started(monkeypatch):
    """Steps that end with the groups exchanged: the released codes then call the noisy pairs clean."""
    real = beta_mixture._moments
    monkeypatch.setattr(beta_mixture, "_moments", lambda x, share: real(x, share if share.min() == 1 else 1 - share))
    monkeypatch.setattr(beta_mixture, "STEPS", 2)
    found = fit_beta_mixture(VALUES)
    assert found.means[0] < found.means[1]
    assert np.all(np.diff(found.posterior(np.linspace(0, 1, 99))) >= -1e-12)


def test_posteriors_never_fall():
    for groups in (
        (VALUES,),
        (DRAW.beta(20, 60, 500), DRAW.beta(3, 2, 500)),
        (DRAW.beta(1, 1, 300), DRAW.beta(40, 20, 900)),
    ):
        posterior = fit_beta_mixture(np.concatenate(groups)).posterior(np.linspace(0, 1, 999))
        assert np.all(np.diff(posterior) >= -1e-12) and posterior.min() >= 0 and posterior.max() <= 1


def test_the_mirror_image_has_the_same_groups():
    found, mirrored = fit_beta_mixture(VALUES), fit_beta_mixture(1 - VALUES)
    assert mirrored.alphas[::-1] == pytest.approx(found.betas, rel=1e-6)
    assert mirrored.weights[::-1] == pytest.approx(found.weights, rel=1e-6)


@pytest.mark.parametrize("share", [0.4, 0.6, 0.8])
def test_losses_near_zero_and_a_wide_tail_are_two_groups(share):
    """From Beta(1, 2) and Beta(2, 1) alone, the steps end below the likelihood of one distribution."""
    draw = np.random.default_rng(2)
    clean = int(3000 * share)
    losses = np.concatenate([draw.exponential(0.005, clean), draw.uniform(0.3, 1, 3000 - clean)])
    found = fit_beta_mixture(1 - losses / losses.max())
    assert found.doubt is None
    assert found.weights[1] == pytest.approx(share, abs=0.05)
    assert np.mean((found.posterior(1 - losses / losses.max()) > 0.5) == (np.arange(3000) < clean)) > 0.99


def plain_likelihood(x, cut):
    total = np.zeros(len(x))
    for part in (x[:cut], x[cut:]):
        mean, variance = part.mean(), max(part.var(), 1e-8)
        alpha = mean * (mean * (1 - mean) / variance - 1)
        total += len(part) / len(x) * stats.beta.pdf(x, alpha, alpha * (1 - mean) / mean)
    return np.log(total).mean()


@pytest.mark.parametrize("count", [2, 3, 40, 100])
def test_the_second_start_is_the_likeliest_cut(count):
    x = np.sort(DRAW.uniform(0.05, 0.95, size=count))
    likelihoods = [plain_likelihood(x, cut) for cut in range(1, count)]
    assert beta_mixture._likeliest_cut(x) == 1 + int(np.argmax(likelihoods))


def test_of_many_values_some_choose_the_cut(monkeypatch):
    x = np.sort(np.clip(VALUES, 1e-4, 1 - 1e-4))
    exact = beta_mixture._likeliest_cut(x)
    monkeypatch.setattr(beta_mixture, "MOST_TRIED", 90)
    assert exact == pytest.approx(300, abs=50) and beta_mixture._likeliest_cut(x) == pytest.approx(exact, abs=50)


def test_examples_are_the_only_start():
    examples = (VALUES[:20], VALUES[300:320])
    alone = fit_beta_mixture(VALUES, start=examples, steps=1)
    assert alone.alphas == tuple(beta_mixture._moments(part, np.ones(20))[0] for part in examples)


def test_one_group_is_doubted():
    assert "one beta distribution fits as well" in (fit_beta_mixture(DRAW.beta(4, 2, 2000)).doubt or "")
    equal = fit_beta_mixture(np.full(20, 0.3))
    assert equal.doubt and equal.posterior([0.1, 0.9]).tolist() == [1.0, 1.0]


@pytest.mark.parametrize("values", [[0.0, 1.0] * 20, [0.0] * 50 + [1.0], [0.5, 0.5000001] * 30])
def test_extremes_are_finite(values):
    found = fit_beta_mixture(values)
    assert np.all(np.isfinite([*found.alphas, *found.betas, found.bic_one])) and np.all(
        np.isfinite(found.posterior(values))
    )


@pytest.mark.parametrize("values", [[], [0.2, 1.2], [float("nan")], [-0.1]])
def test_bad_values_are_refused(values):
    with pytest.raises(InputError):
        fit_beta_mixture(values)
