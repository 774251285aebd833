"""Hinge ranking with hard negatives, the most similar wrong partners of the batch (VSE++): the "triplet" loss."""

from __future__ import annotations

import torch
from torch import Tensor

from truepair.errors import InputError
from truepair.losses.similarity_matrix import check_similarity


def hinge_ranking(similarity: Tensor, *, margin: float | Tensor, negatives: int | None = 1) -> Tensor:
    """Loss of every pair, (B,): hinge of its negatives, image → text plus text → image.

    With one negative (VSE++, "max of hinges"): [α − S_ii + max_{j≠i} S_ij]₊ + [α − S_ii + max_{j≠i} S_ji]₊.
    With k > 1 the hinge is the mean over the k hardest negatives of each direction (DECL, UGNCL); with None it is the
    sum over all negatives (VSE++'s "sum of hinges", used to warm up). A pair without negatives (B = 1) costs 0.

    Args:
        similarity: (B, B), row = image, column = text, given pairs on the diagonal; any float dtype.
        margin: α, one number or (B,), one per pair (soft margins).
        negatives: k ≥ 1 hardest negatives, at most B − 1 are used; None for all, summed.

    Raises:
        InputError: the matrix is not square and finite, the margin has another shape, or k < 1.
    """
    count = check_similarity(similarity)
    if negatives is not None and negatives < 1:
        raise InputError(f"negatives is {negatives}; expected at least 1, or None for the sum over all")
    if isinstance(margin, Tensor) and margin.ndim and margin.shape != (count,):
        raise InputError(f"margin has shape {tuple(margin.shape)}; expected one number or ({count},)")
    threshold = margin - similarity.diagonal()
    if count == 1:
        return similarity.diagonal() * 0.0
    itself = torch.eye(count, dtype=torch.bool, device=similarity.device)
    others = similarity.masked_fill(itself, -torch.inf)
    if negatives is None:
        to_text = (threshold[:, None] + others).clamp(min=0).sum(dim=1)
        to_image = (threshold[None, :] + others).clamp(min=0).sum(dim=0)
    else:
        hardest = min(negatives, count - 1)
        to_text = (threshold[:, None] + others.topk(hardest, dim=1).values).clamp(min=0).mean(dim=1)
        to_image = (threshold[None, :] + others.topk(hardest, dim=0).values).clamp(min=0).mean(dim=0)
    return to_text + to_image
