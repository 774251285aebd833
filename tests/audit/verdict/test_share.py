"""How many pairs score like synthetic mismatches: on normal distributions, against plain loops, with ties."""

import numpy as np
import pytest

from tests.audit.verdict.naive_verdict import naive_share
from tests.audit.verdict.test_verdict import made
from truepair.audit.scoring.local_ranks import LocalRanks
from truepair.audit.verdict.near_share import near_share
from truepair.correspondence.mixture_proportion import (
    CAUTION,
    Estimate,
    auroc_among,
    estimate_share,
    intercept,
    pooled,
    quantiles_among,
    ratio_error,
)


@pytest.mark.parametrize("apart", [1.5, 2.0, 3.0, 4.0])
@pytest.mark.parametrize(("pairs", "synthetic"), [(2000, 300), (6000, 20_000), (12_000, 360)])
def test_the_interval_covers_the_share_as_often_as_it_says(pairs, synthetic, apart):
    """At least 0.93 of 100 draws for each share, whether groups overlap or not; and it is no wider than it needs."""
    for share in (0.02, 0.1, 0.3, 0.6, 0.8):
        rng = np.random.default_rng([pairs, int(10 * apart), int(100 * share)])
        held, wide = 0, 0.0
        for _ in range(100):
            mismatched = rng.binomial(pairs, share)
            given = np.concatenate([rng.normal(size=mismatched), rng.normal(size=pairs - mismatched) + apart])
            found = estimate_share(given, rng.normal(size=synthetic))
            held += found.low <= share <= found.high
            wide += (found.high - found.low) / 100
        assert held >= 93, share
        assert wide < (0.6 if apart == 1.5 else 0.5)
        if synthetic == 20_000 and apart == 4:  # told apart almost surely, however many are mismatched
            assert wide < 0.09, share


def test_scored_several_times_the_share_is_steadier_and_covered_as_often():
    """Models of other divisions into folds agree in a part of what they say of a pair (correlation 0.6)."""
    pairs, times, shares = 2000, 5, {1: [], 5: []}
    for share in (0.3, 0.8):
        held = 0
        for draw in range(100):
            rng = np.random.default_rng([draw, int(100 * share)])
            mismatched = rng.random(pairs) < share
            common = rng.normal(size=pairs) * 0.6**0.5 + 2 * ~mismatched
            given = (common + rng.normal(size=(times, pairs)) * 0.4**0.5).ravel()
            synthetic = rng.normal(size=times * pairs)
            found = estimate_share(given, synthetic, times=times)
            held += found.low <= share <= found.high
            shares[times].append(found.share - share)
            shares[1].append(estimate_share(given[:pairs], synthetic[:pairs]).share - share)
        assert held >= 93, share
    assert np.std(shares[times]) < 0.9 * np.std(shares[1])


def test_the_same_scores_several_times_are_as_certain_as_once():
    evidence, _, synthetic = made(500, 0.3, 400, seed=0, apart=2.0)
    once = estimate_share(evidence[:, 0], synthetic["random"][:, 0])
    again = estimate_share(np.tile(evidence[:, 0], 5), np.tile(synthetic["random"][:, 0], 5), times=5)
    for name in ("share", "low", "high", "error", "quantile"):
        assert getattr(again, name) == pytest.approx(getattr(once, name), rel=0.05), name


def test_of_two_estimates_the_certain_one_weighs_more():
    rough, fine = Estimate(0.2, 0.1, 0.4, 0.03, 0.1), Estimate(0.4, 0.35, 0.48, 0.01, 0.3)
    assert pooled(rough, fine) == pooled(fine, rough)
    both = pooled(rough, fine)
    assert (both.share, both.low, both.high) == pytest.approx((0.38, 0.33, 0.46)) and both.error == 0.01
    assert pooled(rough, Estimate(0.5, 0.5, 0.5, 0.0, 0.2)).share == 0.5


