"""The parts a training set is divided into, and how beliefs that have no threshold of their own are divided."""

from __future__ import annotations

from enum import IntEnum

import torch
from torch import Tensor

from truepair.correspondence.mixture import fit_mixture

CERTAIN = 1e-6  # beliefs nearer to 0 or 1 count as this near: their odds would have no bound


class Part(IntEnum):
    """The side of a division a pair is on, in rising order of trust; `HARD` is what cannot be told yet (UGNCL)."""

    NOISY = 0
    HARD = 1
    CLEAN = 2


def divide_by_odds(belief: Tensor) -> Tensor:
    """Clean or noisy, (N,) int64 of `Part`, by the two groups that the log odds of the beliefs fall into.

    A matching probability is shared among all captions of a batch that fit an image. Where many look alike, a matched
    pair may get 0.3 and a mismatched one 0.001, so that a threshold of 0.5 calls most matched pairs noisy; the two
    groups still lie far apart on a logarithmic scale. Where they do not fall into two groups (`Mixture.two_components`)
    every pair is clean.

    Args:
        belief: (N,) in [0, 1].
    """
    upper = upper_group(belief)
    if upper is None:
        return torch.full(belief.shape, int(Part.CLEAN))
    return torch.where(upper >= 0.5, int(Part.CLEAN), int(Part.NOISY))


def upper_group(belief: Tensor) -> Tensor | None:
    """How probably each belief is of the upper one of the two groups that their log odds fall into, (N,) float64.

    None where they do not fall into two groups.

    Args:
        belief: (N,) in [0, 1].
    """
    odds = torch.logit(belief.double(), eps=CERTAIN).numpy()
    mixture = fit_mixture(odds)
    if not mixture.two_components:
        return None
    return torch.from_numpy(mixture.posterior(odds))
