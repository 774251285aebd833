"""Cross-attention: how much every word attends to every region, and the gradient of it (SGRAF, eq. 3, 4).

α_rt = softmax over r of 9 ā_rt, where ā_rt is LeakyReLU(v_r · w_t), L2-normalised over the words t of the caption.

Everything here is (m · R, T): small beside the (m, T, D) that the attended vectors would be.

Shape letters: m images, R regions, n captions, T words of all captions.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import leaky_relu

from truepair.engines.unit import inverse, inverse_norm

SHARPNESS = 9.0  # λ of SGRAF
LEAK = 0.1


@dataclass(frozen=True)
class Attention:
    """`weights` (m, R, T) sum to 1 over R; `activated` (m · R, T) and `norm` (m · R, n) serve the gradient."""

    weights: Tensor
    activated: Tensor
    norm: Tensor


def attend(regions: Tensor, words: Tensor, present: Tensor | None, membership: Tensor) -> Attention:
    """Weights of the regions (m, R, D) for words (T, D).

    Args:
        present: (m, R) True where there is a region, None if everywhere.
        membership: (T, n) one-hot, which word belongs to which caption.
    """
    activated = leaky_relu(regions.flatten(0, 1) @ words.T, LEAK, inplace=True)
    buffer = activated * activated  # and later the weights: a fresh tensor costs a CPU more than the arithmetic
    norm = torch.mm(buffer, membership).sqrt_()
    torch.mm(inverse_norm(norm).mul_(SHARPNESS), membership.T, out=buffer).mul_(activated)
    weights = buffer.view(*regions.shape[:2], -1)
    if present is not None:
        weights.masked_fill_(~present[..., None], -torch.inf)
    weights.sub_(weights.amax(dim=1, keepdim=True)).exp_()
    weights.div_(weights.sum(dim=1, keepdim=True))
    return Attention(weights, activated, norm)


def attention_gradient(gradient: Tensor, attention: Attention, membership: Tensor) -> Tensor:
    """The gradient (m · R, T) of every v·w from that of the weights (m, R, T), which is overwritten."""
    weights, activated, norm = attention.weights, attention.activated, attention.norm
    buffer = weights * gradient
    of_logits = gradient.sub_(buffer.sum(dim=1, keepdim=True)).mul_(weights).flatten(0, 1)
    buffer = torch.mul(of_logits, activated, out=buffer.flatten(0, 1))
    along = torch.mm(buffer, membership).mul_(inverse_norm(norm)).mul_(inverse(norm))
    of_logits.addcmul_(activated, torch.mm(along, membership.T, out=buffer), value=-1)
    of_activated = of_logits.mul_(torch.mm(SHARPNESS * inverse_norm(norm), membership.T, out=buffer))
    of_affinity: Tensor = torch.ops.aten.leaky_relu_backward(of_activated, activated, LEAK, True)
    return of_affinity
