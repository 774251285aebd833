"""L2 normalisation as SGRAF does it, with a gradient that is finite and moderate everywhere."""

from __future__ import annotations

import torch
from torch import Tensor

SMALL = 1e-8  # SGRAF's l2norm and l1norm: x / (‖x‖ + 1e-8)


def unit(vectors: Tensor, dim: int = -1) -> Tensor:
    """x / (‖x‖ + 1e-8) along `dim`; zero, with a gradient of zero, where ‖x‖ ≤ 1e-8.

    So short a vector is what rounding leaves of a difference of equals (an image and itself, a one-word caption and
    itself). Its direction means nothing, yet its gradient would be up to 1e8 times that of any other.
    """
    return vectors * inverse_norm(torch.linalg.vector_norm(vectors, dim=dim, keepdim=True))


def inverse_norm(norm: Tensor) -> Tensor:
    """1 / (norm + 1e-8), zero where the norm is at most 1e-8."""
    return torch.where(norm > SMALL, 1 / (norm + SMALL), 0.0)
