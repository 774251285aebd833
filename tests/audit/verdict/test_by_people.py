"""What decided pairs teach about the others."""

import numpy as np
import pytest

from truepair.audit.verdict.by_people import learned
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