@pytest.mark.parametrize(("share", "slope"), [(0.0, 1.0), (0.2, 0.5), (0.5, 0.0)])
def test_the_intercept_is_the_density_at_the_low_end(share, slope):
    """Of a density share + slope u below one half, the rest above it."""
    rng = np.random.default_rng(0)
    u = rng.random(400_000)
    kept = u[(u >= 0.5) | (rng.random(len(u)) < share + slope * u)]
    everything = np.concatenate([kept, np.full(400_000 - len(kept), 0.9)])
    found, error = intercept(everything, 0.5)
    assert found == pytest.approx(share, abs=4 * error) and error < 0.01


def test_quantiles_count_equal_ones_half():
    assert quantiles_among(np.array([0.0, 1.0, 2.0]), np.array([1.0, 1.0, 3.0])).tolist() == [0.0, 1 / 3, 2 / 3]


@pytest.mark.parametrize(("count", "made"), [(1, 1), (40, 25), (7, 300)])
def test_the_auroc_is_that_of_all_comparisons(count, made):
    """Whole numbers, so that many are equal."""
    rng = np.random.default_rng(count)
    values, synthetic = rng.integers(0, 6, count).astype(float), rng.integers(-2, 4, made).astype(float)
    won = 0.0
    for value in values:
        for other in synthetic:
            won += 1.0 if value > other else 0.5 if value == other else 0.0
    assert auroc_among(values, synthetic) == pytest.approx(won / (count * made), abs=1e-12)
    assert auroc_among(values, values) == pytest.approx(0.5, abs=1e-12)


@pytest.mark.parametrize("near", [0.0, 0.1, 0.3])
def test_the_near_share_is_beside_that_of_random_ones(near):
    rng, random = np.random.default_rng(1), Estimate(0.1, 0.08, 0.12, 0.01, 0.3)
    mismatched = rng.random(8000) < 0.1 + near
    given = np.where(mismatched, rng.random(8000), 1 - 0.4 * rng.random(8000) ** 2)
    found = near_share([LocalRanks(given, rng.random(20_000))], random)
    assert found.share == pytest.approx(near, abs=0.03) and found.low <= near <= found.high
    assert found.counted <= found.share and (found.counted > 0) == (near > 0.2)
    ramp = np.sqrt(rng.random(8000))  # matched pairs that cannot be told from their like, and no mismatch
    unseen = near_share([LocalRanks(ramp, rng.random(20_000))], Estimate(0.0, 0.0, 0.0, 0.0, 0.3))
    assert unseen.share < 0.05 and unseen.counted == 0 and unseen.high == pytest.approx(0.5, abs=0.05)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize(("pairs", "known"), [(70, 20), (500, 33), (300, 400)])
def test_share_as_plain_loops_say(pairs, known, seed):
    evidence, _, synthetic = made(pairs, [0, 0.1, 0.3, 0.6, 0.9, 1][seed], known, seed=seed, apart=2.0)
    scores, ruler = evidence[:, 0], synthetic["random"][:, 0]
    for times in (1, 3):
        again = np.random.default_rng(seed).normal(scale=0.2, size=(times, pairs + known))
        given, made_up = (scores + again[:, :pairs]).ravel(), (ruler + again[:, pairs:]).ravel()
        found = estimate_share(given, made_up, times=times)
        expected = naive_share(given.tolist(), made_up.tolist(), CAUTION, times)
        assert (found.share, found.error, found.quantile) == pytest.approx(expected, rel=1e-12)


def test_the_error_of_a_ratio_is_that_of_drawing_again():
    """Binomial counts above and below, drawn 20,000 times."""
    rng = np.random.default_rng(0)
    below, quantile, pairs, known = 0.08, 0.2, 2000, 400
    again = (rng.binomial(pairs, below, 20_000) / pairs) / (rng.binomial(known, quantile, 20_000) / known)
    found = ratio_error(np.array([below]), np.array([quantile]), pairs, known)[0]
    assert found == pytest.approx(again.std(), rel=0.05)
    assert ratio_error(np.array([0.0]), np.array([quantile]), pairs, known)[0] > 0


def test_synthetic_mismatches_all_tied_counts_what_is_not_above_it():
    found = estimate_share(np.repeat([0.0, 1.0], [30, 70]), np.zeros(50))
    assert (found.share, found.quantile) == (pytest.approx(0.3), 1.0) and found.error > 0
