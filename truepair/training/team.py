"""The processes that train one model together, as `torchrun` starts them; where nothing did, there is one.

A batch is shared out by its pieces (`pieces.py`). Every process encodes its own and tells the others the encodings, so
that each has the similarities of the whole batch: in-batch negatives, labels and what is remembered of every pair are
those of one process, whatever the method. Gradients of the encoders are added up; all else is computed everywhere
alike. The first process alone scores, writes and shows; the others hear of it.
"""

from __future__ import annotations

import atexit
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, TypeVar

import torch
import torch.distributed as dist
from torch import Tensor, nn

from truepair.errors import InputError, TrainingError
from truepair.training.trees import floats_of, tensors_of, with_floats

T = TypeVar("T")
PATIENCE = timedelta(days=2)
"""Longer than the first process scores or reads data while the others wait."""
_CPU = torch.device("cpu")


@dataclass(frozen=True)
class Team:
    """`size` processes, of which this one is number `rank`, the first 0."""

    rank: int = 0
    size: int = 1

    @classmethod
    def joined(cls) -> Team:
        """That of torchrun's environment, or of a process group that the program has made; else this process alone."""
        if not dist.is_available():
            return cls()
        if not dist.is_initialized():
            if int(os.environ.get("WORLD_SIZE", "1")) < 2:
                return cls()
            # Its functions have the group there is at their import as a default and would keep it beyond `leave`: a
            # thread of it that frees a tensor while Python ends aborts the process.
            import torch.distributed.nn.functional

            kinds = "cpu:gloo,cuda:nccl" if torch.cuda.is_available() else "gloo"
            dist.init_process_group(kinds, timeout=PATIENCE)
            atexit.register(leave)
        return cls(dist.get_rank(), dist.get_world_size())

    @property
    def leads(self) -> bool:
        return self.rank == 0

    def device(self, device: torch.device) -> torch.device:
        """The device of this process: of several GPUs its own."""
        if self.size == 1 or device.type != "cuda" or device.index is not None:
            return device
        own = torch.device("cuda", int(os.environ.get("LOCAL_RANK", "0")))
        torch.cuda.set_device(own)
        return own

    def check(self, batch_size: int, piece_size: int | None) -> None:
        """Raises InputError: a batch does not have a piece for every process."""
        if self.size == 1:
            return
        most = max(1, batch_size // self.size)
        if piece_size is None or -(-batch_size // piece_size) < self.size:
            found = "is not given" if piece_size is None else f"is {piece_size}"
            raise InputError(
                f"piece_size {found}; {self.size} processes share a batch of {batch_size} by its pieces: give "
                f"--piece-size {most} or less"
            )

    def owns(self, piece: int) -> bool:
        return piece % self.size == self.rank

    def told(self, compute: Callable[[], T]) -> T:
        """What the first process computes, here as well."""
        found: T = self._broadcast(compute() if self.leads else None, 0)
        return found

    def any(self, here: bool) -> bool:
        """Whether it is so in one of the processes."""
        if self.size == 1:
            return here
        flag = torch.tensor(int(here))
        with reached():
            dist.all_reduce(flag, dist.ReduceOp.MAX)
        return bool(flag)

    @contextmanager
    def first_before_the_others(self) -> Iterator[None]:
        """The first process goes through the block alone, then all others at once: they find what it left on disk."""
        if not self.leads:
            self.told(lambda: None)
        yield
        if self.leads:
            self.told(lambda: None)

    def exchanged(self, made: Sequence[Any], device: torch.device) -> list[Any]:
        """The encodings of all pieces, in the same order.

        Args:
            made: tensors, or tuples, lists and dataclasses of them; None for the pieces of others.
            device: of their floats. All other tensors are on the CPU.
        """
        if self.size == 1:
            return list(made)
        outlines: dict[int, tuple[Any, list[tuple[torch.Size, torch.dtype]]]] = {}
        for source in range(self.size):
            outlines |= self._broadcast({n: outline(tree) for n, tree in enumerate(made) if self.owns(n)}, source)
        found = []
        for number, tree in enumerate(made):
            hollow, shapes = outlines[number]
            if self.owns(number):
                floats = [tensor.contiguous() for tensor in floats_of(tree)]
            else:
                floats = [torch.empty(shape, dtype=dtype, device=device) for shape, dtype in shapes]
            for tensor in floats:
                with reached():
                    dist.broadcast(tensor, number % self.size)
            found.append(with_floats(hollow, iter(floats)))
        return found

    def add_gradients(self, parameters: Sequence[nn.Parameter]) -> None:
        """Each gradient becomes the sum of what the processes have of it; one that none has stays None."""
        if self.size == 1:
            return
        there = torch.tensor([int(parameter.grad is not None) for parameter in parameters])
        with reached():
            dist.all_reduce(there, dist.ReduceOp.MAX)
        kinds: dict[tuple[torch.dtype, torch.device], list[nn.Parameter]] = {}
        for parameter, somewhere in zip(parameters, there.tolist(), strict=True):
            if somewhere:
                kinds.setdefault((parameter.dtype, parameter.device), []).append(parameter)
        for alike in kinds.values():  # one message for all of a kind
            parts = [p.grad if p.grad is not None else torch.zeros_like(p) for p in alike]
            flat = torch.cat([part.flatten() for part in parts])
            with reached():
                dist.all_reduce(flat)
            totals = torch.split(flat, [part.numel() for part in parts])
            for parameter, total in zip(alike, totals, strict=True):
                parameter.grad = total.view_as(parameter).clone()

    def agree(self, tensors: dict[str, Tensor]) -> None:
        """Give all tensors the values that the first process has, in place: two machines may round differently."""
        if self.size == 1:
            return
        for name in sorted(tensors):
            sent = tensors[name].contiguous()
            with reached():
                dist.broadcast(sent, 0)
            if sent is not tensors[name]:
                tensors[name].copy_(sent)

    def _broadcast(self, value: Any, source: int) -> Any:
        if self.size == 1:
            return value
        held = [value]
        with reached():
            dist.broadcast_object_list(held, source, device=_CPU)
        return held[0]


def outline(tree: Any) -> tuple[Any, list[tuple[torch.Size, torch.dtype]]]:
    """Encodings without their floats, and the shapes of these."""
    floats = floats_of(tree)
    hollow = with_floats(tree, (torch.empty(0) for _ in floats))
    if any(tensor.device != _CPU for tensor in tensors_of(hollow)):
        raise InputError("encodings of this engine hold more than floats on the GPU; train it in one process")
    return hollow, [(tensor.shape, tensor.dtype) for tensor in floats]


@contextmanager
def reached() -> Iterator[None]:
    """A TrainingError where another process is gone."""
    try:
        yield
    except RuntimeError as error:
        raise TrainingError(
            "another process of this training has ended; it says why. What is in the run folder is sound: start all "
            "of them again with --resume"
        ) from error


def leave() -> None:
    if dist.is_initialized():
        dist.destroy_process_group()
