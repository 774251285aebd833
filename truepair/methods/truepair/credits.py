"""Labels, and how far the loss learns by them from a pair: the credits ŷ (docs/truepair-method.md, section 3)."""

from __future__ import annotations

import torch
from torch import Tensor

from truepair.correspondence.division import CERTAIN, HALF, beyond_chance, upper_group

LEAST_BELIEVED = 0.05
"""Share of the pairs. Where labels are the credit and leave less, those of matched pairs are low, too."""


def by_groups(label: Tensor, synthetic: Tensor, believed: Tensor) -> Tensor:
    """The posterior of the upper one of two groups of labels; where there are not two: what is `believed`, or where
    few pairs are, the label as far as chance does not explain it.

    Args:
        label: (N,).
        synthetic: (N,) what labels of synthetic mismatches would be.
        believed: (N,) the label, 0 where it is low.
    """
    upper = upper_group(label, synthetic)
    if upper is not None:
        credit = upper.float()
        return credit.masked_fill(credit < HALF, 0.0)
    few = (believed > 0).float().mean() < LEAST_BELIEVED
    return beyond_chance(label, synthetic) if few else believed


def uppermost(label: Tensor, share: float) -> Tensor:
    """1 for the share of the pairs with the largest labels, and for all that are equal to the least of these, 0 for the
    others, (N,).
    """
    count = round(share * len(label))
    if not count:
        return torch.zeros_like(label)
    return (label >= label.topk(count).values[-1]).float()


def uppermost_of_each(label: Tensor, judged: Tensor, share: float) -> Tensor:
    """1 for the share of the judged pairs, and of the others, with the largest labels there; 0 for the rest, (N,).

    Linear models never believe the pairs that they cannot judge, nor do the networks that have learned from what these
    believe: labels of the two kinds are comparable among each other only, and as many of each match.
    """
    credit = torch.empty_like(label)
    for each in (judged, ~judged):
        credit[each] = uppermost(label[each], share)
    return credit


def running_mean(odds: Tensor, probability: Tensor, count: int) -> Tensor:
    """The mean log odds of `count` probabilities, of which the last ones are given and `odds` is that of the others."""
    return odds + (torch.logit(probability.double(), eps=CERTAIN).float() - odds) / count
