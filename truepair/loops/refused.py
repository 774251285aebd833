"""Which methods a loss alone cannot drive, and why."""

from __future__ import annotations

from truepair.errors import InputError
from truepair.methods.base import EpochPosition, Method, Stage


def check_drivable(method: Method, stages: tuple[Stage, ...]) -> None:
    """Refuse a method that needs more of a loop than the features of the pairs at hand.

    Raises:
        InputError: what it needs.
    """
    why = needs_of(method, stages)
    if why:
        raise InputError(f"method {method.name} {why}. Train with it by truepair.fit or `truepair train`")


def needs_of(method: Method, stages: tuple[Stage, ...]) -> str:
    """What of a method a loss alone has no place for; "" where there is nothing."""
    if method.learns_from_labels:
        return "learns from class labels with prototypes of its own, and a criterion is given pairs alone"
    if method.least_trusted:
        return "learns from pairs that are known to match, and a criterion is not told which these are"
    if method.reads_beside:
        return "looks at other pairs beside those of a batch, and a criterion has these alone"
    if method.networks > 1:
        return f"as asked trains {method.networks} networks that teach each other, and a criterion sees one network"
    if method.views > 1:
        return f"compares {method.views} views of each image, and a criterion is given one vector an image"
    if method.auxiliary.subspaces is not None:
        return "trains heads and discriminators of its own beside the encoders, and a criterion has no parameters"
    if method.auxiliary.follows:
        return "is taught by an average of its network's weights, and a criterion sees no weights"
    if method.turns > 1:
        return f"takes {method.turns} turns over the pairs in an epoch, and a criterion sees every pair once"
    epochs = ((number, epoch) for number, stage in enumerate(stages) for epoch in range(1, stage.epochs + 1))
    if any(method.surveys(EpochPosition(*epoch, stages)) for epoch in epochs):
        return "reads all pairs before an epoch, and a criterion sees them as they are trained on"
    return ""
