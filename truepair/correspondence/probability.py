"""How probable the model finds a given pair among its batch."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import log_softmax

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


def synthetic_probability(similarity: Tensor, *, temperature: float) -> Tensor:
    """p̂ of a synthetic mismatch of every image, (B,) in [0, 1]: with the text of the next pair of the batch.

    As if the two had been given as a pair: what each of them came with is no candidate. Wrong pairs that training has
    not learned by heart are distributed like these.

    Args:
        similarity: as in `matching_probability`. With B = 1 there is no other text, and p̂ is 1.

    Raises:
        InputError: as `matching_probability`.
    """
    check_similarity(similarity)
    check_temperature(temperature)
    count = len(similarity)
    if count == 1:
        return torch.ones_like(similarity.diagonal())
    own = torch.eye(count, dtype=torch.bool, device=similarity.device)
    logits = (similarity / temperature).masked_fill(own, -torch.inf)
    images = torch.arange(count, device=similarity.device)
    texts = images.roll(-1)
    to_text, to_image = log_softmax(logits, dim=1), log_softmax(logits, dim=0)
    return (to_text[images, texts].exp() + to_image[images, texts].exp()) / 2
