"""The reviewer of simulations."""

import numpy as np

from tests.decisions.made_reviews import population
from truepair.decisions.order import ReviewOrder
from truepair.decisions.simulated import SimulatedReviewer


def test_as_many_mistakes_as_said_and_always_the_same_ones():
    truth = np.arange(4000) % 5 == 0
    reviewer = SimulatedReviewer(truth, mistakes=0.05, seed=3)
    assert 0.035 < (reviewer.says_mismatched != truth).mean() < 0.065
    assert (SimulatedReviewer(truth, mistakes=0.0).says_mismatched == truth).all()
    pairs = population(np.full(4000, 0.5))
    decisions = reviewer.review(ReviewOrder(pairs), 50)
    assert decisions == reviewer.review(ReviewOrder(pairs), 80)[:50] and len({d.pair_id for d in decisions}) == 50
    assert all(d.probability_chosen and d.chosen_by == "gain" for d in decisions)
    assert all((d.verdict == "mismatch") == reviewer.says_mismatched[pairs.rows[d.pair_id]] for d in decisions)
