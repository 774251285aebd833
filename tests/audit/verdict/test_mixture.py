"""The verdict where there is no synthetic: two groups, one group, hardly any pairs."""

import math

import numpy as np
import pytest

from truepair.audit.verdict.mixture import mixture_verdict
from truepair.correspondence.mixture import fit_mixture
from truepair.errors import InputError


def made(pairs, share, *, apart=6.0, columns=1, seed=0):
    rng = np.random.default_rng(seed)
    mismatched = rng.permutation(pairs) < round(share * pairs)
    return rng.normal(size=(pairs, columns)) + apart * ~mismatched[:, None], mismatched


@pytest.mark.parametrize("columns", [1, 2])
@pytest.mark.parametrize("share", [0.1, 0.5, 0.8])
def test_two_groups_are_told_apart(share, columns):
    evidence, mismatched = made(1500, share, columns=columns)
    verdict = mixture_verdict(evidence)
    assert verdict.two_groups and verdict.doubt is None
    assert (verdict.flagged == mismatched).mean() > 0.99
    assert np.array_equal(verdict.flagged, verdict.p_match < 0.5) and verdict.p_match.dtype == np.float32
    assert verdict.noise_rate == pytest.approx(share, abs=0.01)
    assert verdict.noise_rate == pytest.approx(1 - float(verdict.p_match.mean()), abs=1e-6)
    assert verdict.noise_rate_low < share < verdict.noise_rate_high
    assert verdict.details["resampled_with_two_groups"] == 1


def test_the_interval_is_as_wide_as_the_estimate_varies():
    found = [mixture_verdict(made(500, 0.3, apart=4.0, seed=seed)[0], seed=seed) for seed in range(8)]
    for verdict in found:
        assert verdict.noise_rate_low + verdict.noise_rate_high == pytest.approx(2 * verdict.noise_rate)
    error = np.mean([verdict.noise_rate_high - verdict.noise_rate_low for verdict in found]) / (2 * 1.96)
    # Pairs drawn again are not exactly 30 % mismatched ones, as they are here.
    drawn = (0.3 * 0.7 / 500) ** 0.5
    assert error == pytest.approx((drawn**2 + np.var([verdict.noise_rate for verdict in found])) ** 0.5, rel=0.3)


def test_the_interval_of_many_pairs_is_narrower_than_that_of_the_pairs_drawn_again(monkeypatch):
    evidence, _ = made(4000, 0.3, apart=4.0)
    whole = mixture_verdict(evidence)
    monkeypatch.setattr("truepair.audit.verdict.mixture.RESAMPLED_PAIRS", 500)
    some = mixture_verdict(evidence)
    width, narrow = (verdict.noise_rate_high - verdict.noise_rate_low for verdict in (whole, some))
    assert narrow == pytest.approx(width, rel=0.4)


@pytest.mark.parametrize("pairs", [50, 1500])
def test_one_group_is_left_alone(pairs):
    verdict = mixture_verdict(np.random.default_rng(1).gamma(4.0, size=(pairs, 1)))
    assert not verdict.two_groups and verdict.doubt
    assert (verdict.p_match == 1).all() and not verdict.flagged.any()
    assert verdict.noise_rate == verdict.noise_rate_low == 0
    assert verdict.noise_rate_high == 1  # all of them may be mismatched


def test_two_groups_that_overlap_are_within_the_interval_of_one():
    verdict = mixture_verdict(made(5000, 0.4, apart=1.2)[0])
    assert not verdict.two_groups and verdict.noise_rate_low <= 0.4 <= verdict.noise_rate_high


@pytest.mark.parametrize("evidence", [[[1.0]], [[1.0], [2.0]], [[0.1, 5.0]] * 400, [[0.1], [0.1]] * 20])
def test_hardly_any_or_equal_pairs_are_one_group(evidence):
    verdict = mixture_verdict(np.array(evidence))
    assert not verdict.two_groups and not verdict.flagged.any() and len(verdict.p_match) == len(evidence)
    assert (verdict.noise_rate, verdict.noise_rate_low, verdict.noise_rate_high) == (0, 0, 1)


def test_columns_count_alike_and_constant_ones_not_at_all():
    evidence, _ = made(600, 0.3, columns=2)
    plain = mixture_verdict(evidence)
    other = mixture_verdict(np.concatenate([evidence * [1, 1024], np.full((600, 1), 0.1)], axis=1))
    np.testing.assert_allclose(other.p_match, plain.p_match, atol=1e-5)
    score = (evidence / evidence.std(axis=0)).sum(axis=1)
    np.testing.assert_allclose(plain.p_match, fit_mixture(score).posterior(score), atol=1e-6)


def test_the_seed_decides_the_interval_alone():
    evidence, _ = made(600, 0.3)
    first, again, other = (mixture_verdict(evidence, seed=seed) for seed in (0, 0, 1))
    assert first.noise_rate_low == again.noise_rate_low != other.noise_rate_low
    assert np.array_equal(first.p_match, other.p_match)


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, 1e100])
def test_what_is_not_finite_is_refused(value):
    evidence, _ = made(50, 0.3)
    evidence[7] = value
    with pytest.raises(InputError, match="evidence\\[7\\]"):
        mixture_verdict(evidence)


@pytest.mark.parametrize("shape", [(0, 1), (3, 0), (3,)])
def test_evidence_of_another_shape_is_refused(shape):
    with pytest.raises(InputError, match="evidence has shape"):
        mixture_verdict(np.ones(shape))
