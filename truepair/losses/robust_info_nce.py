"""RINCE: InfoNCE whose pull on a pair is bounded, so that a wrong positive cannot dominate."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from truepair.errors import InputError
from truepair.losses.similarity_matrix import check_similarity, check_temperature


def robust_info_nce(
    similarity: Tensor,
    *,
    temperature: float = 0.07,
    exponent: float = 0.1,
    density: float = 0.01,
    largest: float = 1.0,
) -> Tensor:
    """Loss of every pair, (B,): mean of both directions of −e^{q S_ii/τ}/q + (λ Σ_j e^{S_ij/τ})^q/q (RINCE, eq. 4).

    Times τ e^{−q s/τ}, so that a gradient does not grow like e^{q s/τ}: of similarities up to s every value is at most
    (τ/q) max(1, (λ B)^q) in size. For q → 0 it is τ (−log p_ii + log λ); q = 1 tolerates noise: with λ = 1/B its sum
    over all choices of the target is 0.

    Args:
        similarity: (B, B), row = image, column = text, given pairs on the diagonal; any float dtype.
        temperature: τ > 0.
        exponent: q in (0, 1].
        density: λ > 0, the weight of the candidates.
        largest: s > 0, the largest similarity there can be: 1, or τ times the scale that cosines were multiplied by.

    Raises:
        InputError: the matrix is not square and finite, or τ, q or λ is out of range.
    """
    check_similarity(similarity)
    check_temperature(temperature)
    if not 0 < exponent <= 1 or not density > 0 or not largest > 0:
        raise InputError(
            f"exponent is {exponent}, density {density}, largest {largest}; expected one in (0, 1] and two above 0"
        )
    scaled = (similarity - largest) / temperature
    own = exponent * scaled.diagonal()
    loss = torch.zeros_like(own)
    for dimension in (1, 0):
        candidates = exponent * (math.log(density) + torch.logsumexp(scaled, dim=dimension))
        loss = loss + _difference_of_exponentials(candidates, own)
    return loss * (temperature / exponent / 2)


def _difference_of_exponentials(a: Tensor, b: Tensor) -> Tensor:
    """e^a − e^b without the cancellation of a ≈ b: the larger exponential is taken out."""
    above = a - b
    return b.exp() * torch.expm1(above.clamp(max=0)) - a.exp() * torch.expm1(-torch.relu(above))
