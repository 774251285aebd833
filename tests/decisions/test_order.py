"""Orders of review: what is drawn, with which probability, and what comes next."""

import numpy as np
import pytest

from tests.decisions.made_reviews import population
from truepair.decisions.order import UNIFORM, ReviewOrder
from truepair.decisions.population import Population
from truepair.errors import InputError

P_MATCH = [0.5, 0.9, 0.99, 1.0, 0.2, 0.0]


def by_hand(p_match, left):
    """π of every undecided pair, in plain loops."""
    error = {row: (p_match[row] * (1 - p_match[row])) ** 0.5 for row in left}
    total = sum(error.values())
    if total == 0:
        return {row: 1 / len(left) for row in left}
    return {row: UNIFORM / len(left) + (1 - UNIFORM) * error[row] / total for row in left}


def test_probabilities_are_those_of_the_definition_whatever_is_decided():
    pairs = population(P_MATCH)
    for seed in range(20):
        left, decided = set(range(6)), ["p1"]
        left.discard(1)
        for row, probability in ReviewOrder(pairs, seed=seed).next(99, decided):
            assert probability == pytest.approx(by_hand(P_MATCH, left)[row], rel=1e-12)
            left.discard(row)
        assert not left, "all come in the end"


def test_pairs_are_drawn_as_often_as_their_probability_says():
    """The first two draws of many orders, against the probabilities of the definition."""
    pairs, times = population(P_MATCH), 6000
    counts = np.zeros((6, 6))
    for seed in range(times):
        (first, _), (second, _) = ReviewOrder(pairs, seed=seed).next(2)
        counts[first, second] += 1
    once = by_hand(P_MATCH, range(6))
    for first in range(6):
        again = by_hand(P_MATCH, [row for row in range(6) if row != first])
        for second, probability in again.items():
            expected = once[first] * probability
            spread = (expected * (1 - expected) / times) ** 0.5
            assert abs(counts[first, second] / times - expected) < 4.5 * spread


def test_no_probability_is_above_one():
    for seed in range(40):
        rng = np.random.default_rng(seed)
        pairs = population(rng.random(int(rng.integers(5, 40))))
        drawn = ReviewOrder(pairs, seed=seed).next(99)
        assert max(probability for _, probability in drawn) <= 1 and drawn[-1][1] == pytest.approx(1)


def test_fetching_ahead_one_by_one_or_after_a_break_is_one_order():
    pairs = population(np.linspace(0.01, 0.99, 60))
    whole = ReviewOrder(pairs, seed=3).next(60)
    decided, piecewise = [], []
    while len(decided) < 60:
        piecewise += ReviewOrder(pairs, seed=3).next(1 + len(decided) % 4, decided)
        decided = [pairs.ids[row] for row, _ in piecewise]
    assert [row for row, _ in piecewise] == [row for row, _ in whole]
    np.testing.assert_allclose([p for _, p in piecewise], [p for _, p in whole], rtol=1e-9)
    assert ReviewOrder(pairs, seed=3).next(5, decided) == []


def test_two_people_get_two_orders():
    pairs = population(np.linspace(0.01, 0.99, 200))
    ada, bo = (ReviewOrder(pairs, person=name).next(20) for name in ("Ada", "Bo"))
    assert ada != bo and ada == ReviewOrder(pairs, person="Ada").next(20)


def test_worst_and_facet_draw_nothing():
    pairs = population(P_MATCH)
    assert ReviewOrder(pairs, "worst").next(3) == [(5, None), (4, None), (0, None)]
    assert ReviewOrder(pairs, "worst").next(2, ["p5", "p0", "unknown"]) == [(4, None), (1, None)]
    assert ReviewOrder(pairs, "facet", rows=np.array([3, 1, 1])).next(9) == [(1, None), (3, None)]
    assert ReviewOrder(pairs, "facet", rows=np.array([], dtype=int)).next(9) == []


def test_what_cannot_be_ordered_or_reviewed():
    pairs = population(P_MATCH)
    with pytest.raises(InputError, match="order 'best' is unknown; expected gain, worst, facet"):
        ReviewOrder(pairs, "best")
    with pytest.raises(InputError, match="needs the rows"):
        ReviewOrder(pairs, "facet")
    with pytest.raises(InputError, match="leave out the rows"):
        ReviewOrder(pairs, "gain", rows=np.array([1]))
    with pytest.raises(InputError, match="expected 0 to 5"):
        ReviewOrder(pairs, "facet", rows=np.array([6]))
    with pytest.raises(InputError, match="p_match of pair 'b' is nan"):
        Population(["a", "b"], np.array([0.5, np.nan]))
    with pytest.raises(InputError, match="'a' occurs twice"):
        ReviewOrder(Population(["a", "a"], np.array([0.5, 0.5])), "worst").next(1)
    with pytest.raises(InputError, match="0 pair ids"):
        Population([], np.array([]))
