"""How alike the neighbourhoods of an image and of its text are (GSC)."""

from __future__ import annotations

import torch
from torch import Tensor

from truepair.losses.consistency import check_structures


def intra_modal_similarity(image_similarity: Tensor, text_similarity: Tensor, labels: Tensor) -> Tensor:
    """S_IM of every pair, (B,) in [−1, 1]: the cosine of y⊙a_i and y⊙b_i (GSC, eq. 8).

    0 where either vector is zero, as with labels that are all 0: nothing is known there, and nothing is NaN. An
    indicator, not a loss: it carries no gradient.

    Args:
        image_similarity: a, (B, B), image i to image j; any float dtype.
        text_similarity: b, (B, B), text i to text j.
        labels: y, (B,) in [0, 1]. Only their ratios count.

    Raises:
        InputError: a matrix is not square and finite, the two differ in size, or a label lies outside [0, 1].
    """
    check_structures(image_similarity, text_similarity, labels)
    dtype = torch.promote_types(image_similarity.dtype, torch.float32)
    weights = labels.detach().to(image_similarity.device, dtype)
    images = _unit_rows(image_similarity.detach().to(dtype) * weights)
    texts = _unit_rows(text_similarity.detach().to(images) * weights)
    return (images * texts).sum(dim=1).clamp(-1, 1)


def _unit_rows(rows: Tensor) -> Tensor:
    """Rows of length 1; rows of zeros stay zero."""
    # Scaled by their largest entry first: the squares of small weights would underflow to a false zero.
    largest = rows.abs().amax(dim=1, keepdim=True)
    scaled = rows / largest.masked_fill(largest == 0, 1.0)
    length: Tensor = torch.linalg.vector_norm(scaled, dim=1, keepdim=True)
    return scaled / length.clamp(min=1.0)  # a row that is not zero is at least 1 long
