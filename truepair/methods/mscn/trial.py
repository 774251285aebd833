"""What a similarity head learns through a step of the encoders that is only tried: MSCN's meta gradient.

The step depends on the head, since the hinges it goes down do. What this adds to the gradient is a mixed second
derivative, taken as in DARTS (Liu et al., ICLR 2019, eq. 8): a difference of first ones, so that no part of an engine
has to be differentiable twice. Hinges are piecewise linear in the similarities; the piece they are on is held fixed.

Source: "Noisy Correspondence Learning with Meta Similarity Correction" (CVPR 2023), section 3.3, and its released code.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from truepair.engines.retrieval_model import evaluating
from truepair.methods.base import Forward, at_least_single
from truepair.methods.tried_step import tried

REACH = 1e-2
"""Length of the step to either side of the difference, in units of the parameters; as in DARTS."""


def head_parameters(engine: Any) -> list[nn.Parameter]:
    """Those of the similarity heads of all networks."""
    return [parameter for network in engine.networks() for parameter in network.similarity_head.parameters()]


def through_trial_step(
    forward: Forward, hinges: Callable[[list[Tensor]], Tensor], known: Callable[[], Tensor], rate: float
) -> Tensor:
    """The loss of known pairs after a trial step of the encoders, 0-d, with a gradient for the heads alone.

    The encoders θ take a plain step against the hinges h of the batch, to θ′ = θ − η ∂h/∂θ, and back. The gradient by
    the heads V of the loss L(θ′, V) is ∂L/∂V − η ∂/∂V ⟨∂h/∂θ, ∂L/∂θ′⟩. All in evaluation mode, without dropout.

    Args:
        forward: the batch.
        hinges: h, 0-d, of the similarities of every network.
        known: computes L, 0-d, with encoders and heads as they are then.
        rate: η.
    """
    heads = head_parameters(forward.engine)
    of_heads = {id(parameter) for parameter in heads}
    # Without cuDNN, whose GRU has no gradient in evaluation mode.
    full_precision = torch.autocast(forward.batch.ids.device.type, enabled=False)
    with evaluating(forward.engine), full_precision, torch.backends.cudnn.flags(enabled=False):
        here = forward.again()
        similarities = [network.similarity for network in here.networks]
        loss = hinges(similarities)
        weights = torch.autograd.grad(loss, similarities, retain_graph=True)
        slopes = {p: slope for p, slope in here.gradient(loss).items() if id(p) not in of_heads}
        with tried({parameter: -rate * slope for parameter, slope in slopes.items()}):
            value = known()
            found = torch.autograd.grad(value, [*heads, *slopes], materialize_grads=True)
        direct, ahead = found[: len(heads)], dict(zip(slopes, found[len(heads) :], strict=True))
        length = math.sqrt(
            sum(float(step.square().sum()) for step in ahead.values())
        )  # 0 where all encoders are frozen
        gradients = list(direct)
        if length > 0:
            reach = REACH / length
            to_either_side = [
                head_slopes(forward, weights, heads, {p: sign * reach * step for p, step in ahead.items()})
                for sign in (1, -1)
            ]
            gradients = [
                own - rate * (up - down) / (2 * reach) for own, up, down in zip(direct, *to_either_side, strict=True)
            ]
    return with_gradient(value.detach(), heads, gradients)


def head_slopes(
    forward: Forward, weights: tuple[Tensor, ...], heads: list[nn.Parameter], steps: dict[nn.Parameter, Tensor]
) -> tuple[Tensor, ...]:
    """The gradient by the heads of Σ weight · similarity, with the encoders moved by some steps."""
    with tried(steps):
        there, total = forward.again(), []
        for network, weight in zip(there.networks, weights, strict=True):
            with torch.no_grad():
                images, texts = network.images, network.texts
            with network.engine.similarity_head.learning("head"):
                scores = at_least_single(network.engine.scores(images, texts))
                total.append((weight * network.engine.as_similarity(scores)).sum())
        return torch.autograd.grad(torch.stack(total).sum(), heads, materialize_grads=True)


def with_gradient(value: Tensor, parameters: list[nn.Parameter], gradients: list[Tensor]) -> Tensor:
    """A value (0-d) whose gradient by these parameters is given."""
    pairs = zip(parameters, gradients, strict=True)
    carrier = torch.stack([(parameter * gradient.detach()).sum() for parameter, gradient in pairs]).sum()
    return value + (carrier - carrier.detach()).to(value)
