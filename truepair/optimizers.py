"""Adam and AdamW of torch, without the import of its compiler, and on a processor with fewer calls for small networks.

torch marks methods of an optimizer for `torch.compile` when they are first called, and imports the compiler for that:
seconds at the start of every training, of which eager training uses nothing. Here the same methods are called without
the mark.

On a processor torch takes one parameter after the other. To take each operation for all of them at once (`foreach`)
gives the same numbers with fewer calls, which is faster as long as they are few: what one operation wrote is still in
the processor's cache for the next one (`benchmarks/bench_optimizer.py`).
"""

from __future__ import annotations

import inspect
from collections.abc import Iterable

import torch
from torch import Tensor

MOST_AT_ONCE = 2**22
"""Numbers in all parameters together, 16 MiB in float32, that are stepped all at once."""


class _Unmarked(torch.optim.Optimizer):
    """The bookkeeping of an optimizer as torch wrote it, below its decorators."""

    add_param_group = inspect.unwrap(torch.optim.Optimizer.add_param_group)
    load_state_dict = inspect.unwrap(torch.optim.Optimizer.load_state_dict)
    state_dict = inspect.unwrap(torch.optim.Optimizer.state_dict)
    zero_grad = inspect.unwrap(torch.optim.Optimizer.zero_grad)


class Adam(_Unmarked, torch.optim.Adam):
    """`torch.optim.Adam`, number by number."""

    step = torch.no_grad()(inspect.unwrap(torch.optim.Adam.step))


class AdamW(_Unmarked, torch.optim.AdamW):
    """`torch.optim.AdamW`, number by number."""

    step = torch.no_grad()(inspect.unwrap(torch.optim.AdamW.step))


def all_at_once(parameters: Iterable[Tensor]) -> bool | None:
    """The option `foreach` of an optimizer for these; None, which leaves it to torch, where they are many or not on a
    processor.
    """
    known = [*parameters]
    small = sum(values.numel() for values in known) <= MOST_AT_ONCE
    return True if small and all(values.device.type == "cpu" for values in known) else None
