"""Sizes and purity of a division, and the division of beliefs that have no threshold of their own."""

import math

import numpy as np
import pytest
import torch

from truepair.correspondence.division import Part, divide_by_odds, upper_group
from truepair.evaluation import division_record


def test_record_counts_each_part_and_its_matched_pairs():
    division = np.array([2, 2, 2, 1, 0, 0], dtype=np.int64)
    mismatched = np.array([False, False, True, True, True, True])
    record = division_record(division, mismatched)
    assert (record["clean"], record["hard"], record["noisy"]) == (3, 1, 2)
    assert record["clean_matched"] == pytest.approx(2 / 3)
    assert (record["hard_matched"], record["noisy_matched"]) == (0.0, 0.0)
    empty = division_record(np.zeros(3, dtype=np.int64), np.ones(3, dtype=bool))
    assert (empty["clean"], empty["clean_matched"], empty["noisy_matched"]) == (0, None, 0.0)
    assert "clean_matched" not in division_record(division, None)


def test_two_groups_of_odds_are_told_apart_where_a_threshold_of_a_half_is_not():
    generator = torch.Generator().manual_seed(0)
    matched = torch.sigmoid(-0.8 + torch.randn(600, generator=generator))
    mismatched = torch.sigmoid(-7 + torch.randn(400, generator=generator))
    belief = torch.cat([matched, mismatched])
    truth = torch.arange(1000) < 600
    assert ((belief >= 0.5) == truth).float().mean() < 0.7
    assert ((divide_by_odds(belief) == Part.CLEAN) == truth).float().mean() > 0.99


@pytest.mark.parametrize(
    "belief", [torch.ones(50), torch.zeros(50), torch.full((1,), 0.2), torch.linspace(0.4, 0.6, 9)]
)
def test_one_group_is_clean(belief):
    assert (divide_by_odds(belief) == Part.CLEAN).all()
    assert upper_group(belief) is None


def test_the_upper_group_is_that_of_bayes_rule():
    """Between the means of two normal distributions of log odds, of which the draws are known."""
    odds = torch.cat([torch.randn(3000, generator=torch.Generator().manual_seed(1)) + mean for mean in (-4.0, 2.0)])
    found = upper_group(torch.sigmoid(odds))
    for value, posterior in zip(odds.tolist(), found.tolist(), strict=True):
        if -4 < value < 2:
            likelihoods = [math.exp(-((value - mean) ** 2) / 2) for mean in (-4.0, 2.0)]
            assert posterior == pytest.approx(likelihoods[1] / sum(likelihoods), abs=0.15)
