"""Tensors in .safetensors files with a digest inside, so that flipped bits are noticed."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from truepair.errors import InputError, TruepairError
from truepair.files.reading import json_object, open_file, reason

if TYPE_CHECKING:
    from torch import Tensor

_KEY, _DIGEST = "truepair", "sha256"


def tensor_bytes(tensors: dict[str, Any], described: dict[str, Any] | None = None) -> bytes:
    """A .safetensors file of tensors or arrays, with JSON values beside them: for the same values the same bytes.

    Tensors that share memory, as tied weights do, are written once for each name.
    """
    import torch
    from safetensors.torch import save

    held = apart({name: torch.as_tensor(values).detach().cpu().contiguous() for name, values in tensors.items()})
    described = described or {}
    # One key: the library writes several in any order.
    return save(held, metadata={_KEY: json.dumps({**described, _DIGEST: _digest(held, described)})})


def apart(tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    """The same values, no two tensors in the same memory: safetensors refuses to write tensors that share it."""
    found, used = {}, set[int]()
    for name, tensor in tensors.items():
        place = tensor.untyped_storage().data_ptr()
        found[name] = tensor.clone() if place in used and tensor.numel() else tensor
        used.add(place)
    return found


def read_tensors(
    path: Path, expected: str, *, error: type[TruepairError] = InputError
) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """The tensors of a file of `tensor_bytes`, or of an older version, which had no digest, and what describes them.

    Raises `error` where there is none; `expected` says what the file should be, with the remedy.
    """
    from safetensors import SafetensorError, safe_open

    try:
        open_file(path).close()
        with safe_open(path, framework="pt") as file:
            metadata: dict[str, Any] = file.metadata() or {}
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (not a dict)
        described = json_object(metadata[_KEY].encode()) if _KEY in metadata else metadata
        digest = described.pop(_DIGEST, None)
        if digest is not None and digest != _digest(tensors, described):
            raise ValueError("its bytes are not those that were written: its digest differs")
    except (OSError, SafetensorError, ValueError, RecursionError) as cause:
        raise error(f"{path} cannot be read ({reason(cause)}); expected {expected}") from cause
    return tensors, described


def _digest(tensors: dict[str, Tensor], described: dict[str, Any]) -> str:
    import torch

    found = hashlib.sha256(json.dumps(described, sort_keys=True).encode())
    for name in sorted(tensors):
        tensor = tensors[name]
        found.update(f"\0{name} {tensor.dtype} {tuple(tensor.shape)}\0".encode())
        if tensor.numel():
            found.update(tensor.reshape(-1).view(torch.uint8).numpy().data)
    return found.hexdigest()


def require_like(tensors: dict[str, Tensor], wanted: dict[str, Tensor]) -> None:
    """Raise ValueError for the first tensor that is not of the name, shape and type wanted."""
    for name in sorted({*tensors, *wanted}):
        found, asked = (
            f"{held[name].dtype} {tuple(held[name].shape)}".removeprefix("torch.") if name in held else "nothing"
            for held in (tensors, wanted)
        )
        if found != asked:
            raise ValueError(f"{name} is {found}; expected {asked}")
