"""Training in float64, for curves that are the same on every processor."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import is_dataclass, replace
from typing import Any

import torch
from torch import Tensor
from torch.nn.modules.module import register_module_forward_pre_hook


@contextmanager
def double_precision() -> Iterator[None]:
    """Networks are made, and read what they are given, in float64.

    In float32 another processor adds in another order; a pair on the border of a division then falls on its other
    side, and an epoch later the curve is another one. In float64 such curves agree to more digits than are compared.
    """
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    hook = register_module_forward_pre_hook(lambda module, given: tuple(in_double(value) for value in given))
    try:
        yield
    finally:
        hook.remove()
        torch.set_default_dtype(before)


def in_double(value: Any) -> Any:
    """A float32 tensor, or those of a batch, in float64; all else as it is."""
    if isinstance(value, Tensor):
        return value.double() if value.dtype == torch.float32 else value
    if is_dataclass(value) and not isinstance(value, type):
        return replace(value, **{name: in_double(part) for name, part in vars(value).items()})
    return value
