"""The state of a criterion as tensors alone, so that any checkpoint can hold it: torch's, or safetensors."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from truepair.errors import InputError

if TYPE_CHECKING:
    from truepair.loops.criterion import Criterion


def save_criterion(criterion: Criterion) -> dict[str, Tensor]:
    """Name → tensor: memory and notes, pairs seen this epoch, position, and as JSON bytes what it was made with."""
    memory = criterion.memory
    return {
        "made_with": as_bytes(made_with(criterion)),
        "position": torch.tensor([criterion.stage, criterion.epoch, int(criterion.started)]),
        "begun": as_bytes(criterion.begun),
        "seen": criterion.seen.clone(),
        **{f"memory.{name}": values for name, values in memory.tensors().items()},
        **{f"notes.{name}": values for name, values in memory.notes().items()},
    }


def load_criterion(criterion: Criterion, state: dict[str, Tensor]) -> None:
    """Take over what `save_criterion` gave.

    Raises:
        InputError: something is missing, or it is the state of a criterion that was made in another way.
    """
    missing = {"made_with", "position", "begun", "seen"} - set(state)
    if missing:
        raise InputError(f"the state lacks {', '.join(sorted(missing))}; give what state_dict() returned")
    wanted, found = made_with(criterion), from_bytes(state["made_with"])
    for name, value in wanted.items():
        if found.get(name) != value:
            raise InputError(
                f"the state is that of a criterion with {name} {found.get(name)!r}, this one has {value!r}; make it "
                "with the same method, pairs, epochs and options"
            )
    parts = ("memory.", "notes.")
    memory, notes = ({name[len(part) :]: t for name, t in state.items() if name.startswith(part)} for part in parts)
    criterion.memory.restore({name: values.cpu() for name, values in memory.items()}, notes)
    criterion.seen = state["seen"].detach().to("cpu", torch.bool, copy=True)
    criterion.stage, criterion.epoch, started = (int(value) for value in state["position"])
    criterion.started, criterion.begun = bool(started), from_bytes(state["begun"])


def made_with(criterion: Criterion) -> dict[str, Any]:
    """What decides whether two criteria remember the same things; JSON values."""
    made: dict[str, Any] = json.loads(
        json.dumps(
            {
                "method": criterion.method.name,
                "pairs": criterion.memory.count,
                "stages": [stage.epochs for stage in criterion.stages],
                **asdict(criterion.method.config),
            }
        )
    )
    return made


def as_bytes(value: Any) -> Tensor:
    return torch.frombuffer(bytearray(json.dumps(value).encode()), dtype=torch.uint8).clone()


def from_bytes(tensor: Tensor) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(bytes(tensor.cpu().tolist()))
    return found
