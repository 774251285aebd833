"""Tells a file from another one that took its place."""

from __future__ import annotations

from pathlib import Path


def file_at(path: Path) -> tuple[int, int] | None:
    """The device and number of the file that stands there now; None where there is none."""
    try:
        told = path.stat()
    except OSError:
        return None
    return told.st_dev, told.st_ino


def state_at(path: Path) -> tuple[int, ...] | None:
    """The same with its size and the time of the last write: it differs, too, where the file was written over."""
    try:
        told = path.stat()
    except OSError:
        return None
    return told.st_dev, told.st_ino, told.st_size, told.st_mtime_ns
