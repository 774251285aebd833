"""Which device to compute on: a name, "auto" included, made one that this machine has; and how many threads."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from truepair.errors import InputError, TooLargeError

if TYPE_CHECKING:
    import torch
    from threadpoolctl import ThreadpoolController

DEVICE_HELP = "auto (cuda where there is one), cpu, cuda, cuda:1, …"


def resolve_device(name: str) -> torch.device:
    """The device of that name; for "auto" a GPU where there is one. Raises InputError: no such device here."""
    import torch

    try:
        device = torch.device(("cuda" if torch.cuda.is_available() else "cpu") if name == "auto" else name)
        torch.empty(1, device=device)
    except (RuntimeError, AssertionError) as error:
        raise InputError(f"device is {name!r}, which this machine does not offer; use auto or cpu") from error
    return device


def set_threads(count: int) -> None:
    """From now on torch, numpy and scipy compute on so many CPU threads."""
    import torch

    torch.set_num_threads(count)
    _linear_algebra().limit(limits=count)


@contextmanager
def threads(count: int | None) -> Iterator[None]:
    """Within the block torch, numpy and scipy compute on so many CPU threads; None leaves their number as it is."""
    if count is None:
        yield
        return
    import torch

    before = torch.get_num_threads()
    with _linear_algebra().limit(limits=count):
        torch.set_num_threads(count)
        try:
            yield
        finally:
            torch.set_num_threads(before)


def _linear_algebra() -> ThreadpoolController:
    """The libraries that numpy and scipy compute with; each brings one of its own, with as many threads as cores."""
    import scipy.linalg  # noqa: F401  (one that is loaded later is not found)
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


def check_memory(needed: float, what: str, device: torch.device | None = None) -> None:
    """Refuse what this machine, or the GPU, cannot hold, before anything is allocated; the TooLargeError names both
    numbers of bytes. `what` needs the estimated ones, and has the remedy in brackets.
    """
    held = memory_of(device)
    if held is not None and needed > held:
        raise TooLargeError(f"{what} needs about {needed / 1e9:,.1f} GB of memory, and there are {held / 1e9:,.1f} GB")


def memory_of(device: torch.device | None = None) -> int | None:
    """Bytes of memory of a GPU, else of this machine or what it may use of it; None where the system does not say."""
    if device is not None and device.type == "cuda":
        import torch

        return int(torch.cuda.get_device_properties(device).total_memory)
    try:
        total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return None
    try:
        return min(total, int(Path("/sys/fs/cgroup/memory.max").read_text(encoding="ascii")))
    except (OSError, ValueError):  # no limit is "max"
        return total
