"""What decided pairs teach about the others."""

import numpy as np
import pytest

from truepair.audit.verdict.by_people import learned, within
from truepair.audit.verdict.score import auroc
from truepair.decisions.order import ReviewOrder
from truepair.decisions.population import Population

MISTAKES = 0.05


def drawn(rng, size=3000, *, skill, hidden):
    """p_match calibrated to a score of its own, and two indicators: one tells `hidden` more, one nothing."""
    truth = rng.random(size) < 0.2
    score, told = rng.normal(size=size) - skill * truth, rng.normal(size=size) - hidden * truth
    p_match = 1 / (1 + np.exp(-(np.log(4) + skill * (score + skill / 2))))
    indicators = {"told": 1 / (1 + np.exp(-told)), "nothing": rng.random(size)}
    return truth, p_match, indicators, rng.normal(size=size)


def gain(rng, decisions, **how):
    """How much better the undecided pairs are ranked after so many decisions, 5 % of them mistakes."""
    truth, p_match, indicators, similarity = drawn(rng, **how)
    pairs = Population([str(row) for row in range(len(truth))], p_match)
    rows = np.array([row for row, _ in ReviewOrder(pairs, seed=int(rng.integers(1000))).next(decisions)])
    said = truth[rows] ^ (rng.random(decisions) < MISTAKES)
    after, _ = learned(p_match, similarity, indicators, rows, ~said)
    left = np.ones(len(truth), dtype=bool)
    left[rows] = False
    ranked = [auroc(values[left & ~truth], values[left & truth]) for values in (p_match, after)]
    return ranked[1] - ranked[0], after, truth, left


def test_an_indicator_the_verdict_overlooks_is_found_within_a_hundred_decisions():
    gains = [gain(np.random.default_rng(seed), 100, skill=0.5, hidden=1.5)[0] for seed in range(4)]
    assert np.mean(gains) > 0.1 and min(gains) > 0.05


@pytest.mark.parametrize("decisions", [1, 20, 100])
def test_a_good_verdict_is_hardly_harmed(decisions):
    """There is nothing to be learned; what a few decisions, some of them mistakes, seem to say must not matter."""
    gains = [gain(np.random.default_rng(seed), decisions, skill=2.5, hidden=0.0)[0] for seed in range(6)]
    assert np.mean(gains) > -0.005 and min(gains) > -0.03


def test_probabilities_are_calibrated_to_what_people_say():
    """A verdict that is far too sure of its matches."""
    rng = np.random.default_rng(3)
    truth, p_match, indicators, similarity = drawn(rng, skill=1.5, hidden=0.0)
    sure = 1 - 0.1 * (1 - p_match)
    rows = rng.permutation(len(truth))[:200]
    after, weights = learned(sure, similarity, indicators, rows, ~truth[rows])
    assert (1 - sure).mean() < 0.03 < 0.15 < (1 - after).mean() < 0.25
    assert set(weights) == {"shift", "verdict", "told", "nothing", "similarity"} and weights["shift"] > 1


def test_nothing_decided_changes_nothing_and_the_order_of_rows_does_not_matter():
    rng = np.random.default_rng(1)
    truth, p_match, indicators, similarity = drawn(rng, size=400, skill=1, hidden=1)
    same, weights = learned(p_match, similarity, indicators, np.array([], dtype=int), np.array([], dtype=bool))
    assert (same == p_match).all() and weights == {}
    rows = rng.permutation(400)[:60]
    one, _ = learned(p_match, similarity, indicators, rows, ~truth[rows])
    turned = rng.permutation(60)
    two, _ = learned(p_match, similarity, indicators, rows[turned], ~truth[rows][turned])
    np.testing.assert_allclose(one, two, rtol=1e-3)


def test_unknown_and_constant_indicators_are_left_alone():
    rng = np.random.default_rng(2)
    truth, p_match, indicators, similarity = drawn(rng, size=300, skill=1, hidden=1)
    odd = {**indicators, "unknown": np.full(300, np.nan), "constant": np.full(300, 0.5)}
    odd["told"] = np.where(np.arange(300) % 3 == 0, np.nan, odd["told"])
    after, _ = learned(p_match, similarity, odd, np.arange(50), ~truth[:50])
    assert np.isfinite(after).all() and (after > 0).all() and (after < 1).all()


@pytest.mark.parametrize(("low", "high"), [(0.0, 0.15), (0.4, 0.6), (0.1, 0.9)])
def test_all_log_odds_move_alike_into_the_interval(low, high):
    rng = np.random.default_rng(5)
    p_match, decided = rng.uniform(0.2, 1 - 1e-6, size=500), np.zeros(500, dtype=bool)
    decided[:20], p_match[:20] = True, np.repeat([0.0, 1.0], 10)
    found = within(p_match, decided, low, high)
    mean = (1 - p_match).mean()
    assert (1 - found).mean() == pytest.approx(min(max(mean, low), high), abs=1e-9)
    assert (found[decided] == p_match[decided]).all()
    odds = [values[20:] / (1 - values[20:]) for values in (found, p_match)]
    moved = np.log(odds[0]) - np.log(odds[1])
    assert np.ptp(moved) < 1e-6 and np.sign(moved[0]) == np.sign(mean - min(max(mean, low), high))


def test_decided_pairs_that_exceed_the_interval_refute_it():
    p_match = np.array([0.0, 0.0, 0.0, 1.0, 0.7, 0.4])
    decided = np.array([True, True, True, True, False, False])
    assert (within(p_match, decided, 0.0, 0.3) == p_match).all() and (within(p_match, decided, 0.9, 1) == p_match).all()
    assert (within(p_match, np.ones(6, dtype=bool), 0.0, 0.3) == p_match).all(), "nothing is left to move"


def test_the_worst_pairs_alone_do_not_make_most_others_mismatched():
    """All thirty of them are called mismatched, by a verdict that is sure of none: that says little of the others."""
    rng = np.random.default_rng(0)
    truth, p_match, indicators, similarity = drawn(rng, skill=0.3, hidden=0.0)
    rows = np.argsort(p_match)[:30]
    after, _ = learned(p_match, similarity, indicators, rows, np.zeros(30, dtype=bool))
    after[rows] = 0
    assert (1 - after).mean() > 0.4, "the regression alone, where a fifth is mismatched"
    bounded = within(after, np.isin(np.arange(len(truth)), rows), 0.1, 0.3)
    left = after[np.setdiff1d(np.arange(len(truth)), rows)]
    assert (1 - bounded).mean() == pytest.approx(0.3)
    assert (np.argsort(bounded[bounded > 0], kind="stable") == np.argsort(left, kind="stable")).all()
