"""Reading what others may have damaged: regular files alone, JSON of one shape, options of the right types."""

from __future__ import annotations

import errno
import json
import math
import os
import stat
import types
from dataclasses import MISSING, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from truepair.errors import InputError, TruepairError

if TYPE_CHECKING:
    import numpy.typing as npt

_T = TypeVar("_T")
_LARGEST = 2**63 - 1


def open_file(path: Path | str) -> BinaryIO:
    """A regular file, open for reading.

    Raises:
        OSError: it cannot be opened, or is none: a named pipe, a socket or a device would be waited for without end.
    """
    descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    mode = os.fstat(descriptor).st_mode
    if stat.S_ISREG(mode):
        return os.fdopen(descriptor, "rb")
    os.close(descriptor)
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    raise OSError(errno.EINVAL, "It is a pipe, a socket or a device, not a file", str(path))


def require_file(path: Path | Any) -> None:
    """Refuse a path of this machine that is there, but no regular file; raises OSError as `open_file`."""
    if isinstance(path, Path):
        open_file(path).close()


def read_file(path: Path | str) -> bytes:
    """All bytes of a regular file; raises OSError as `open_file`."""
    with open_file(path) as file:
        return file.read()


def map_npy(path: Path | str) -> npt.NDArray[Any]:
    """The array of a .npy file, memory-mapped read-only. Archives, pickles and object arrays are refused.

    Raises:
        OSError: the file cannot be read.
        ValueError: it is not a plain .npy file; the message says why. Callers add what they expected.
    """
    import numpy as np

    open_file(path).close()
    try:
        # open_memmap, not np.load: that one also opens zip archives and, where allowed, pickles.
        return np.lib.format.open_memmap(path, mode="r")
    except OSError:
        raise
    except Exception as error:
        # A damaged header raises whatever Python's parser happens to raise: SyntaxError, TokenError, OverflowError, ...
        raise ValueError(str(error)) from error


def read_json_object(path: Path, expected: str, *, error: type[TruepairError] = InputError) -> dict[str, Any]:
    """The object of a JSON file; raises `error` where it holds none, which says what was `expected` there (such as "the
    figures of a finished run").
    """
    try:
        return json_object(read_file(path))
    except (OSError, ValueError, RecursionError) as cause:
        raise error(f"{path} cannot be read ({reason(cause)}); expected {expected}. Restore it from a copy") from cause


def read_json_lines(path: Path, expected: str, *, error: type[TruepairError] = InputError) -> list[dict[str, Any]]:
    """The objects of a file of JSON lines; of one that is being written the last line may be cut, and is left out.

    Raises `error` as `read_json_object`.
    """
    records: list[dict[str, Any]] = []
    try:
        for line in read_file(path).split(b"\n")[:-1]:
            records.append(json_object(line))
    except (OSError, ValueError, RecursionError) as cause:
        place = f"{path}, line {len(records) + 1}"
        raise error(f"{place} cannot be read ({reason(cause)}); expected {expected}. Restore it from a copy") from cause
    return records


def reason(cause: BaseException) -> str:
    """Why reading failed, for a message."""
    return (cause.strerror if isinstance(cause, OSError) else None) or str(cause) or type(cause).__name__


def json_object(data: bytes) -> dict[str, Any]:
    """The object that JSON text holds; raises ValueError (or RecursionError) where it holds something else."""

    def refuse(name: str) -> None:
        raise ValueError(f"{name} is no JSON")

    value = json.loads(data, parse_constant=refuse)
    if not isinstance(value, dict):
        raise ValueError(f"it holds {_shown(value)}, not an object")
    return value


def options_from(kind: type[_T], values: Any, place: str, *, error: type[TruepairError] = InputError) -> _T:
    """A dataclass of options out of what JSON gave: lists become tuples, missing options keep their defaults.

    Args:
        place: what messages call the object, such as "config.json: training".

    Raises:
        error: not an object, an option is unknown or missing, or has a value of another type, or none that is finite.
        InputError: a value is out of range, as the dataclass itself says.
    """
    if not isinstance(values, dict):
        raise error(f"{place} is {_shown(values)}; expected an object. Restore the file from a copy")
    options = [option for option in fields(kind) if option.init]  # type: ignore[arg-type]
    for name in values:
        if name not in {option.name for option in options}:
            raise error(f"{place} has {name!r}, which this version of truepair does not know; use that which wrote it")
    for option in options:
        if option.name not in values and option.default is MISSING and option.default_factory is MISSING:
            raise error(f"{place} lacks {option.name!r}; restore the file from a copy")
    given = {name: tuple(value) if isinstance(value, list) else value for name, value in values.items()}
    check_values(kind, given, place, error=error)
    return kind(**given)


def check_values(
    kind: type[Any], values: dict[str, Any], place: str, *, error: type[TruepairError] = InputError
) -> None:
    """Raise `error` for a value that is not of the type which its field of a dataclass declares, or not finite."""
    hints = get_type_hints(kind)
    for name, value in values.items():
        if name in hints and not _fits(value, hints[name]):
            expected = getattr(hints[name], "__name__", None) or str(hints[name]).replace("typing.", "")
            raise error(f"{place}: {name} is {_shown(value)}; expected {expected}")


def _fits(value: Any, hint: Any) -> bool:
    origin, parts = get_origin(hint), get_args(hint)
    if origin in (Union, types.UnionType):
        return any(_fits(value, part) for part in parts)
    if origin is Literal:
        return value in parts
    if origin is tuple:
        return isinstance(value, tuple) and all(_fits(item, parts[0]) for item in value)
    if hint is float:
        return type(value) in (int, float) and abs(value) < math.inf and math.isfinite(value)
    if hint is int:
        return type(value) is int and abs(value) <= _LARGEST
    if hint is str:
        return isinstance(value, str) and "\0" not in value
    if hint in (bool, type(None)):
        return isinstance(value, hint)
    return True


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}…"
