"""What DisNCL trains beside the encoders: a disentangler with its discriminators (III-C), at rates of their own."""

from __future__ import annotations

from typing import Any

from torch import Tensor, nn

from truepair.correspondence.mutual_best import mutual_best
from truepair.methods.auxiliary import AuxiliaryNetworks, ParameterGroups
from truepair.methods.base import EpochPosition, Forward
from truepair.methods.disncl.disentanglers import DISENTANGLERS, detached, select_parts
from truepair.methods.disncl.options import DisNCLConfig


class AuxiliaryDisentangler(AuxiliaryNetworks):
    """Four heads in the engine, the disentangler's networks beside it."""

    def __init__(self, config: DisNCLConfig) -> None:
        self.config = config
        self.subspaces = config.subspace_width, config.hidden_width, config.heads == "plain"
        self.steps = config.discriminator_steps - 1

    def build(self, engine: Any) -> nn.Module | None:
        if self.config.disentangler == "none":
            return None
        return DISENTANGLERS[self.config.disentangler](engine, self.config)

    def parameter_groups(self, engine: Any, networks: nn.Module | None) -> ParameterGroups:
        """Encoders, invariant heads, exclusive heads and discriminators, each at a rate of its own."""
        config = self.config
        groups = [
            (list(engine.base.parameters()), 1.0),
            (parameters_of(engine.image_invariant, engine.text_invariant), config.head_rate),
            (parameters_of(engine.image_exclusive, engine.text_exclusive), config.exclusive_rate),
            (parameters_of(*([networks] if networks else [])), config.discriminator_rate),
        ]
        return [group for group in groups if group[0]]

    def rate_scale(self, position: EpochPosition) -> float:
        return 1.0 if position.epoch <= self.config.warm_up_epochs else self.config.main_rate

    def resets_optimizer(self, position: EpochPosition) -> bool:
        """After the warm-up: its small gradients would make the first steps of the larger loss far too long."""
        return bool(position.epoch == self.config.warm_up_epochs + 1)

    def loss(self, forward: Forward, position: EpochPosition) -> Tensor | None:
        """What the discriminators learn in a step of their own, on parts that stay as they are."""
        disentangler: Any = forward.auxiliary
        if position.epoch <= self.config.warm_up_epochs or disentangler is None:
            return None
        clean = mutual_best(forward.networks[0].similarity.detach())
        if int(clean.sum()) < 2:
            return None
        image, text = (detached(select_parts(side, clean)) for side in forward.networks[0].parts)
        loss: Tensor | None = disentangler.discriminator_loss(image, text)
        return loss


def parameters_of(*modules: nn.Module) -> list[nn.Parameter]:
    return [parameter for module in modules for parameter in module.parameters()]
