"""Near mismatches: when they are believed in, and how many of the mismatched pairs they are."""

import numpy as np
import pytest

from truepair.audit.verdict.local_share import LocalShare
from truepair.audit.verdict.low_end import Estimate
from truepair.audit.verdict.near_mismatches import (
    LEAST_MORE,
    MORE_OF_RANDOM,
    MOST_NEAR,
    UNCERTAIN,
    near_mismatches,
    near_weight,
    record,
)


@pytest.mark.parametrize(
    ("random", "local", "error", "believed"),
    [
        (0.0, 0.03, 0.01, False),  # clean pairs, as seen
        (0.0, 0.1, 0.01, True),
        (0.0, 0.1, 0.05, False),  # of few pairs
        (0.4, 0.5, 0.02, False),  # random noise, as seen
        (0.1, 0.24, 0.02, True),
        (0.6, 0.73, 0.02, False),
        (0.15, 0.71, 0.02, True),
        (0.3, 0.1, 0.01, False),
    ],
)
def test_who_is_believed(random, local, error, believed):
    found = near_mismatches(Estimate(random, 0.007, 0.2), LocalShare(local, error, 900))
    assert found.believed is believed
    assert found.share == (local if believed else random)
    assert found.at_most == max(local, random)
    assert found.error == (pytest.approx(np.hypot(error, UNCERTAIN)) if believed else 0.007)


@pytest.mark.parametrize("random", [0.0, 0.2, 0.5])
def test_the_rule_is_the_one_that_is_described(random):
    edge = random + LEAST_MORE + MORE_OF_RANDOM * random + 0.02
    for local, believed in ((edge - 1e-6, False), (edge + 1e-6, True)):
        assert near_mismatches(Estimate(random, 0.01, 0.2), LocalShare(local, 0.02, 900)).believed is believed


def test_without_local_ranks_all_are_random():
    found = near_mismatches(Estimate(0.2, 0.01, 0.3), None)
    assert (found.share, found.error, found.at_most, found.believed) == (0.2, 0.01, 0.2, False)
    assert record(found, None, 0.0) is None


def test_what_the_summary_says():
    local = LocalShare(0.4, 0.01, 900)
    found = near_mismatches(Estimate(0.1, 0.01, 0.3), local)
    assert record(found, local, 0.75) == {
        "believed": True, "share_local": 0.4, "local_pairs": 900, "share_near": 0.3
    }  # fmt: skip
    doubted = near_mismatches(Estimate(0.4, 0.01, 0.3), local)
    assert record(doubted, local, 0.75)["share_near"] == 0


# --- How many are near ones ---------------------------------------------------------------------------------------


def mixed(share, near, seed=0):
    """Scores of given pairs, of random (0) and near (2) mismatches; matched pairs are far above (9)."""
    rng = np.random.default_rng(seed)
    kind = rng.choice(3, 20_000, p=[share * (1 - near), share * near, 1 - share])
    return rng.normal(size=20_000) + np.array([0, 2, 9])[kind], rng.normal(size=5000), rng.normal(size=5000) + 2


@pytest.mark.parametrize("share", [0.2, 0.6])
@pytest.mark.parametrize("near", [0.0, 0.3, 0.8, 1.0])
@pytest.mark.parametrize("quantile", [0.1, 0.5])
def test_the_part_of_near_ones_is_found(share, near, quantile):
    assert near_weight(*mixed(share, near), share, quantile) == pytest.approx(min(near, MOST_NEAR), abs=0.06)


@pytest.mark.parametrize("scale", [1e-3, 1e4])
def test_units_and_order_do_not_matter(scale):
    given, random, near = mixed(0.4, 0.5)
    found = near_weight(scale * given[::-1] + 3, scale * random[::-1] + 3, scale * near + 3, 0.4, 0.2)
    assert found == pytest.approx(near_weight(given, random, near, 0.4, 0.2), abs=1e-9)


@pytest.mark.parametrize(
    ("score", "random", "near", "expected"),
    [
        (np.zeros(9), np.zeros(20), np.zeros(20), MOST_NEAR),  # nothing tells the kinds apart
        (np.full(9, -9.0), np.zeros(20), np.ones(20), 0.0),  # all are worse than random ones
        (np.full(9, 9.0), np.zeros(20), np.ones(20), MOST_NEAR),  # none is so bad
        (np.ones(1), np.zeros(20), np.full(1, -5.0), MOST_NEAR),  # the near ones are worse
    ],
)
def test_degenerate_scores(score, random, near, expected):
    assert near_weight(score, random, near, 0.3, 0.5) == expected
