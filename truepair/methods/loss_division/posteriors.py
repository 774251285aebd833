"""From the losses of all pairs to the posterior of being clean, by a mixture of two groups."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from truepair.correspondence.beta_mixture import BetaMixture, fit_beta_mixture
from truepair.correspondence.mixture import Mixture, fit_mixture, released_posterior

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class CleanPosterior:
    """Posterior w of the group of small losses, (N,) in [0, 1]; what to log of the fit; why it was not believed."""

    weight: Tensor
    record: dict[str, float]
    doubt: str | None = None


def normal_posterior(scaled: Tensor) -> CleanPosterior:
    """By two normal distributions of largest likelihood; w = 1 for all where the losses fall into no two groups."""
    values = 1 - scaled.double().numpy()
    return asked(fit_mixture(values), values)


def beta_posterior(scaled: Tensor) -> CleanPosterior:
    """By two beta distributions; w = 1 for all where one fits as well."""
    values = 1 - scaled.double().numpy()
    return asked(fit_beta_mixture(values), values)


def asked(mixture: Mixture | BetaMixture, values: NDArray[np.float64]) -> CleanPosterior:
    """The posterior of a mixture of 1 − ℓ, if there are two groups."""
    doubt = mixture.doubt
    record = {"mixture_two_components": float(doubt is None)}
    for part, name in enumerate(("noisy", "clean")):
        record[f"mixture_{name}_mean"] = 1 - float(mixture.means[part])
        record[f"mixture_{name}_deviation"] = float(mixture.variances[part]) ** 0.5
        record[f"mixture_{name}_weight"] = float(mixture.weights[part])
    weight = mixture.posterior(values) if doubt is None else np.ones(len(values))
    return CleanPosterior(torch.from_numpy(weight).float(), record, doubt)


def released_normal_posterior(scaled: Tensor) -> CleanPosterior:
    """By the few steps of expectation maximisation that the released codes take, believed unasked."""
    return CleanPosterior(torch.from_numpy(released_posterior(1 - scaled.double().numpy())).float(), {})


POSTERIORS: dict[str, Callable[[Tensor], CleanPosterior]] = {
    "normal": normal_posterior,
    "beta": beta_posterior,
    "released": released_normal_posterior,
}
"""From losses scaled to [0, 1], (N,), to their posteriors."""


def clean_posterior(losses: Tensor, mixture: str, epoch: int, method: str) -> CleanPosterior:
    """w of all pairs from ℓ, scaled to [0, 1] by the least and the largest; a warning where it was not believed.

    Args:
        losses: ℓ, (N,) finite.
        mixture: one of `POSTERIORS`.
        epoch, method: for the warning.
    """
    low, high = losses.min(), losses.max()
    scaled = (losses - low) / (high - low) if high > low else torch.zeros_like(losses)
    found = POSTERIORS[mixture](scaled)
    if found.doubt:
        logger.warning(
            "%s: losses before epoch %d show no two groups: %s; no pair is called noisy", method, epoch, found.doubt
        )
    return CleanPosterior(found.weight, {"loss_low": float(low), "loss_high": float(high), **found.record}, found.doubt)
