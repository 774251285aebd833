"""The active complementary loss of CRCL: learn from a pair as far as it is believed, from its negatives always."""

from __future__ import annotations

import torch
from torch import Tensor

from truepair.losses.similarity_matrix import (
    check_labels,
    check_similarity,
    check_temperature,
    log_matching_probabilities,
)


def active_complementary(
    similarity: Tensor, labels: Tensor, *, temperature: float = 0.05, scale: float = 5.0
) -> Tensor:
    """Loss of every pair, (B,): L_d + λ L_r(q = 1 − ŷ) (CRCL, eq. 8–9).

    L_d = −ŷ_i (log p_ii + log pᵀ_ii) is the active part. L_r is `robust_complementary`: with ŷ = 1 it is the plain sum
    over the negatives, with ŷ = 0 the noise-tolerant normalised form.

    Args:
        similarity: (B, B), row = image, column = text, given pairs on the diagonal; any float dtype.
        labels: ŷ, (B,) in [0, 1], already thresholded (eq. 12). No gradient flows into them.
        temperature: τ > 0 (eq. 3).
        scale: λ ≥ 0, the weight of the complementary part (eq. 8).

    Raises:
        InputError: the matrix is not square and finite, a label lies outside [0, 1], or τ ≤ 0.
    """
    count = check_similarity(similarity)
    check_labels(labels, count)
    check_temperature(temperature)
    labels = labels.detach().to(similarity)
    to_text, to_image = log_matching_probabilities(similarity, temperature)
    active = -labels * (to_text.diagonal() + to_image.diagonal())
    exponent = 1 - labels
    complementary = robust_complementary(to_text.exp(), exponent) + robust_complementary(to_image.exp().T, exponent)
    return active + scale * complementary


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
