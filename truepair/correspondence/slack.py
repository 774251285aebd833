"""What a hinge leaves of its margin: how far a pair ranks before the others of its batch (NCR)."""

from __future__ import annotations

import torch
from torch import Tensor

from truepair.errors import InputError


def slack(losses: Tensor, margin: float) -> Tensor:
    """Θ of every pair, (B,) in [0, α]: clip(α − ℓ/2, 0, α), the margin that the mean hinge of one direction leaves.

    Args:
        losses: ℓ ≥ 0, (B,): the mean hinges over all negatives, both directions added.
        margin: α > 0 of these hinges.

    Raises:
        InputError: the losses are not (B,) or negative somewhere (NaN included), or α ≤ 0.
    """
    if losses.ndim != 1 or not bool((losses >= 0).all()):
        raise InputError(f"losses have shape {tuple(losses.shape)}; expected (B,), none negative")
    if not margin > 0:
        raise InputError(f"margin is {margin}; expected a value above 0")
    return (margin - losses.detach() / 2).clamp(min=0, max=margin)


def foremost(values: Tensor) -> Tensor:
    """The places of the ⌊B/10⌋ + 1 largest of B values, (⌊B/10⌋ + 1,) int64; of equal ones those that come first."""
    return values.argsort(descending=True, stable=True)[: len(values) // 10 + 1]


def predicted_label(losses: Tensor, margin: float) -> Tensor:
    """P of every pair, (B,) in [0, 1]: min(1, Θ/τ̄), with τ̄ the mean of the ⌊B/10⌋ + 1 largest Θ (NCR, eq. 6).

    0 where every Θ is 0. Arguments and errors as of `slack`.
    """
    left = slack(losses, margin)
    reference = left[foremost(left)].mean()
    return (left / reference.clamp(min=torch.finfo(left.dtype).tiny)).clamp(max=1)
