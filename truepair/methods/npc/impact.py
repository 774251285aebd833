"""What a tried step does to pairs that are thought to match, and the weight it gives the pairs that were tried."""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor, nn

LEAST_LOSS = 1e-12


def impact_weight(
    before: tuple[Tensor, Tensor], after: tuple[Tensor, Tensor], form: Literal["tanh", "ratio"] = "tanh"
) -> Tensor:
    """w of every pair, (B,) in [0, 1]: 1 where the step did its bank pairs no harm, r ≥ 1; else tanh r, or r.

    r is the mean, over the bank pair of its image and that of its text, of the loss before over the loss after.

    Args:
        before, after: losses of the bank pairs by image and by text, (B,) each, at least 0.
    """
    ratios = [(old.detach() + LEAST_LOSS) / (new + LEAST_LOSS) for old, new in zip(before, after, strict=True)]
    ratio = torch.stack(ratios).mean(dim=0)
    harmed = torch.tanh(ratio) if form == "tanh" else ratio
    return torch.where(ratio < 1, harmed, 1.0)


def first_step(gradient: dict[nn.Parameter, Tensor], rate: float) -> dict[nn.Parameter, Tensor]:
    """The first step of Adam against a gradient: every number moves by the rate, but for those that need not move."""
    return {parameter: -rate * slope / (slope.abs() + 1e-8) for parameter, slope in gradient.items()}
