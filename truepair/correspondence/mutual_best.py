"""The clean set of a batch: pairs whose image and text are each other's best (DisNCL, eq. 2; DECL)."""

from __future__ import annotations

import torch
from torch import Tensor

from truepair.losses.similarity_matrix import check_similarity


def mutual_best(similarity: Tensor) -> Tensor:
    """Which pairs are more similar than any other in their row and their column, (B,) bool.

    A tie counts against a pair, so that similarities that are all alike make no pair clean. One pair alone is clean.

    Args:
        similarity: (B, B), row = image, column = text, given pairs on the diagonal; any float dtype.

    Raises:
        InputError: the matrix is not square and finite.
    """
    count = check_similarity(similarity)
    own = similarity.diagonal()
    if count == 1:
        return torch.ones_like(own, dtype=torch.bool)
    itself = torch.eye(count, dtype=torch.bool, device=similarity.device)
    others = similarity.masked_fill(itself, -torch.inf)
    return (own > others.amax(dim=1)) & (own > others.amax(dim=0))
