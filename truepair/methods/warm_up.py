"""The warm-up before a method divides, weighs or corrects the pairs: it must leave epochs to do so."""

from __future__ import annotations

from truepair.errors import InputError


def check_epochs(name: str, epochs: int, warm_up: int, purpose: str) -> None:
    """An InputError where no epoch is left after the warm-up.

    Args:
        purpose: what the other epochs are for ("to divide the pairs").
    """
    if epochs <= warm_up:
        raise InputError(
            f"{name} needs more epochs than the {warm_up} of its warm-up {purpose}, found {epochs}; train longer, or "
            "give it a shorter warm-up (warm_up_epochs)"
        )
