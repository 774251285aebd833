"""Weights of the evidence in one score: what captions of the nearest image allow, and means of weightings."""

import numpy as np
import pytest

from truepair.audit.scoring.evidence import NearestCopies
from truepair.audit.verdict.near_share import NearShare
from truepair.audit.verdict.score import guarded, mean_weights
from truepair.audit.verdict.verdict import expected_near
from truepair.correspondence.mixture_proportion import Estimate


def ranked(first, second):
    first, second = first.tolist(), second.tolist()  # Python's numbers: many times as fast in a loop
    return np.mean([[(one > other) + 0.5 * (one == other) for other in second] for one in first])


def samples(seed, columns=3):
    """Neighbours (the second column) tell random mismatches best, and speak for the copies; the third knows both."""
    rng = np.random.default_rng(seed)
    given = rng.normal((1.0, 2.0, 1.0), size=(200, 3))
    random, copies = rng.normal(0.0, 1.0, size=(150, 3)), rng.normal((0.3, 3.0, 0.0), size=(120, 3))
    unused = rng.normal(size=200), rng.normal(size=120)
    return given, random, NearestCopies(given[:, :columns], unused[0], copies[:, :columns], unused[1])


@pytest.mark.parametrize("near", [0.0, 0.2, 0.5, 0.99])
def test_the_part_that_ranks_the_expected_mismatches_best_is_left(near):
    """By plain loops over all twentieths."""
    given, random, nearest = samples(3)
    weights, spread, reached = np.array([0.5, 2.0, 0.7]), given.std(axis=0), []
    for step in range(21):
        tried = np.array([0.5 + 2 * (1 - step / 20) * spread[1] / spread[0], 2 * step / 20, 0.7])
        own = nearest.given @ tried
        reached.append((1 - near) * ranked(own, random @ tried) + near * ranked(own, nearest.copies @ tried))
    moved, left = guarded(weights, given, random, nearest, near=near)
    assert left == pytest.approx(int(np.argmax(reached)) / 20)
    np.testing.assert_allclose(
        moved, [0.5 + 2 * (1 - left) * spread[1] / spread[0], 2 * left, 0.7], err_msg="the third column is not touched"
    )


def test_the_more_near_mismatches_are_expected_the_less_is_left_to_the_neighbours():
    given, random, nearest = samples(5)
    left = [guarded(np.array([0.5, 2.0, 0.7]), given, random, nearest, near=near)[1] for near in (0.0, 0.3, 0.6, 1.0)]
    assert left == sorted(left, reverse=True) and left[0] > 0.5 and left[-1] == 0.0


@pytest.mark.parametrize(
    ("random", "near", "expected"),
    [(0.3, 0.1, 0.25), (0.0, 0.2, 0.99), (0.4, 0.0, 0.0), (0.004, 0.003, 0.5), (0.4, None, 0.0), (0.0, None, 0.5)],
)
def test_near_mismatches_are_expected_as_local_ranks_show_them(random, near, expected):
    """Of few mismatches in all nothing is known: half and half."""
    shown = None if near is None else NearShare(near, 0.0, 1.0, 0.0, 1000)
    assert expected_near(Estimate(random, 0.0, 1.0, 0.01, 0.1), shown) == pytest.approx(expected)


def test_weights_stay_where_there_is_nothing_to_choose_by():
    given, random, nearest = samples(0)
    weights = np.array([0.5, 2.0, 0.7])
    alone = NearestCopies(nearest.given[:, :1], nearest.given_similarity, nearest.copies[:, :1], nearest.similarity)
    empty = NearestCopies(nearest.given, nearest.given_similarity, nearest.copies[:0], nearest.similarity[:0])
    for copies in (None, alone, empty):
        found, left = guarded(weights, given, random, copies, near=0.9)
        assert left == 1.0 and found is weights


def test_means_of_weights_are_of_scores_of_one_spread():
    evidence = np.random.default_rng(0).normal(size=(500, 2))
    mean = mean_weights(evidence, np.array([1.0, 0.0]), np.array([0.0, 7.0]), 0.5)
    np.testing.assert_allclose(mean, 0.5 / evidence.std(axis=0))


# --- Weights ------------------------------------------------------------------------------------------------------
