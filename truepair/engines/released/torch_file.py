"""Files of `torch.save` that others wrote: tensors and plain values come out, and nothing in the file is executed.

A pickle can call any function it names. torch's restricted unpickler (`weights_only=True`) calls only what it is told
to know: tensors, and here `argparse.Namespace`, which does nothing but hold attributes. NumPy's scalars and arrays are
taken by stand-ins of this file: NumPy's own unpickling, written for files one trusts, never sees the bytes, and the
files of every NumPy version read alike.
"""

from __future__ import annotations

import argparse
import re
import struct
import tarfile
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from truepair.errors import InputError
from truepair.files import open_file

FORMATS = {"f2": "e", "f4": "f", "f8": "d", "b1": "?", "i1": "b", "i2": "h", "i4": "i", "i8": "q"}
FORMATS |= {f"u{size}": FORMATS[f"i{size}"].upper() for size in (1, 2, 4, 8)}


class NumberKind:
    """Stands in for `numpy.dtype`: a name such as "f8"."""

    def __init__(self, name: Any = None, *_options: Any) -> None:
        self.name = name

    def __setstate__(self, state: Any) -> None:
        pass


class SkippedArray:
    """Stands in for `numpy.ndarray` and what makes one: a value of each training pair, left unread."""

    def __init__(self, *_options: Any) -> None:
        pass

    def __setstate__(self, state: Any) -> None:
        pass


def number(kind: Any = None, data: Any = None, *_options: Any) -> Any:
    """Stands in for `numpy.….scalar`: the Python number, or None for what is not a number."""
    if isinstance(kind, NumberKind) and kind.name in FORMATS and isinstance(data, bytes):
        return struct.unpack("<" + FORMATS[kind.name], data)[0]
    return None


# As pairs (what is called, name in the file), also for Namespace: they come and go without touching what a program that
# uses this package has allowed by itself.
KNOWN: list[Callable[..., Any] | tuple[Callable[..., Any], str]] = [
    (argparse.Namespace, "argparse.Namespace"),
    (NumberKind, "numpy.dtype"),
    (SkippedArray, "numpy.ndarray"),
    *((number, f"numpy.{core}.multiarray.scalar") for core in ("core", "_core")),
    *((SkippedArray, f"numpy.{core}.multiarray._reconstruct") for core in ("core", "_core")),
]


def read_torch_file(path: Path) -> Any:
    """What was saved, with all tensors on the CPU; both formats of `torch.save`.

    Raises:
        InputError: the file cannot be read, is no such file, or names anything beyond tensors and plain values.
    """
    try:
        file = open_file(path)
    except OSError as error:
        raise InputError(f"{path} cannot be read ({error.strerror or error}); check the path") from error
    try:
        with file, torch.serialization.safe_globals(KNOWN), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # torch's remarks on old formats are of no use to the reader of one
            return torch.load(file, map_location="cpu", weights_only=True)
    except Exception as error:
        # A damaged or foreign file raises whatever the unpickler happens to stumble over.
        raise InputError(f"{path}: {_reason(path, error)}") from error


def _reason(path: Path, error: Exception) -> str:
    refused = re.search(r"GLOBAL (\S+) (?:was not an allowed|whose module)", str(error))
    if refused:
        return (
            f"it names {refused[1]}, which loading the file would call; refused, because a checkpoint needs only "
            "tensors, plain values and argparse.Namespace. If you trust it, load it elsewhere and save just its "
            "state dicts again with torch.save"
        )
    if tarfile.is_tarfile(path):
        return "it is a tar archive, not a file of torch.save; if a checkpoint lies inside, unpack it first"
    said = str(error).split("WeightsUnpickler error:")[-1].split("Check the documentation")[0]
    found = " ".join(said.split()).split(". ")[0][:160] or type(error).__name__
    return f"not a whole file of torch.save ({found}); download it again"
