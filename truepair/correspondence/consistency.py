"""Bidirectional similarity consistency: images alike should have texts alike, and the other way round (BiCro)."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import normalize

from truepair.errors import InputError


def bidirectional_consistency(images: Tensor, texts: Tensor, anchors: Tensor) -> Tensor:
    """c of every pair, (B,) in [0, 1] (BiCro, eq. 5–7).

    Of pair i, ◇ is the anchor whose image, ○ the anchor whose text is nearest by cosine:
    c_i = clip(½ [ρ(⟨v_i, v_◇⟩, ⟨t_i, t_◇⟩) + ρ(⟨t_i, t_○⟩, ⟨v_i, v_○⟩)], 0, 1), ρ(a, b) = min(a/b, b/a).

    Args:
        images, texts: one vector an item, (B, D) and (B, D'), of any length. No gradient flows into them.
        anchors: places of pairs that are taken as right, (A,) int64; with none of them every c is 0.

    Raises:
        InputError: the numbers of images and texts differ.
    """
    if images.ndim != 2 or texts.ndim != 2 or len(images) != len(texts):
        raise InputError(
            f"images are {tuple(images.shape)}, texts {tuple(texts.shape)}; expected one vector an item of B"
        )
    if len(anchors) == 0:
        return images.new_zeros(len(images))
    near = []
    for side in (images, texts):
        unit = normalize(side.detach(), dim=1)
        near.append(unit @ unit[anchors].T)
    ratios = [_ratio(own, own.argmax(dim=1, keepdim=True), other) for own, other in (near, near[::-1])]
    return (torch.stack(ratios).mean(dim=0)).clamp(0, 1)


def _ratio(own: Tensor, nearest: Tensor, other: Tensor) -> Tensor:
    """ρ of the nearest anchor, (B,) in [−1, 1].

    min(a/b, b/a) of opposite signs is at most −1, and −1 here: the mean with another ρ ≤ 1 is clipped to 0 either way.
    """
    a, b = own.gather(1, nearest)[:, 0], other.gather(1, nearest)[:, 0]
    sizes = torch.stack([a.abs(), b.abs()])
    large = sizes.amax(dim=0)
    ratio = torch.where(large > 0, sizes.amin(dim=0) / large.clamp(min=torch.finfo(large.dtype).tiny), 1.0)
    return torch.where((a > 0) == (b > 0), ratio, -torch.ones_like(ratio))
