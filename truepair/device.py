"""Which device to compute on: a name, "auto" included, made one that this machine has."""

from __future__ import annotations

from typing import TYPE_CHECKING

from truepair.errors import InputError

if TYPE_CHECKING:
    import torch

DEVICE_HELP = "auto (cuda where there is one), cpu, cuda, cuda:1, …"


def resolve_device(name: str) -> torch.device:
    """The device of that name; for "auto" a GPU where there is one.

    Raises:
        InputError: no such device here.
    """
    import torch

    try:
        device = torch.device(("cuda" if torch.cuda.is_available() else "cpu") if name == "auto" else name)
        torch.empty(1, device=device)
    except (RuntimeError, AssertionError) as error:
        raise InputError(f"device is {name!r}, which this machine does not offer; use auto or cpu") from error
    return device
