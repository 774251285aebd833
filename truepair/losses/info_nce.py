"""InfoNCE: cross entropy of the given pair among its in-batch negatives, both ways."""

from __future__ import annotations

from torch import Tensor

from truepair.losses.similarity_matrix import check_similarity, check_temperature, log_matching_probabilities


def info_nce(similarity: Tensor, *, temperature: float) -> Tensor:
    """Loss of every pair, (B,): −(log p_ii + log pᵀ_ii)/2, the mean of both directions.

    Args:
        similarity: (B, B), row = image, column = text, given pairs on the diagonal; any float dtype.
        temperature: τ > 0 of both softmaxes.

    Raises:
        InputError: the matrix is not square and finite, or τ ≤ 0.
    """
    check_similarity(similarity)
    check_temperature(temperature)
    to_text, to_image = log_matching_probabilities(similarity, temperature)
    return -(to_text.diagonal() + to_image.diagonal()) / 2
