"""A step of parameters that is tried and taken back."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from torch import Tensor, nn


@contextmanager
def tried(steps: dict[nn.Parameter, Tensor]) -> Iterator[None]:
    """Parameters moved by these steps within the block, and as they were after it."""
    before = {parameter: parameter.data for parameter in steps}
    try:
        for parameter, step in steps.items():
            parameter.data = parameter.data + step
        yield
    finally:
        for parameter, data in before.items():
            parameter.data = data
