"""How probable the model finds a given pair among its batch."""

from __future__ import annotations

from torch import Tensor

from truepair.losses.similarity_matrix import check_similarity, check_temperature, log_matching_probabilities


def matching_probability(similarity: Tensor, *, temperature: float) -> Tensor:
    """p̂ of every pair, (B,) in [0, 1]: (p_ii + pᵀ_ii)/2, the mean of both directions (CRCL eq. 3 and 10, GSC eq. 3).

    Args:
        similarity: (B, B), row = image, column = text, given pairs on the diagonal; any float dtype.
        temperature: τ > 0 of both softmaxes.

    Raises:
        InputError: the matrix is not square and finite, or τ ≤ 0.
    """
    check_similarity(similarity)
    check_temperature(temperature)
    to_text, to_image = log_matching_probabilities(similarity, temperature)
    return (to_text.diagonal().exp() + to_image.diagonal().exp()) / 2
