"""How many pairs score like known mismatches: on normal distributions, against plain loops, with ties."""

import numpy as np
import pytest

from tests.audit.verdict.naive_verdict import naive_share
from tests.audit.verdict.test_verdict import made
from truepair.audit.verdict.low_end import CAUTION, WIDTH, Estimate, estimate_share, pooled, ratio_error


def covered(pairs, share, known):
    """How often in 40 draws the interval holds the share, and the mean estimate."""
    found = []
    for seed in range(40):
        evidence, _, synthetic = made(pairs, share, known, seed=seed)
        estimate = estimate_share(evidence[:, 0], synthetic["random"][:, 0])
        found.append((abs(estimate.share - share) <= WIDTH * estimate.error, estimate.share))
    return np.mean(found, axis=0).tolist()


@pytest.mark.parametrize(("share", "least"), [(0.0, 0.9), (0.1, 0.8), (0.4, 0.75), (0.95, 0.65)])
def test_the_share_is_found_where_many_mismatches_are_known(share, least):
    often, mean = covered(6000, share, 20_000)
    assert often >= least
    assert mean == pytest.approx(share, abs=0.025)


@pytest.mark.parametrize("share", [0.4, 0.6])
def test_the_interval_covers_the_share_where_few_mismatches_are_known(share):
    assert covered(6000, share, 360)[0] >= 0.9


def test_of_two_estimates_the_certain_one_weighs_more():
    rough, fine = Estimate(0.2, 0.03, 0.1), Estimate(0.4, 0.01, 0.3)
    assert pooled(rough, fine) == pooled(fine, rough) == Estimate(pytest.approx(0.38), 0.01, 0.3)
    assert pooled(rough, Estimate(0.5, 0.0, 0.2)).share == 0.5


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize(("pairs", "known"), [(70, 20), (500, 33), (300, 400)])
def test_share_as_plain_loops_say(pairs, known, seed):
    evidence, _, synthetic = made(pairs, [0, 0.1, 0.3, 0.6, 0.9, 1][seed], known, seed=seed, apart=2.0)
    found = estimate_share(evidence[:, 0], synthetic["random"][:, 0])
    expected = naive_share(evidence[:, 0].tolist(), synthetic["random"][:, 0].tolist(), CAUTION)
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
