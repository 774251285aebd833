"""Everything a resumed run needs to go on as if it had never stopped, in one file that is replaced atomically."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from truepair.correspondence import CorrespondenceMemory
from truepair.engines.similarity import SimilarityEngine
from truepair.errors import RunFolderError
from truepair.files import options_from, read_tensors, require_like, tensor_bytes, write_bytes_atomically


@dataclass
class Cursor:
    """Where training stands, and the sums of the running epoch. `step` is the next batch of that epoch."""

    stage: int = 0
    epoch: int = 1
    step: int = 0
    loss_sum: float = 0.0
    pairs_seen: int = 0
    scalar_sums: dict[str, float] = field(default_factory=dict)
    epoch_scalars: dict[str, float] = field(default_factory=dict)
    epochs_logged: int = 0
    best_score: float | None = None
    best_epoch: int | None = None
    last_score: float | None = None
    finished: bool = False


@dataclass
class TrainingState:
    """The engine and the auxiliary networks, their optimizer, the memory, and the cursor."""

    engine: SimilarityEngine[Any]
    optimizer: torch.optim.Optimizer
    memory: CorrespondenceMemory
    cursor: Cursor
    auxiliary: torch.nn.Module | None = None  # networks that the method trains beside the engine
    run: str = ""  # digest of the configuration it belongs to

    def save(self, path: Path) -> None:
        """Write the state to one `.safetensors` file, atomically."""
        optimizer = self.optimizer.state_dict()
        parts = {
            "engine": self.engine.state_dict(),
            "auxiliary": self.auxiliary.state_dict() if self.auxiliary else {},
            **{f"optimizer/{index}": entries for index, entries in optimizer["state"].items()},
            "memory": self.memory.tensors(),
            "notes": self.memory.notes(),
        }
        tensors = {f"{part}/{name}": tensor for part, entries in parts.items() for name, tensor in entries.items()}
        described = {"run": self.run, "cursor": asdict(self.cursor), "param_groups": optimizer["param_groups"]}
        write_bytes_atomically(path, tensor_bytes(tensors, described))

    def restore(self, path: Path) -> None:
        """Take over the state of a file that `save` wrote for the same run.

        Raises:
            RunFolderError: the file is missing, damaged, or of another configuration.
        """
        tensors, described = read_tensors(path, "the checkpoint of a run; start a new run", error=RunFolderError)
        try:
            run, cursor, groups = (
                json.loads(value) if name != "run" and isinstance(value, str) else value  # as older versions wrote
                for name, value in ((name, described[name]) for name in ("run", "cursor", "param_groups"))
            )
            cursor = options_from(Cursor, cursor, f"{path}: cursor", error=RunFolderError)
        except (KeyError, ValueError) as error:
            raise RunFolderError(f"{path} is not the checkpoint of a run ({error}); start a new run") from error
        if run != self.run:
            raise RunFolderError(f"{path} belongs to another configuration than the run it lies in; put back its own")
        try:
            for module, names in ((self.engine, ("engine/",)), (self.auxiliary, ("auxiliary/", "companion/"))):
                if module is not None:  # the second was first called companion
                    weights = next(filter(None, (_under(tensors, name) for name in names)), {})
                    require_like(weights, module.state_dict())
                    module.load_state_dict(weights)
            self.optimizer.load_state_dict({"state": _by_index(_under(tensors, "optimizer/")), "param_groups": groups})
            self.memory.restore(_under(tensors, "memory/"), _under(tensors, "notes/"))
        except (RuntimeError, ValueError, KeyError) as error:
            raise RunFolderError(f"{path} belongs to another configuration: {error}") from error
        self.cursor = cursor

    def bytes_on_disk(self) -> int:
        """About what `save` writes once the optimizer has its moments: weights, two moments, memory."""
        weights, beside = (
            sum(tensor.numel() * tensor.element_size() for tensor in module.state_dict().values()) if module else 0
            for module in (self.engine, self.auxiliary)
        )
        return 3 * weights + beside + 4 * sum(values.numel() for values in self.memory.tensors().values())


def _under(tensors: dict[str, Tensor], prefix: str) -> dict[str, Tensor]:
    return {name.removeprefix(prefix): tensor for name, tensor in tensors.items() if name.startswith(prefix)}


def _by_index(tensors: dict[str, Tensor]) -> dict[int, dict[str, Tensor]]:
    entries: dict[int, dict[str, Tensor]] = {}
    for path, tensor in tensors.items():
        index, name = path.split("/", 1)
        entries.setdefault(int(index), {})[name] = tensor
    return entries
