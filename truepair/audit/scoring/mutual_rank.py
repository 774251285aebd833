"""How high two items stand in each other's ranking, in [0, 1]."""

from __future__ import annotations

import torch
from torch import Tensor

TIE = 1e-6
"""Similarities that differ by no more are equal: float32 products of the same vectors differ by a few 1e-7."""


def rank_among(similarity: Tensor, others: Tensor) -> Tensor:
    """(b,) float32: 1 + how many of the others (b, m) are larger than the similarity (b,), equal ones half.

    Minus infinity among the others stands for nobody.
    """
    own = similarity[:, None]
    # Counted in float32, exact up to 2^24 entries: summing booleans takes forty times as long.
    counted = torch.empty_like(others)
    larger = torch.gt(others, own + TIE, out=counted).sum(dim=1)
    at_least = torch.ge(others, own - TIE, out=counted).sum(dim=1)
    return 1 + (larger + at_least) / 2


def mutual_rank(first: Tensor, second: Tensor, others: Tensor) -> Tensor:
    """1 − log √(r₁ r₂) / log(others + 1), of two ranks in 1 … others + 1: 1 for mutual best, 0 for last twice.

    0.5 where there are no others: nothing is known there.
    """
    score = 1 - (first * second).log() / (2 * (others + 1).log())
    return torch.where(others == 0, 0.5, score).clamp(0, 1)
