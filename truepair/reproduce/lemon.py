"""LEMoN's own score, to compare with.

Zhang et al., "LEMoN: Label Error Detection using Multimodal Neighbors", ICML 2025.
"""

from __future__ import annotations

import torch
from torch import Tensor

from truepair.audit.scoring.bank import Bank
from truepair.audit.scoring.comparison import OwnEntries, blocks, nearest, products

WEIGHT, TAU_NEAR, TAU_FIT = 5.0, 0.1, 5.0  # β = γ, τ₁, τ₂


@torch.no_grad()
def lemon_score(
    images: Tensor,
    texts: Tensor,
    bank: Bank,
    *,
    image_rows: Tensor,
    text_rows: Tensor,
    neighbours: int = 30,
) -> Tensor:
    """−s of n candidates, (n,) float32: larger = better matched, of no fixed range.

    s = d(x, y) + β s_n + γ s_m with d = 1 − cosine, where
    s_n = 1/k Σ_j d(y, Y_j) exp(−τ₁ d(x, X_j)) exp(−τ₂ d(X_j, Y_j)) over the k bank images nearest to x,
    s_m = 1/k Σ_j d(x, X_j) exp(−τ₁ d(y, Y_j)) exp(−τ₂ d(X_j, Y_j)) over the k bank texts nearest to y.
    These are the fixed hyperparameters for those who have no labels to choose by: k = 30, β = γ = 5, τ₁ = 0.1, τ₂ =
    5. The released code takes −cosine for d(x, X_j): its factor differs by exp(τ₁) throughout. The paper's bank is
    the training set; all that tie for the k-th place count, and the candidate's own entries do not. Arguments and
    errors are those of `indicators.score`.
    """
    trust = torch.exp(-TAU_FIT * (1 - bank.fit()))
    parts = [images.new_empty(0).float()]
    for block in blocks(images, texts, bank, image_rows, text_rows):
        to_images, to_texts = products(block.images, bank.images), products(block.texts, bank.texts)
        by_image = _mean_distance(to_images, to_texts, block.own, trust, neighbours)
        by_text = _mean_distance(to_texts, to_images, block.own, trust, neighbours)
        parts.append(block.similarity - 1 - WEIGHT * by_image - WEIGHT * by_text)
    return torch.cat(parts)


def _mean_distance(near: Tensor, other_side: Tensor, own: OwnEntries, trust: Tensor, neighbours: int) -> Tensor:
    asked = nearest(own.fill(near.clone(), -torch.inf), own, neighbours).float()
    weighted = (1 - other_side) * torch.exp(-TAU_NEAR * (1 - near)) * trust * asked
    return weighted.sum(dim=1) / asked.sum(dim=1).clamp(min=1)
