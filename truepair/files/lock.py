"""One process at a time in a folder: a lock that ends with its owner, whatever ends it."""

from __future__ import annotations

import errno
import json
import os
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from truepair.errors import RunFolderError
from truepair.files.writing import leftovers

BETWEEN_TRIES = 0.5  # seconds
_HELD: dict[int, Path] = {}
_UNSUPPORTED = (errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP, errno.EINVAL)


@contextmanager
def locked(folder: Path, path: Path, *, waits: bool = False) -> Iterator[None]:
    """Within the block this process alone works in a folder, and of its threads this one.

    The system's lock (flock) ends with the process, also by a kill. Where a disk knows no locks, the file says who
    holds it: it is taken over from a process of this machine that has ended, while one left by another machine has to
    be removed by hand, which the message says.

    Args:
        path: file for the lock, within the folder; it and its parent are made, and removed afterwards (the parent
            where it is empty).
        waits: until the folder is free, rather than to raise; but not for another machine on a disk that knows no
            locks, where nobody can tell whether that process has ended.

    Raises:
        RunFolderError: another process is in the folder, or nothing may be written there.
    """
    try:
        descriptor = _acquired(folder, path, waits)
    except OSError as error:
        raise RunFolderError(
            f"{folder} cannot be written to: {error.strerror or error}; choose another folder"
        ) from error
    process = os.getpid()
    _HELD[descriptor] = path.resolve()
    try:
        since = datetime.now(UTC).isoformat(timespec="seconds")
        note = json.dumps({"pid": process, "host": socket.gethostname(), "since": since})
        with suppress(OSError):  # a full disk; the note is for messages
            os.ftruncate(descriptor, 0)
            os.pwrite(descriptor, note.encode(), 0)
        yield
    finally:
        if os.getpid() == process:
            del _HELD[descriptor]
            path.unlink(missing_ok=True)  # before the lock ends, so that nobody's file is removed but this one
            with suppress(OSError):  # something else lies in it, as it mostly does
                path.parent.rmdir()
            os.close(descriptor)


def foreign_in(folder: Path, lock: Path, *ours: Path) -> set[Path]:
    """What lies in a folder, and in that of its lock, beside these, `ours`, and what writes cut short left there.

    A RunFolderError where it is no folder, or cannot be read.
    """
    try:
        folders = [path for path in (folder, lock.parent) if path.exists()]
        found = {path for each in folders for path in {*each.iterdir()} - {*leftovers(each)}}
    except NotADirectoryError as error:
        raise RunFolderError(f"{error.filename} is a file; expected a folder. Choose another --out") from error
    except OSError as error:
        raise RunFolderError(f"{folder} cannot be read: {error.strerror}; choose another --out") from error
    return found - {lock, lock.parent, *ours}


def _acquired(folder: Path, path: Path, waits: bool) -> int:
    while True:
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        except FileNotFoundError:  # its last owner removed the empty folder in between
            continue
        try:
            owner, got = _noted(descriptor), _flock(descriptor)
            taken = got is False or (got is None and _may_live(owner, path))
            unknown = got is None and owner.get("host") != socket.gethostname()
            if taken and (unknown or not waits):
                remedy = "" if got is False else f"; if that one has ended, remove {path}"
                known = f"process {owner.get('pid')} on {owner.get('host')} since {owner.get('since')}"
                raise RunFolderError(
                    f"{folder} is in use by {known if owner else 'another process'}; nothing was changed. Wait until "
                    f"that process has ended, or choose another folder{remedy}"
                )
            with suppress(FileNotFoundError):  # its last owner removed the file after it was opened here
                if not taken and os.path.samestat(os.fstat(descriptor), path.stat()):
                    return descriptor
        except BaseException:
            os.close(descriptor)
            raise
        os.close(descriptor)
        if taken:
            time.sleep(BETWEEN_TRIES)


def _flock(descriptor: int) -> bool | None:
    """Whether the lock was free and is now ours; None where there are no locks."""
    try:
        import fcntl
    except ImportError:
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError as error:
        if error.errno in _UNSUPPORTED:
            return None
        raise
    return True


def _noted(descriptor: int) -> dict[str, Any]:
    try:
        note = json.loads(os.pread(descriptor, 1000, 0))
    except ValueError:
        return {}
    return note if isinstance(note, dict) else {}


def _may_live(owner: dict[str, Any], path: Path) -> bool:
    """Whether the process of a note may still be at work; one of another machine always may."""
    number = owner.get("pid")
    if not isinstance(number, int) or number <= 0:
        return False
    if owner.get("host") != socket.gethostname():
        return True
    if number == os.getpid():
        return path.resolve() in _HELD.values()
    try:
        os.kill(number, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except OSError:
        pass  # not ours to signal, but there
    return True


def _let_go() -> None:
    """In a process forked from the owner, such as one that prepares batches: the lock is not to outlive the owner."""
    for descriptor in _HELD:
        os.close(descriptor)
    _HELD.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_let_go)
