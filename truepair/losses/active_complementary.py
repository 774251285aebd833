"""The active complementary loss of CRCL: learn from a pair as far as it is believed, from its negatives always."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from truepair.errors import InputError
from truepair.losses.similarity_matrix import (
    check_labels,
    check_similarity,
    check_temperature,
    log_matching_probabilities,
)


def active_complementary(
    similarity: Tensor,
    labels: Tensor,
    *,
    temperature: float = 0.05,
    scale: float = 5.0,
    active_weight: float = 1.0,
    exponent: float | None = None,
) -> Tensor:
    """Loss of every pair, (B,): L_d + λ L_r(q = 1 − ŷ) (CRCL, eq. 8–9).

    L_d = −ŷ_i (log p_ii + log pᵀ_ii) is the active part. L_r is `robust_complementary`: with ŷ = 1 it is the plain sum
    over the negatives, with ŷ = 0 the noise-tolerant normalised form.

    Args:
        similarity: (B, B), row = image, column = text, given pairs on the diagonal; any float dtype.
        labels: ŷ, (B,) in [0, 1], already thresholded (eq. 12). No gradient flows into them.
        temperature: τ > 0 (eq. 3).
        scale: λ ≥ 0, the weight of the complementary part (eq. 8).
        active_weight: weight ≥ 0 of the active part, 1 in the paper.
        exponent: q in [0, 1], the same for all pairs; None for 1 − ŷ.

    Raises:
        InputError: the matrix is not square and finite, a label lies outside [0, 1], or τ ≤ 0.
    """
    count = check_similarity(similarity)
    check_labels(labels, count)
    check_temperature(temperature)
    labels = labels.detach().to(similarity)
    to_text, to_image = log_matching_probabilities(similarity, temperature)
    active = -labels * (to_text.diagonal() + to_image.diagonal())
    power = 1 - labels if exponent is None else torch.full_like(labels, exponent)
    complementary = robust_complementary(to_text.exp(), power) + robust_complementary(to_image.exp().T, power)
    return active_weight * active + scale * complementary


COMPLEMENTARY: dict[str, Callable[[Tensor, float], Tensor]] = {
    "log": lambda rest, _: -rest,
    "tan": lambda rest, _: torch.tan(-torch.expm1(rest)),
    "exp": lambda rest, _: torch.exp(-rest.exp()),
    "gce": lambda rest, q: -torch.expm1(q * rest) / q,
    "mae": lambda rest, _: -torch.expm1(rest),
}
"""φ(p) by log(1 − p): −log(1 − p), tan p, exp(p − 1), (1 − (1 − p)^q)/q, p (RCL)."""


def complementary_contrastive(
    similarity: Tensor, *, temperature: float = 0.05, form: str = "log", exponent: float = 0.5
) -> Tensor:
    """Loss of every pair, (B,): Σ_{j≠i} φ(p_ij) + Σ_{j≠i} φ(pᵀ_ji), from the negatives alone (RCL, TPAMI 2023).

    CRCL compares with it as CCL (Fig. 4); φ = tan is `robust_complementary` at q = 0.

    Args:
        similarity: (B, B), row = image, column = text, given pairs on the diagonal; any float dtype.
        temperature: τ > 0.
        form: φ, one of `COMPLEMENTARY`.
        exponent: q in (0, 1] of the form "gce": towards 0 it is "log", at 1 "mae".

    Raises:
        InputError: the matrix is not square and finite, or τ or q is out of range.
    """
    count = check_similarity(similarity)
    check_temperature(temperature)
    if not 0 < exponent <= 1:
        raise InputError(f"exponent is {exponent}; expected a value in (0, 1]")
    if count == 1:
        return similarity.diagonal() * 0.0
    to_text, to_image = log_matching_probabilities(similarity, temperature)
    itself = torch.eye(count, dtype=torch.bool, device=similarity.device)
    negatives = [
        COMPLEMENTARY[form](log_of_the_rest(rows), exponent).masked_fill(itself, 0.0).sum(dim=1)
        for rows in (to_text, to_image.T)
    ]
    return negatives[0] + negatives[1]


def log_of_the_rest(log_probability: Tensor) -> Tensor:
    """log(1 − p) of every cell of rows of log p, (B, K); finite where one candidate has all but the last digit."""
    # Only the largest p can come so close to 1 that 1 − p loses its digits: there, the others are summed.
    foremost = torch.nn.functional.one_hot(log_probability.argmax(dim=1), log_probability.shape[1]).bool()
    others = torch.logsumexp(log_probability.masked_fill(foremost, -torch.inf), dim=1, keepdim=True)
    plain = torch.log1p(-log_probability.masked_fill(foremost, -torch.inf).exp())
    return torch.where(foremost, others, plain)


def robust_complementary(probability: Tensor, exponent: Tensor) -> Tensor:
    """One direction of L_r, (B,): Σ_{j≠i} tan(p_ij) / (Σ_k tan(p_ik))^{q_i} (CRCL, eq. 6).

    Args:
        probability: (B, B); row i is the distribution of query i over the batch, the given partner on the diagonal.
        exponent: q, (B,) in [0, 1]. At q = 1 the sum of this loss over all possible targets is constant (Lemma 1).
    """
    tangent = torch.tan(probability)  # p ≤ 1 < π/2: always finite
    total = tangent.sum(dim=1)  # lies in [B tan(1/B), tan 1]: never zero
    itself = torch.eye(len(probability), dtype=torch.bool, device=probability.device)
    # The negatives are summed themselves: total − diagonal would cancel to noise once p_ii is close to 1.
    negatives = tangent.masked_fill(itself, 0.0).sum(dim=1)
    return negatives * torch.exp(-exponent * total.log())
