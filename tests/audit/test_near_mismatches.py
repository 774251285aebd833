"""Near mismatches: shares of three groups that obey the tilt, the rules of belief, degenerate scores, speed."""

import time

import numpy as np
import pytest

from truepair.audit.near_mismatches import _maximise, near_shares, skill_of
from truepair.audit.tilts import fit_tilts, log_probability


def made(pairs, random, near, *, known=2000, places=(0.0, 2.0, 5.0), seed=0):
    """(score, rulers): normal distributions of one spread are tilts of each other, as the model asks."""
    rng = np.random.default_rng(seed)
    kind = rng.permutation(
        np.repeat([0, 1, 2], np.diff(np.round(pairs * np.array([0, random, random + near, 1])).astype(int)))
    )
    score = rng.normal(size=pairs) + np.array(places)[kind]
    return score, {
        name: rng.normal(size=known) + place for name, place in zip(("random", "near"), places, strict=False)
    }


@pytest.mark.parametrize(("random", "near"), [(0.0, 0.0), (0.0, 0.4), (0.4, 0.0), (0.2, 0.2), (0.1, 0.3)])
def test_shares_of_a_tilt_are_found(random, near):
    found = near_shares(*made(4000, random, near), random)
    assert found.shares["random"] == pytest.approx(random, abs=0.02)
    assert found.shares["near"] == pytest.approx(near, abs=0.02)
    assert found.total == sum(found.shares.values()) and abs(found.total - random - near) < 3 * found.error + 0.005
    assert found.believed == (near > 2 * random)


@pytest.mark.parametrize(
    ("random", "near", "places", "believed"),
    [
        (0.0, 0.3, (0.0, 2.0, 5.0), True),
        (0.0, 0.05, (0.0, 3.0, 6.0), False),  # too few
        (0.2, 0.3, (0.0, 2.0, 5.0), False),  # less than twice the random ones
        (0.1, 0.3, (0.0, 2.0, 5.0), True),
        (0.0, 0.15, (0.0, 0.5, 3.0), False),  # matched pairs alone would be as often below random mismatches
        (0.0, 0.55, (0.0, 1.5, 5.0), False),  # the scores tell too little, though the near ones would explain it
        (0.0, 0.3, (0.0, 0.7, 1.8), False),  # matched pairs are too often below random mismatches
    ],
)
def test_who_is_believed(random, near, places, believed):
    found = near_shares(*made(4000, random, near, places=places), random)
    assert found.believed is believed
    assert found.record() == {
        "share_random": round(found.shares["random"], 4),
        "share_near": round(found.shares["near"], 4),
        "skill": round(found.skill, 4),
        "believed": believed,
    }


def test_the_end_does_not_depend_on_the_start():
    score, rulers = made(3000, 0.1, 0.3)
    edges = np.linspace(-3, 8, 60)
    counts = [np.histogram(rows, edges)[0] + 0.0 for rows in (score, rulers["random"], rulers["near"])]
    middle = (edges[1:] + edges[:-1]) / 2
    usual = _maximise(*counts, middle)
    for start in ((0.1, 0.1, 0.8), (0.1, 0.8, 0.1), (0.9, 0.05, 0.05)):
        assert _maximise(*counts, middle, start) == pytest.approx(usual, abs=2e-3)


def test_units_and_order_of_the_scores_do_not_matter():
    score, rulers = made(3000, 0.1, 0.3)
    plain = near_shares(score, rulers, 0.1)
    moved = near_shares(1e3 * score[::-1] + 1e5, {kind: 1e3 * rows + 1e5 for kind, rows in rulers.items()}, 0.1)
    assert moved.shares == pytest.approx(plain.shares, abs=1e-3) and moved.skill == pytest.approx(plain.skill)


