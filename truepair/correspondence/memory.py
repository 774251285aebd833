"""`CorrespondenceMemory`: what a method remembers about every pair, keyed by pair id."""

from __future__ import annotations

from dataclasses import dataclass, field

import torch
from torch import Tensor

from truepair.errors import InputError


@dataclass(frozen=True)
class GivenClasses:
    """What the data say about the classes of N pairs, right or wrong: `labels` (N,) int64, each below `count`."""

    labels: Tensor
    count: int

    def one_hot(self) -> Tensor:
        """(N, K) float32."""
        return torch.nn.functional.one_hot(self.labels, self.count).float()


@dataclass
class CorrespondenceMemory:
    """Named per-pair values of N pairs, float32 on the CPU: labels, probabilities, uncertainty, …

    Values are written by pair id, never by position in an epoch, so a sampler that pads, repeats or skips ids cannot
    corrupt them. The memory is saved in every checkpoint and exported to `pairs.parquet`.

    Attributes:
        classes: the classes that the pairs come with, for methods that learn from them; given, never written.
        trusted: (N,) bool, the pairs that are known to match, for methods that learn from them; likewise.
        scores: (N,) float32, how well each pair matches by somebody else's model, for methods that read it; likewise.
    """

    count: int
    classes: GivenClasses | None = None
    trusted: Tensor | None = None
    scores: Tensor | None = None
    _values: dict[str, Tensor] = field(default_factory=dict)
    _notes: dict[str, Tensor] = field(default_factory=dict)

    def __contains__(self, name: str) -> bool:
        return name in self._values

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self._values)

    def register(self, name: str, initial: float | Tensor) -> None:
        """Add a field of N equal values, or of the given ones, (N, …); a field that exists is left as it is."""
        if name not in self._values:
            if isinstance(initial, Tensor):
                self._values[name] = initial.to("cpu", torch.float32, copy=True)
            else:
                self._values[name] = torch.full((self.count,), initial, dtype=torch.float32)

    def note(self, name: str, value: Tensor) -> None:
        """Keep a tensor that is not one value a pair, of any shape, until another one takes its place."""
        self._notes[name] = value.detach().cpu().clone()

    def forget(self, name: str) -> None:
        """As if it had never been noted; nothing where it was not."""
        self._notes.pop(name, None)

    def has_noted(self, name: str) -> bool:
        return name in self._notes

    def noted(self, name: str) -> Tensor:
        """The tensor that `note` kept last under this name."""
        return self._notes[name]

    def read(self, name: str, ids: Tensor | None = None) -> Tensor:
        """A copy of the values of the given pair ids, (len(ids), …), or of all pairs, (N, …)."""
        values = self._values[name]
        return values.clone() if ids is None else values[ids.cpu()]

    def write(self, name: str, ids: Tensor | None, values: Tensor) -> None:
        """Replace the values of the given pair ids (of all pairs when None).

        Raises:
            InputError: an id outside 0 … N−1, another number of values than ids, or a value that is not finite.
        """
        where = torch.arange(self.count) if ids is None else ids.cpu()
        new = values.detach().to("cpu", torch.float32)
        expected = (*where.shape, *self._values[name].shape[1:])
        if new.shape != expected:
            raise InputError(
                f"memory field {name!r}: {tuple(new.shape)} values for {len(where)} pair ids; expected {expected}"
            )
        if len(where) and (int(where.min()) < 0 or int(where.max()) >= self.count):
            raise InputError(f"memory field {name!r}: a pair id lies outside 0 … {self.count - 1}")
        if not bool(torch.isfinite(new).all()):
            odd = tuple((~torch.isfinite(new)).nonzero()[0].tolist())
            raise InputError(f"memory field {name!r}: the value of pair {int(where[odd[0]])} is {new[odd].item()}")
        self._values[name][where] = new

    def tensors(self) -> dict[str, Tensor]:
        """All fields for a checkpoint or an export: name → (N, …) float32 (copies)."""
        return {name: values.clone() for name, values in self._values.items()}

    def notes(self) -> dict[str, Tensor]:
        """All notes for a checkpoint (copies)."""
        return {name: value.clone() for name, value in self._notes.items()}

    def restore(self, tensors: dict[str, Tensor], notes: dict[str, Tensor] | None = None) -> None:
        """Take over the fields and notes of a checkpoint.

        Raises:
            InputError: a field is missing or of another length.
        """
        for name in self._values:
            expected = tuple(self._values[name].shape)
            if name not in tensors or tuple(tensors[name].shape) != expected:
                found = tuple(tensors[name].shape) if name in tensors else "nothing"
                raise InputError(f"memory field {name!r}: the checkpoint holds {found}; expected {expected}")
            self._values[name] = tensors[name].clone()
        self._notes = {name: value.clone() for name, value in (notes or {}).items()}
