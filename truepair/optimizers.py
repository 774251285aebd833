"""Adam and AdamW of torch, without the import of its compiler.

torch marks methods of an optimizer for `torch.compile` when they are first called, and imports the compiler for that:
seconds at the start of every training, of which eager training uses nothing. Here the same methods are called without
the mark.
"""

from __future__ import annotations

import inspect

import torch


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
