"""Writing files whole or not at all, and opening arrays without trusting them.

A crash or a full disk never leaves half a file, nor harms the old one.
"""

from __future__ import annotations

import errno
import json
import os
import secrets
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from truepair.errors import InputError, TruepairError

_REMEDIES = {
    errno.ENOSPC: "free space on that disk or write to another one",
    errno.EDQUOT: "free space in your quota or write to another disk",
    errno.ENOENT: "create the folder first",
    errno.ENOTDIR: "choose a path whose parent is a folder",
    errno.EISDIR: "choose a path that is not a folder",
    errno.EACCES: "check the permissions of the folder or write elsewhere",
    errno.EPERM: "check the permissions of the folder or write elsewhere",
    errno.EROFS: "that disk is read-only; write elsewhere",
}


def write_bytes_atomically(path: Path | str, data: bytes, *, overwrite: bool = True) -> None:
    """Write `data` to `path` in one step: readers see the old file or the new one, never a part.

    The bytes go to a temporary file in the same folder, reach the disk, and take the name of `path` last.
    With `overwrite=False` an existing file with other content stays and is an error; equal content is left alone.

    Raises:
        InputError: `overwrite=False` and the file exists with other content.
        TruepairError: the system refused (disk full, no such folder, no permission). The old file is untouched and
            no temporary file stays behind.
    """
    path = Path(path)
    try:
        if not overwrite and path.exists():
            _require_equal(path, data)
            return
        _write_and_rename(path, data)
    except OSError as error:
        remedy = _REMEDIES.get(error.errno or 0, "check the disk and the path")
        raise TruepairError(f"{path} could not be written: {error.strerror or error}; {remedy}") from error


def write_text_atomically(path: Path | str, text: str, *, overwrite: bool = True) -> None:
    """Write `text` as UTF-8 with the line ends it has; otherwise as `write_bytes_atomically`."""
    write_bytes_atomically(path, text.encode("utf-8"), overwrite=overwrite)


def write_json_atomically(path: Path | str, value: Any, *, overwrite: bool = True) -> None:
    """Write `value` as indented UTF-8 JSON with a final newline; otherwise as `write_bytes_atomically`.

    Raises:
        ValueError: `value` holds NaN or infinity, which JSON does not know.
        TypeError: `value` holds something JSON cannot express.
    """
    text = json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False)
    write_text_atomically(path, text + "\n", overwrite=overwrite)


def map_npy(path: Path | str) -> npt.NDArray[Any]:
    """The array of a .npy file, memory-mapped read-only. Archives, pickles and object arrays are refused.

    Raises:
        OSError: the file cannot be read.
        ValueError: it is not a plain .npy file; the message says why. Callers add what they expected.
    """
    try:
        # open_memmap, not np.load: that one also opens zip archives and, where allowed, pickles.
        return np.lib.format.open_memmap(path, mode="r")
    except OSError:
        raise
    except Exception as error:
        # A damaged header raises whatever Python's parser happens to raise: SyntaxError, TokenError, OverflowError, ...
        raise ValueError(str(error)) from error


def _require_equal(path: Path, data: bytes) -> None:
    if path.is_file() and path.stat().st_size == len(data) and path.read_bytes() == data:
        return
    raise InputError(
        f"{path} exists with other content and was left as it is; expected a new file. "
        "Choose another path, or move the old file away if you no longer need it"
    )


def _write_and_rename(path: Path, data: bytes) -> None:
    # A random name, not tempfile.mkstemp: that one gives the final file permissions 0600 whatever the umask says.
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(6)}.tmp")
    try:
        with temporary.open("xb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
