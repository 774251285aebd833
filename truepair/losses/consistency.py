"""The two losses of GSC: a pair agrees across the modalities, and its neighbourhood agrees within them."""

from __future__ import annotations

import torch
from torch import Tensor

from truepair.errors import InputError
from truepair.losses.info_nce import info_nce
from truepair.losses.products import products
from truepair.losses.similarity_matrix import check_labels, check_similarity, check_temperature


def cross_modal_consistency(similarity: Tensor, labels: Tensor, *, temperature: float = 0.07) -> Tensor:
    """Loss of every pair, (B,): −y_i (log p_ii + log pᵀ_ii)/2, InfoNCE as far as the pair is believed (GSC, eq. 6).

    Args:
        similarity: (B, B), row = image, column = text, given pairs on the diagonal; any float dtype.
        labels: y, (B,) in [0, 1]. No gradient flows into them.
        temperature: τ1 > 0 of both softmaxes.

    Raises:
        InputError: the matrix is not square and finite, a label lies outside [0, 1], or τ1 ≤ 0.
    """
    across = info_nce(similarity, temperature=temperature)
    check_labels(labels, len(across))
    return labels.detach().to(across) * across


def intra_modal_consistency(
    image_similarity: Tensor,
    text_similarity: Tensor,
    labels: Tensor,
    *,
    temperature: float = 1.0,
    believed: bool = True,
) -> Tensor:
    """Loss of every pair, (B,): −y_i log softmax_j(Σ_k y_k² a_ik b_jk / τ2)_i (GSC, eq. 7).

    Row i compares how image i stands to all images with how each text j stands to all texts; the given text is to
    compare best. Pairs that are not believed drop out of the comparison (y_k²) and of the loss (y_i): the paper asks
    for the latter in words and its eq. 7 leaves it out.

    Args:
        image_similarity: a, (B, B), image i to image k; any float dtype.
        text_similarity: b, (B, B), text j to text k.
        labels: y, (B,) in [0, 1]. No gradient flows into them.
        temperature: τ2 > 0 of the softmax. The sum over k is not normalised, so it grows with the batch.
        believed: whether the loss of a pair is weighed by y_i; eq. 7 as it is printed does not.

    Raises:
        InputError: a matrix is not square and finite, the two differ in size, a label lies outside [0, 1], or τ2 ≤ 0.
    """
    check_structures(image_similarity, text_similarity, labels)
    check_temperature(temperature)
    labels = labels.detach().to(image_similarity)
    # Sums of up to B products feed an exponential: bfloat16 would round them by whole units.
    agreement = products(image_similarity * labels.square(), text_similarity)
    within = -torch.log_softmax(agreement / temperature, dim=1).diagonal()
    return labels * within if believed else within


def check_structures(image_similarity: Tensor, text_similarity: Tensor, labels: Tensor) -> int:
    """B of usable intra-modal similarities with their labels.

    Raises:
        InputError: a matrix is not square and finite, the two differ in size, or a label lies outside [0, 1].
    """
    counts = []
    for modality, matrix in (("image", image_similarity), ("text", text_similarity)):
        try:
            counts.append(check_similarity(matrix))
        except InputError as error:
            raise InputError(f"{modality}_{error}") from None  # "image_similarity[2, 1] is nan; …"
    if counts[0] != counts[1]:
        raise InputError(
            f"image_similarity is {counts[0]} × {counts[0]}, text_similarity {counts[1]} × {counts[1]}; "
            "expected the images and the texts of the same pairs"
        )
    check_labels(labels, counts[0])
    return counts[0]
