"""What the information terms of DisNCL are made of: an estimate to raise, one to lower, and a divergence."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn.functional import softplus

from truepair.errors import InputError
from truepair.losses.similarity_matrix import check_finite


def jensen_shannon(joint: Tensor, marginal: Tensor) -> Tensor:
    """E_joint[log D] + E_marginal[log(1 − D)] of a discriminator's logits, 0-d, at most 0 (DisNCL, eq. 9, 12).

    For the best D it is 2 JS(joint ‖ product of the marginals) − 2 log 2: −2 log 2 where the two variables are
    independent, and nearer 0 the more they tell of each other.

    Args:
        joint: logits of D for pairs that belong together, any shape.
        marginal: logits for pairs that do not.

    Raises:
        InputError: one of them is empty, or holds a value that is not finite.
    """
    if not joint.numel() or not marginal.numel():
        raise InputError(f"{joint.numel()} joint and {marginal.numel()} marginal logits; expected at least one of each")
    for name, logits in (("joint", joint), ("marginal", marginal)):
        check_finite(f"{name} logits", logits)
    return -softplus(-joint).mean() - softplus(marginal).mean()


def reverse_gradient(values: Tensor, scale: float = 1.0) -> Tensor:
    """The values themselves; their gradient comes back times −scale (Ganin et al. 2016).

    What a discriminator behind it learns to raise, all before it learns to lower.
    """
    return _Reverse.apply(values, scale)  # type: ignore[no-untyped-call, no-any-return]


class _Reverse(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, values: Tensor, scale: float) -> Tensor:
        ctx.scale = scale
        return values.view_as(values)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None]:
        return -ctx.scale * gradients[0], None


def blurred(part: Tensor, noise: float, generator: torch.Generator | None = None) -> Tensor:
    """A draw of every row, (n, S): its deviation from the mean row, in units of the spread of all, and normal noise.

    A discriminator is fooled by parts that lie close together, though they tell as much as before; so it sees them
    spread out. And what is told in directions of hardly any spread drowns in the noise; without it, what two
    deterministic parts tell of each other is no finite number. The paper's parts are means of unit Gaussians (eq. 10).

    Args:
        part: (n, S), n ≥ 1. Rows that are all alike become zeros and noise.
        noise: ≥ 0, its standard deviation, where that of all values of the part is 1.
        generator: on the device of the part; None for the global one.
    """
    deviation = part - part.mean(dim=0)
    spread = deviation / deviation.square().mean().clamp(min=1e-12).sqrt()
    if not noise:
        return spread
    draw = torch.randn(spread.shape, dtype=spread.dtype, device=spread.device, generator=generator)
    return spread + noise * draw


def derangement(count: int, generator: torch.Generator | None = None) -> Tensor:
    """A random permutation of `count` ≥ 2 items that leaves none in its place, (count,) int64 on the CPU.

    One cycle through all items in random order: what stands for the product of the marginals in a batch.

    Raises:
        InputError: fewer than two items.
    """
    if count < 2:
        raise InputError(f"{count} items; expected at least 2, or an item keeps its place")
    order = torch.randperm(count, generator=generator)
    partner = torch.empty_like(order)
    partner[order] = order.roll(-1)
    return partner


def unit_gaussian_divergence(first: Tensor, second: Tensor) -> Tensor:
    """KL(N(a, I) ‖ N(b, I)) of every row, (n,): ‖a − b‖²/2, the same in both directions (DisNCL, eq. 10).

    Args:
        first, second: means a and b, (n, S).

    Raises:
        InputError: the shapes differ, or a mean is not finite.
    """
    if first.shape != second.shape or first.ndim != 2:
        raise InputError(f"means of shape {tuple(first.shape)} and {tuple(second.shape)}; expected (n, S) for both")
    for name, means in (("first", first), ("second", second)):
        check_finite(name, means)
    return (first - second).square().sum(dim=1) / 2
