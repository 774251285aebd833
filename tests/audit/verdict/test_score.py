"""Weights of the evidence in one score: what captions of the nearest image allow, and means of weightings."""

import numpy as np
import pytest

from truepair.audit.scoring.evidence import NearestCopies
from truepair.audit.verdict.score import guarded, mean_weights


def test_the_more_near_mismatches_there_are_the_more_the_first_column_counts():
    rng = np.random.default_rng(0)
    given, copies = rng.normal(size=(500, 2)) + 2, rng.normal(size=(500, 2))
    nearest = NearestCopies(given, rng.normal(size=500), copies, rng.normal(size=500))  # ranks at random: no bound
    weights = np.array([1.0, 3.0])
    spread, found = given.std(axis=0), [guarded(weights, given, nearest, near=near) for near in (0.0, 0.4, 1.0)]
    assert [left for _, left in found] == [1.0, 0.6, 0.0]
    for moved, left in found:
        np.testing.assert_allclose(moved, [1 + 3 * (1 - left) * spread[1] / spread[0], 3 * left])


def test_half_of_what_can_be_gained_on_the_nearest_copies_is_kept():
    """By plain loops: of all twentieths the largest that ranks the copies at least half way to the best."""
    rng = np.random.default_rng(3)
    given, copies = rng.normal((1.0, 0.1), size=(400, 2)), rng.normal(size=(300, 2))
    plain, copied = given[:, 0] + rng.normal(size=400), copies[:, 0] + rng.normal(size=300)
    weights, spread = np.array([0.5, 2.0]), given.std(axis=0)

    def ranked(first, second):
        return np.mean([[(one > other) + 0.5 * (one == other) for other in second] for one in first])

    reached = []
    for step in range(21):
        tried = np.array([0.5 + 2 * (1 - step / 20) * spread[1] / spread[0], 2 * step / 20])
        reached.append(ranked(given @ tried, copies @ tried))
    least = (ranked(plain, copied) + max(reached)) / 2
    expected = max(step for step in range(21) if reached[step] >= least) / 20
    assert 0 < expected < 1
    _, left = guarded(weights, given, NearestCopies(given, plain, copies, copied))
    assert left == pytest.approx(expected)


def test_means_of_weights_are_of_scores_of_one_spread():
    evidence = np.random.default_rng(0).normal(size=(500, 2))
    mean = mean_weights(evidence, np.array([1.0, 0.0]), np.array([0.0, 7.0]), 0.5)
    np.testing.assert_allclose(mean, 0.5 / evidence.std(axis=0))


# --- Weights ------------------------------------------------------------------------------------------------------
