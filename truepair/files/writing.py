"""Writing files whole or not at all: a crash or a full disk never leaves half a file, nor harms the old one."""

from __future__ import annotations

import errno
import json
import os
import re
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from truepair.errors import InputError, TruepairError

_TEMPORARY = re.compile(r"\..+\.[0-9a-f]+\.tmp")

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
    with writing(path):
        if not overwrite and path.exists():
            if path.is_file() and path.stat().st_size == len(data) and path.read_bytes() == data:
                return
            raise InputError(
                f"{path} exists with other content and was left as it is; expected a new file. "
                "Choose another path, or move the old file away if you no longer need it"
            )
        with atomic_file(path) as temporary, temporary.open("xb") as file:
            file.write(data)


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


@contextmanager
def atomic_file(path: Path | str) -> Iterator[Path]:
    """Yields a temporary path in the same folder; what is written there takes the name of `path` when the block ends.

    For files that another library writes, or that are too large for the memory. An error within the block goes through
    as it is (`writing` is there for those of the disk); the old file is untouched then, and no temporary file stays.
    """
    path = Path(path)
    temporary = temporary_name(path)
    try:
        yield temporary
        with writing(path):
            with temporary.open("r+b") as file:
                os.fsync(file.fileno())
            temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


@contextmanager
def writing(path: Path | str) -> Iterator[None]:
    """Turns what the system refuses within the block into a TruepairError: which file could not be written, and why."""
    try:
        yield
    except OSError as error:
        remedy = _REMEDIES.get(error.errno or 0, "check the disk and the path")
        raise TruepairError(f"{path} could not be written: {error.strerror or error}; {remedy}") from error


def link_or_copy(path: Path, target: Path) -> None:
    """A hard link to a file where the disk allows it, else a copy; the folders above the target are made. A target that
    is this file already stays.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    try:
        os.link(path.resolve(), target)
    except OSError:
        if not (target.exists() and target.samefile(path)):
            shutil.copyfile(path, target)


def temporary_name(path: Path) -> Path:
    """A name beside `path` for what will take its place; `clear_leftovers` knows such names."""
    # A random name, not tempfile.mkstemp: that one gives the final file permissions 0600 whatever the umask says.
    return path.with_name(f".{path.name}.{secrets.token_hex(6)}.tmp")


def leftovers(folder: Path) -> list[Path]:
    """What writes that a kill cut short left in a folder; nothing where it cannot be read."""
    try:
        return [path for path in folder.iterdir() if _TEMPORARY.fullmatch(path.name)]
    except OSError:
        return []


def clear_leftovers(*folders: Path) -> None:
    """Remove them, as the process that holds the lock of the folders may: to others they may be files in the making."""
    for path in (path for folder in folders for path in leftovers(folder)):
        with writing(path):
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path)
            else:
                path.unlink(missing_ok=True)
