"""What DisNCL trains beside the encoders: a disentangler with its discriminators (III-C)."""

from __future__ import annotations

from typing import Any

from torch import nn

from truepair.methods.auxiliary import AuxiliaryNetworks, ParameterGroups
from truepair.methods.base import EpochPosition
from truepair.methods.disncl.disentanglers import DISENTANGLERS
from truepair.methods.disncl.options import DisNCLConfig


class AuxiliaryDisentangler(AuxiliaryNetworks):
    """Four heads in the engine, the disentangler's networks beside it."""

    def __init__(self, config: DisNCLConfig) -> None:
        self.config = config
        self.subspaces = config.subspace_width, config.hidden_width, config.heads == "plain"

    def build(self, engine: Any, before: nn.Module | None = None) -> nn.Module | None:
        if self.config.disentangler == "none":
            return None
        return DISENTANGLERS[self.config.disentangler](engine, self.config)

    def parameter_groups(self, engine: Any, networks: nn.Module | None) -> ParameterGroups:
        """The invariant heads at a rate of their own, all else at the given one."""
        others = [engine.base, engine.image_exclusive, engine.text_exclusive, *([networks] if networks else [])]
        return [
            (parameters_of(*others), 1.0),
            (parameters_of(engine.image_invariant, engine.text_invariant), self.config.head_rate),
        ]

    def rate_scale(self, position: EpochPosition) -> float:
        return 1.0 if position.epoch <= self.config.warm_up_epochs else self.config.main_rate


def parameters_of(*modules: nn.Module) -> list[nn.Parameter]:
    return [parameter for module in modules for parameter in module.parameters()]
