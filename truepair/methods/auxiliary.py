"""Auxiliary networks: what a method keeps beside the engine, and what that asks of the optimizer and the loop."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from torch import nn

    from truepair.methods.base import EpochPosition

ParameterGroups = list[tuple[list["nn.Parameter"], float]]
"""What the optimizer trains, with learning rates in units of the given one."""


class AuxiliaryNetworks:
    """No auxiliary networks; methods that have some (discriminators, prototypes, teachers) say here what these need.

    They are newly made with a new engine, lie in checkpoints, and are no part of the model but for `model`.

    Attributes:
        subspaces: width and hidden width of the subspaces that encodings are split into, and whether the heads of what
            is compared are three layers and no more; None for no split.
        follows: whether they look at the weights of the engine after every step.
        copies: how many engines they are as large as.
    """

    subspaces: tuple[int, int, bool] | None = None
    follows: bool = False
    copies: int = 0

    def build(self, engine: Any, before: nn.Module | None = None) -> nn.Module | None:
        """The networks for a new engine; their tensors have the same names and shapes in every stage.

        Args:
            before: the networks of the stage before, as it left them; None in the first stage.
        """
        return None

    def parameter_groups(self, engine: Any, networks: nn.Module | None) -> ParameterGroups:
        """What the optimizer trains: engine and auxiliary networks, all at the given learning rate."""
        return [([*engine.parameters(), *(networks.parameters() if networks else ())], 1.0)]

    def rate_scale(self, position: EpochPosition) -> float:
        """Learning rate of an epoch, in units of the given one; the loop's decay comes on top."""
        return 1.0

    def follow(self, engine: Any, networks: nn.Module | None, position: EpochPosition) -> None:
        """After a step of the optimizer, where `follows`."""

    def model(self, engine: Any, networks: nn.Module | None) -> Any:
        """The engine that is scored on dev and saved as the model: that which is trained, or one made of it."""
        return engine
