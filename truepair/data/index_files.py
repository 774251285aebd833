"""The field's index files: one whole number an entry, in a plain .npy file, or in a JSON list as MRL has them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np

from truepair.data.pairs import Array, IntArray
from truepair.errors import InputError
from truepair.files import map_npy, read_file, write_bytes_atomically


def write_index(path: Path | str, index: IntArray) -> None:
    """Write an index as an int64 .npy file; an existing file with other content is left, and an InputError."""
    buffer = BytesIO()
    np.save(buffer, index, allow_pickle=False)
    write_bytes_atomically(path, buffer.getvalue(), overwrite=False)


def read_index(
    path: Path, expected: str, *, lengths: Sequence[int], below: int, what: str, made_for: str, lists: bool = False
) -> IntArray:
    """The index of a file: of one of the lengths, every entry in [0, below).

    Args:
        lists: whether a .json file is one of lists, as MRL has them.
        expected, what, made_for: for messages: what the file should hold, what an entry numbers ("image"), and which
            file to use instead.

    Raises:
        InputError: it is none; the message names file and row.
    """
    try:
        index = _read_json(path, expected) if lists and path.suffix == ".json" else map_npy(path)
    except OSError as error:
        raise InputError(f"{path} cannot be read ({error.strerror or error}); {expected}. Check the path") from error
    except ValueError as error:
        raise InputError(
            f"{path} is not a plain .npy file ({error}); {expected}. "
            "Write it with np.save(path, index, allow_pickle=False), index of type int64"
        ) from error
    if index.dtype.kind not in "iu" or index.ndim != 1:
        raise InputError(
            f"{path} holds {index.dtype} of shape {index.shape}; {expected}. "
            "Convert it with np.save(path, np.load(path).astype(np.int64).ravel()), or write it again"
        )
    if len(index) not in lengths:
        raise InputError(f"{path} has {len(index)} entries; {expected}. Use {made_for}")
    outside = np.flatnonzero((index < 0) | (index >= below))
    if len(outside):
        row = int(outside[0])
        raise InputError(
            f"{path}, row {row} (from 0): the {what} number is {index[row]}; {expected}. "
            f"{len(outside)} rows are out of range: use {made_for}"
        )
    return index.astype(np.int64)


def _read_json(path: Path, expected: str) -> Array:
    """The numbers of a list, or those of several lists (one a modality) that agree."""
    try:
        content = json.loads(read_file(path))
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path} is not JSON ({error}); {expected}. Copy or download the file again") from error
    lists = content if isinstance(content, list) and content and isinstance(content[0], list) else [content]
    first, *others = (_numbers(path, entry, expected) for entry in lists)
    for modality, other in enumerate(others, start=1):
        if len(other) != len(first):
            raise InputError(f"{path}: list 0 has {len(first)} entries and list {modality} {len(other)}; {expected}")
        differ = np.flatnonzero(first != other)
        if len(differ):
            row = int(differ[0])
            raise InputError(
                f"{path}, row {row} (from 0): list 0 says {first[row]} and list {modality} {other[row]}; expected one "
                f"class a pair. {len(differ)} rows differ, as where noise was drawn for each modality on its own: keep "
                "one list in the file"
            )
    return first


def _numbers(path: Path, entries: Any, expected: str) -> IntArray:
    if not isinstance(entries, list):
        raise InputError(f"{path} holds {type(entries).__name__} where a list should be; {expected}")
    for row, entry in enumerate(entries):
        if type(entry) is not int or abs(entry) >= 2**31:
            raise InputError(f"{path}, row {row} (from 0): found {str(entry)[:40]!r}; {expected}. Repair the entry")
    return np.array(entries, dtype=np.int64)
