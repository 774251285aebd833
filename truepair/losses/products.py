"""Products of vectors that a softmax or a look-up reads: never in bf16."""

from __future__ import annotations

import torch
from torch import Tensor


def products(rows: Tensor, columns: Tensor) -> Tensor:
    """x_iᵀ z_j of every row with every column, (B, D), (M, D) → (B, M), in float32 or wider also under autocast.

    bf16 has steps of 1/256 below 1: a temperature of 0.05 makes 8 % of one.
    """
    with torch.autocast(rows.device.type, enabled=False):
        kind = torch.promote_types(torch.promote_types(rows.dtype, columns.dtype), torch.float32)
        return rows.to(kind) @ columns.to(kind).T
