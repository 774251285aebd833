"""What it costs to match an image with a text anew: a function of their similarity that is learned beside the engine.

L2RM's own is a linear map of a row of the batch, so that a cost depends on the order of the others, and it is taught to
be 0 for clean pairs with nothing that keeps other costs up. This one is a function of the one cell, and wrong pairs are
its counter-examples.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import softplus

from truepair.methods.auxiliary import AuxiliaryNetworks, ParameterGroups


class LearnedCost(nn.Module):
    """C(S) = log(1 + exp(a − b S)) with b > 0: it falls as S grows. Begins with a = 5 and b = 10."""

    def __init__(self) -> None:
        super().__init__()
        self.offset = nn.Parameter(torch.tensor(5.0))
        self.log_slope = nn.Parameter(torch.tensor(10.0).log())

    def logits(self, similarity: Tensor) -> Tensor:
        """a − b S; σ of it is how probable a cell is held to be wrong."""
        return self.offset - self.log_slope.exp() * similarity.detach()

    def forward(self, similarity: Tensor) -> Tensor:
        """C of every cell, from 0 on. No gradient flows into the similarity."""
        return softplus(self.logits(similarity))

    def loss(self, similarity: Tensor, clean: Tensor) -> Tensor:
        """What it learns from, 0-d: C of clean pairs, and log(1 + exp(b S − a)) of their items with each other's.

        Args:
            similarity: S, (B, B), given pairs on the diagonal.
            clean: (B,) bool; of fewer than two there is nothing to learn.
        """
        logits = self.logits(similarity[clean][:, clean])
        if len(logits) < 2:
            return 0 * self.logits(similarity).sum()
        wrong = logits[~torch.eye(len(logits), dtype=torch.bool, device=logits.device)]
        return softplus(logits.diagonal()).mean() + softplus(-wrong).mean()


class AuxiliaryCost(AuxiliaryNetworks):
    """The cost, with a learning rate of its own."""

    def __init__(self, rate: float) -> None:
        self.rate = rate

    def build(self, engine: Any, before: nn.Module | None = None) -> nn.Module:
        return LearnedCost()

    def parameter_groups(self, engine: Any, networks: nn.Module | None) -> ParameterGroups:
        assert networks is not None
        return [([*engine.parameters()], 1.0), ([*networks.parameters()], self.rate)]