# --- Tilts --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(3))
def test_tilts_are_those_of_a_logistic_regression(seed):
    from sklearn.linear_model import LogisticRegression

    rng = np.random.default_rng(seed)
    score, counts = rng.normal(size=40), rng.uniform(0, 9, (3, 40)) * (rng.uniform(size=(3, 40)) > 0.3)
    if seed == 2:  # kinds that do not overlap: the penalty alone holds the slopes
        counts *= np.digitize(score, [-0.5, 0.5]) == np.arange(3)[:, None]
    oracle = LogisticRegression(C=1e3, tol=1e-12, max_iter=10_000)
    oracle.fit(np.tile(score, 3)[:, None], np.repeat([0, 1, 2], 40), sample_weight=counts.ravel())
    found = fit_tilts(counts, score, np.zeros((2, 3)))
    expected = oracle.predict_log_proba(score[:, None]).T
    np.testing.assert_allclose(log_probability(score, found), expected, atol=1e-5)
    np.testing.assert_allclose(found.sum(axis=1), 0, atol=1e-9)
    again = fit_tilts(counts, score, rng.normal(size=(2, 3)))
    np.testing.assert_allclose(log_probability(score, again), expected, atol=1e-5)


@pytest.mark.parametrize("counts", [[[1, 0], [0, 1], [0, 0]], [[1e6, 0], [0, 1e-9], [1, 1]], [[0, 0], [0, 0], [0, 0]]])
def test_tilts_of_kinds_that_do_not_overlap_are_finite(counts):
    found = fit_tilts(np.array(counts, dtype=float), np.array([-1.0, 1.0]), np.zeros((2, 3)))
    assert np.isfinite(found).all()


# --- Skill --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(4))
def test_skill_as_a_double_loop_says(seed):
    rng = np.random.default_rng(seed)
    score, random = rng.integers(0, 7, 50) + 1.0 * (seed > 1), rng.integers(0, 6, 30)
    wins = sum((s > r) + (s == r) / 2 for s in score.tolist() for r in random.tolist()) / (50 * 30)
    assert skill_of(score, random, 0.0) == pytest.approx(wins)
    assert skill_of(score, random, 0.3) == pytest.approx(min(max((wins - 0.15) / 0.7, 0), 1))


@pytest.mark.parametrize("share", [0.0, 0.3, 0.7])
def test_skill_is_that_of_the_matched_pairs_alone(share):
    rng = np.random.default_rng(0)
    matched = np.arange(20_000) >= share * 20_000
    score, random = rng.normal(size=20_000) + 2 * matched, rng.normal(size=20_000)
    assert skill_of(score, random, share) == pytest.approx(skill_of(score[matched], random, 0.0), abs=0.01)


def test_skill_without_matched_pairs_is_none():
    assert skill_of(np.ones(3), np.zeros(3), 1.0) == 0


# --- Degenerate scores, and speed ---------------------------------------------------------------------------------


@pytest.mark.parametrize("near", [None, 0, 1])
def test_without_a_yardstick_of_near_ones_there_is_nothing_to_say(near):
    rulers = {"random": np.zeros(30)} | ({} if near is None else {"near": np.zeros(near)})
    assert near_shares(np.ones(10), rulers, 0.0) is None


@pytest.mark.parametrize(
    ("score", "random", "near"),
    [
        (np.ones(100), np.ones(30), np.ones(30)),
        (np.ones(1), np.zeros(20), np.zeros(2)),
        (np.repeat([0.0, 1.0], 50), np.zeros(20), np.ones(20)),
        (np.full(100, 1e9), np.zeros(20), np.full(20, -1e9)),
        (np.full(100, -5.0), np.linspace(0, 1, 20), np.linspace(1, 2, 20)),
        (np.linspace(0, 1e-12, 100), np.linspace(0, 1e-12, 20), np.linspace(0, 1e-12, 20)),
    ],
)
def test_degenerate_scores_are_never_believed_near(score, random, near):
    found = near_shares(score, {"random": random, "near": near}, 0.0)
    assert all(0 <= share <= 1 for share in found.shares.values()) and found.total <= 1 + 1e-6
    assert 0 <= found.skill <= 1 and np.isfinite(found.error)
    if found.believed:  # what lies exactly where the near ones do
        assert (np.isin(score, near)).mean() >= found.shares["near"] - 0.05


def test_a_million_scores_are_as_quick_as_a_few():
    score, rulers = made(1_000_000, 0.1, 0.3, known=20_000)
    start = time.process_time()
    found = near_shares(score, rulers, 0.1)
    assert time.process_time() - start < 3
    assert found.shares == pytest.approx({"random": 0.1, "near": 0.3}, abs=0.01)
