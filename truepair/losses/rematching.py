"""L2RM's losses: a robust start, and rematching, in which a transport plan says what belongs to what."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from truepair.errors import InputError
from truepair.losses.info_nce import info_nce
from truepair.losses.similarity_matrix import check_similarity, check_temperature, log_matching_probabilities
from truepair.losses.soft_targets import reverse_cross_entropy

LOG_ZERO = math.log(1e-7)
"""In place of log 0 in the reverse cross entropy, as released."""


def symmetric_cross_entropy(similarity: Tensor, *, temperature: float = 0.05, log_floor: float = LOG_ZERO) -> Tensor:
    """R of every pair, (B,): InfoNCE plus its reverse, ½ Σ of both directions [−log p_ii − A (1 − p_ii)] (L2RM).

    The reverse part is bounded and tolerates noise (Wang et al. 2019, "Symmetric cross entropy"); A = log 10⁻⁷ = −16.1.

    Args:
        similarity: (B, B), row = image, column = text, given pairs on the diagonal; any float dtype.
        temperature: τ > 0.
        log_floor: A < 0.

    Raises:
        InputError: the matrix is not square and finite, τ ≤ 0 or A ≥ 0.
    """
    forward = info_nce(similarity, temperature=temperature)
    to_text, to_image = log_matching_probabilities(similarity, temperature)
    given = torch.eye(len(similarity), dtype=similarity.dtype, device=similarity.device)
    backward = [reverse_cross_entropy(side.exp(), given, log_floor=log_floor) for side in (to_text, to_image.T)]
    return forward + (backward[0] + backward[1]) / 2


def rematching(
    similarity: Tensor, plan: Tensor, *, temperature: float = 0.05, floor: float = 1e-10, share: bool = True
) -> Tensor:
    """Loss of every pair, (B,): ½ [KL(T_i‖p_i) + KL(p_i‖T_i)], and the same of its text (L2RM, eq. 12).

    T_i is row i of the plan, no less than the floor and normalised; of the text column i. Unlike a cross entropy it
    costs where p is but the plan is not: up to 23 for p_ii, which a plan without its diagonal says is wrong.

    Args:
        similarity: (B, B), row = image, column = text; any float dtype.
        plan: π ≥ 0, (B, B). No gradient flows into it.
        temperature: τ > 0.
        floor: > 0, of the plan before it is normalised.
        share: a direction of a pair weighs what the plan moves of it, B Σ_j π_ij, 1 for a balanced plan of mass 1;
            without it every direction weighs 1, however little was moved.

    Raises:
        InputError: a matrix is not square and finite, the two differ in shape, π is negative, or τ or the floor ≤ 0.
    """
    count = check_similarity(similarity)
    check_similarity(plan)
    check_temperature(temperature)
    if plan.shape != similarity.shape or not bool((plan >= 0).all()) or not floor > 0:
        raise InputError(
            f"the plan is {tuple(plan.shape)}, the floor {floor}; expected {tuple(similarity.shape)}, none negative, "
            "and a floor above 0"
        )
    plan = plan.detach().to(similarity)
    to_text, to_image = log_matching_probabilities(similarity, temperature)
    loss = similarity.diagonal() * 0.0
    for log_p, moved in ((to_text, plan), (to_image.T, plan.T)):
        target = moved.clamp(min=floor)
        target = target / target.sum(dim=1, keepdim=True)
        divergence = ((target - log_p.exp()) * (target.log() - log_p)).sum(dim=1)
        loss = loss + (count * moved.sum(dim=1) if share else 1.0) * divergence / 2
    return loss
