"""Friedman's test and Nemenyi's critical difference against the printed example and table of Demšar (2006)."""

import pytest
from scipy.stats import chi2

from truepair.reproduce.render.critical import critical_difference, friedman_chance, not_told_apart
from truepair.reproduce.render.ranks import mean_ranks

# Table 6 of the paper: AUC of C4.5 and three variants on 14 data sets.
AUC = {
    "C4.5": [0.763, 0.599, 0.954, 0.628, 0.882, 0.936, 0.661, 0.583, 0.775, 1.000, 0.940, 0.619, 0.972, 0.957],
    "C4.5+m": [0.768, 0.591, 0.971, 0.661, 0.888, 0.931, 0.668, 0.583, 0.838, 1.000, 0.962, 0.666, 0.981, 0.978],
    "C4.5+cf": [0.771, 0.590, 0.968, 0.654, 0.886, 0.916, 0.609, 0.563, 0.866, 1.000, 0.965, 0.614, 0.9751, 0.946],
    "C4.5+m+cf": [0.798, 0.569, 0.967, 0.657, 0.898, 0.931, 0.685, 0.625, 0.875, 1.000, 0.962, 0.669, 0.975, 0.970],
}


def test_ranks_and_chance_are_those_of_the_printed_example():
    ranks = mean_ranks(AUC)
    assert [round(ranks[name], 3) for name in AUC] == [3.143, 2.0, 2.893, 1.964]
    statistic = 12 * 14 / (4 * 5) * (sum(rank**2 for rank in ranks.values()) - 4 * 5**2 / 4)
    assert statistic == pytest.approx(9.28, abs=0.02)  # as printed, ties not counted: three pairs and one block of four
    of_ties = 1 - (3 * (2**3 - 2) + (4**3 - 4)) / (14 * (4**3 - 4))
    assert friedman_chance(AUC) == pytest.approx(float(chi2.sf(statistic / of_ties, 3)), abs=1e-9)
    assert critical_difference(4, 14) == pytest.approx(1.25, abs=5e-3)
    assert critical_difference(4, 14, alpha=0.1) == pytest.approx(1.12, abs=5e-3)


@pytest.mark.parametrize(
    ("methods", "printed"), [(2, 1.960), (3, 2.343), (4, 2.569), (5, 2.728), (6, 2.850), (10, 3.164)]
)
def test_critical_values_are_those_of_the_printed_table(methods, printed):
    blocks = methods * (methods + 1) / 6  # with which the root is 1
    assert critical_difference(methods, blocks) == pytest.approx(printed, abs=1.5e-3)


def test_more_blocks_tell_more_apart():
    assert critical_difference(5, 40) == pytest.approx(critical_difference(5, 10) / 2)


def test_equal_values_differ_by_chance():
    assert friedman_chance({name: [1.0, 2.0, 3.0] for name in "abc"}) == 1.0


def test_groups_are_the_largest_within_the_distance():
    ranks = {"a": 1.0, "b": 1.8, "c": 2.5, "d": 4.0, "e": 9.0}
    assert not_told_apart(ranks, 1.5) == [("a", "b", "c"), ("c", "d")]
    assert not_told_apart(ranks, 0.1) == []
    assert not_told_apart({"a": 1.0, "b": 1.0}, 0.0) == [("a", "b")]
