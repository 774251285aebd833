"""Unit vectors as SGRAF makes them, with a gradient that is finite and moderate everywhere, and those of projections.

A difference has D numbers, its projection W |difference|² + b has S, four times fewer. It is made in place, and nothing
D wide is kept for the backward pass.
"""

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


def project_in_place(difference: Tensor, weight: Tensor, bias: Tensor) -> tuple[Tensor, Tensor]:
    """W |d|² + b (…, S), not yet normalised, and its norm (…, 1); `difference` (…, D) holds |d|² afterwards."""
    rows = difference.view(-1, difference.shape[-1])
    projected = torch.addmm(bias, rows.mul_(rows), weight.T)
    norm = torch.linalg.vector_norm(projected, dim=1, keepdim=True)
    return projected.view(*difference.shape[:-1], -1), norm.view(*difference.shape[:-1], 1)


class ProjectionGradient:
    """Sums the gradients of weight and bias over calls; each call turns the gradient of units into that of differences.

    Args:
        weight: (S, D).
    """

    def __init__(self, weight: Tensor) -> None:
        self.weight = torch.zeros_like(weight)
        self.bias = weight.new_zeros(weight.shape[0])
        self.twice = 2 * weight

    def __call__(
        self, gradient: Tensor, units: Tensor, norm: Tensor, difference: Tensor, out: Tensor | None = None
    ) -> Tensor:
        """The gradient (…, D) of `difference` (…, D), written to `out`.

        Args:
            gradient: of the units (…, S).
            units: (…, S); `norm` (…, 1) is that of the projection before it became a unit vector.
        """
        rows = difference.view(-1, difference.shape[-1])
        into = torch.empty_like(rows) if out is None else out.view(rows.shape)
        projected = unit_gradient(*(values.reshape(len(rows), -1) for values in (gradient, units, norm)))
        torch.mul(rows, rows, out=into)
        self.weight.addmm_(projected.T, into)
        self.bias.add_(projected.sum(dim=0))
        return torch.mm(projected, self.twice, out=into).mul_(rows).view_as(difference)


def unit_gradient(gradient: Tensor, units: Tensor, norm: Tensor) -> Tensor:
    """The gradient of x from that of u = x / (‖x‖ + 1e-8): g / (‖x‖ + 1e-8) − u (u · g) / ‖x‖; zero for short x."""
    along = (units * gradient).sum(dim=-1, keepdim=True)
    along.mul_(inverse(norm)).neg_()
    return torch.addcmul(gradient * inverse_norm(norm), units, along)


def inverse(norm: Tensor) -> Tensor:
    """1 / norm, zero where a vector is so short that it counts as zero."""
    return torch.where(norm > SMALL, 1 / norm, 0.0)


def blocks(count: int, row_bytes: int, budget: int) -> list[slice]:
    """Slices of a range, each of so many rows as fit the budget, at least one."""
    size = max(1, budget // max(1, row_bytes))
    return [slice(start, min(start + size, count)) for start in range(0, count, size)]
