"""Auxiliary networks: what a method trains beside the engine, and what that asks of the optimizer and the loop."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from torch import nn

    from truepair.methods.base import EpochPosition

ParameterGroups = list[tuple[list["nn.Parameter"], float]]
"""What the optimizer trains, with learning rates in units of the given one."""


class AuxiliaryNetworks:
    """No auxiliary networks; methods that have some (discriminators, prototypes) say here what these need.

    They are newly initialised and trained with a new engine, lie in checkpoints, and are no part of the model.

    Attributes:
        subspaces: width and hidden width of the subspaces that encodings are split into, and whether the heads of what
            is compared are three layers and no more; None for no split.
    """

    subspaces: tuple[int, int, bool] | None = None

    def build(self, engine: Any) -> nn.Module | None:
        """The networks, newly initialised, for a new engine."""
        return None

    def parameter_groups(self, engine: Any, networks: nn.Module | None) -> ParameterGroups:
        """What the optimizer trains: engine and auxiliary networks, all at the given learning rate."""
        return [([*engine.parameters(), *(networks.parameters() if networks else ())], 1.0)]

    def rate_scale(self, position: EpochPosition) -> float:
        """Learning rate of an epoch, in units of the given one; the loop's decay comes on top."""
        return 1.0
