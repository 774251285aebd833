"""The parts a training set is divided into, and how beliefs that have no threshold of their own are divided."""

from __future__ import annotations

from enum import IntEnum

import numpy as np
import torch
from torch import Tensor

from truepair.correspondence.calibration import Calibration
from truepair.correspondence.mixture import LEAST_GROUP, Array, fit_mixture

HALF = 0.5
MOST_ABOVE = 0.25
"""Share of synthetic mismatches in the upper one of two groups. Training on 3,000 products at 20 to 60 % noise: 0.01
to 0.08. On 12,000 at 80 %: 0.41 to 0.59 where 10,700 pairs were in the upper group, of which 2,400 matched, and 0.05
to 0.07 from the next epoch on."""
LEAST_TOLD = 0.01  # of all pairs: fewer may lie beyond chance by chance
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
    return torch.where(upper >= HALF, int(Part.CLEAN), int(Part.NOISY))


def upper_group(belief: Tensor, synthetic: Tensor | None = None) -> Tensor | None:
    """How probably each belief is of the upper one of the two groups that their log odds fall into, (N,) float64.

    None where they do not fall into two groups, or into others than mismatched and matched pairs: `MOST_ABOVE` or more
    of the synthetic mismatches would be of the upper one.

    Args:
        belief: (N,) in [0, 1].
        synthetic: (P,) in [0, 1], beliefs in synthetic mismatches; None where there are none to ask.
    """
    odds = log_odds(belief)
    mixture = fit_mixture(odds)
    if not mixture.two_components:
        return None
    if synthetic is not None and (mixture.posterior(log_odds(synthetic)) >= HALF).mean() >= MOST_ABOVE:
        return None
    return torch.from_numpy(mixture.posterior(odds))


def beyond_chance(belief: Tensor, synthetic: Tensor) -> Tensor:
    """Beliefs in units of the mean of those that chance does not explain, at most 1 and 0 for all others, (N,).

    For beliefs that are low throughout, those in matched pairs included. A pair of log odds x matches with the
    probability 1 − f₀(x)/f(x), f the density of all pairs and f₀ that of synthetic mismatches, by an isotonic
    regression; below ½ chance explains it. This is the audit's verdict for the largest share of mismatched pairs, 1:
    wrong pairs that have been trained on look better than synthetic ones. Where chance explains all but 1 % of the
    pairs, or all but four, nothing can be told yet, and every pair counts as 1.

    Args:
        belief: (N,) in [0, 1].
        synthetic: (P,) in [0, 1].
    """
    odds, made = log_odds(belief), log_odds(synthetic)
    matched = Calibration.of(odds, made, np.full(len(made), 1 / len(made)), 1.0)(odds)
    beyond = torch.from_numpy(matched >= HALF)
    if beyond.sum() < max(LEAST_GROUP, LEAST_TOLD * len(belief)):
        return torch.ones_like(belief)
    return (belief / belief[beyond].mean()).clamp(max=1.0) * beyond


def log_odds(belief: Tensor) -> Array:
    """(N,) float64, finite."""
    odds: Array = torch.logit(belief.double(), eps=CERTAIN).numpy()
    return odds
