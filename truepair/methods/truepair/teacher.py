"""Who teaches: the moving average of the weights that the stage before has left."""

from __future__ import annotations

import copy
from typing import Any

import torch
from torch import nn

from truepair.engines.similarity import ScoringEngine
from truepair.methods.auxiliary import AuxiliaryNetworks, ParameterGroups
from truepair.methods.base import EpochPosition
from truepair.methods.truepair.options import TruePairConfig

START = 4
"""Of the steps done so far the average looks back at most at a fourth: it begins with the first and forgets it soon."""


class Teachers(nn.Module):
    """Two networks like the engine, neither of which learns.

    Attributes:
        average: the moving average of the weights of the engine that is trained; the model, and the next teacher.
        before: the average that the stage before has left, the teacher; in the first stage nothing is learned of it.
    """

    average: ScoringEngine[Any]
    before: ScoringEngine[Any]

    def __init__(self, average: ScoringEngine[Any], before: ScoringEngine[Any]) -> None:
        super().__init__()
        self.average, self.before = average, before


class AuxiliaryTeachers(AuxiliaryNetworks):
    """The average of the running stage and that of the one before, both in evaluation mode."""

    follows = True
    copies = 2

    def __init__(self, config: TruePairConfig) -> None:
        self.config = config

    def build(self, engine: Any, before: nn.Module | None = None) -> nn.Module:
        left = before.average if isinstance(before, Teachers) else like(engine)
        return Teachers(like(engine), left).eval()

    def parameter_groups(self, engine: Any, networks: nn.Module | None) -> ParameterGroups:
        """The engine alone."""
        return [([*engine.parameters()], 1.0)]

    @torch.no_grad()
    def follow(self, engine: Any, networks: nn.Module | None, position: EpochPosition) -> None:
        """θ̄ ← θ̄ + (θ − θ̄)/h, h steps in `average_epochs`, and at first a fourth of the steps done.

        What is no weight (the statistics of batch norms) is taken over.
        """
        assert isinstance(networks, Teachers)
        done = (position.epoch - 1) * position.steps + position.step
        horizon = max(1.0, min(self.config.average_epochs * position.steps, 1 + done / START))
        for mean, weight in zip(networks.average.parameters(), engine.parameters(), strict=True):
            if weight.requires_grad:
                mean.lerp_(weight, 1 / horizon)
        for kept, buffer in zip(networks.average.buffers(), engine.buffers(), strict=True):
            kept.copy_(buffer)

    def model(self, engine: Any, networks: nn.Module | None) -> Any:
        """The average."""
        assert isinstance(networks, Teachers)
        return networks.average


def like(engine: ScoringEngine[Any]) -> ScoringEngine[Any]:
    """A copy of an engine, weights included; those that are frozen are not copied but shared."""
    shared = {id(weight): weight for weight in engine.parameters() if not weight.requires_grad}
    return copy.deepcopy(engine, shared)
