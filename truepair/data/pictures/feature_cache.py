"""The one cache of region features: described in parallel, in bounded memory, kept on disk, continued after a kill.

The cache folder is `$TRUEPAIR_CACHE`, else `~/.cache/truepair`; it may be deleted at any time. What versions before
this one kept there has other names and is never read.

The features go straight to a file in the cache folder, block by block; a small JSON file beside it says how far they
are, so that a killed description goes on where it was. Names hold a hash of what is described (`key`). The bytes of a
row depend on its picture alone: two processes at work on the same file write the same and do no harm.

Threads, not processes: on two cores both took the same time for 2,000 photographs, and threads need no guard.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from io import BytesIO
from itertools import islice
from pathlib import Path
from typing import BinaryIO

import numpy as np

from truepair.data.pairs import Array, IntArray
from truepair.data.pictures.descriptor import DESCRIPTOR_SIZE
from truepair.data.pictures.pictures import GRID, Failure, Place, describe
from truepair.errors import TruepairError
from truepair.files import map_npy, write_json_atomically
from truepair.progress import Progress

BLOCK = 4096
_CHUNK = 32
_ROW_SHAPE = (GRID**2, DESCRIPTOR_SIZE)
_ROW_BYTES = GRID**2 * DESCRIPTOR_SIZE * 2
# Counts changes to what the files hold; part of their names.
_RECIPE = 2


@dataclass(frozen=True)
class Described:
    """What became of n pictures.

    Attributes:
        features: (k, 36, 56) float16, memory-mapped: those that could be described, in order.
        rows: (k,) which of the n pictures these are, ascending.
        failures: the others → why.
    """

    features: Array
    rows: IntArray
    failures: dict[int, Failure]


@dataclass
class _State:
    """How far a description is: all pictures before `done` are described or failed."""

    done: int = 0
    failures: dict[int, Failure] = field(default_factory=dict)

    @property
    def good(self) -> int:
        return self.done - len(self.failures)


def describe_all(
    place: Callable[[int], Place], count: int, *, key: str, cache: Path | None = None, progress: bool | None = None
) -> Described:
    """Region features of the pictures 0 … count − 1, from the cache where they are there already.

    Picture k lies at `place(k)`; `key` changes whenever any of the pictures does.
    """
    if not count:
        return Described(np.empty((0, *_ROW_SHAPE), dtype=np.float16), np.empty(0, dtype=np.int64), {})
    named = cache or os.environ.get("TRUEPAIR_CACHE")
    folder = Path(named) if named else Path.home() / ".cache" / "truepair"
    stem = folder / f"features-{key}-{_RECIPE}"
    features, notes = stem.with_suffix(".npy"), stem.with_suffix(".json")
    state = _read_state(notes) if features.exists() else None
    if state is None or state.done != count or not _fits(features, state.good) or _mended(place, state):
        try:
            folder.mkdir(parents=True, exist_ok=True)
            state = _describe_into(features, notes, place, count, progress)
        except OSError as error:
            raise TruepairError(
                f"{folder} cannot take the features of {count:,} pictures ({error.strerror or error}); they need up to "
                f"{count * _ROW_BYTES / 1e6:,.0f} MB. Free some room, or set TRUEPAIR_CACHE to another folder"
            ) from error
    rows = np.setdiff1d(np.arange(count, dtype=np.int64), np.array(list(state.failures), dtype=np.int64))
    described = map_npy(features) if state.good else np.empty((0, *_ROW_SHAPE), dtype=np.float16)
    return Described(described, rows, state.failures)


def _describe_into(
    features: Path, notes: Path, place: Callable[[int], Place], count: int, progress: bool | None
) -> _State:
    part, part_notes = features.with_suffix(".part"), features.with_suffix(".part.json")
    state = _read_state(part_notes)
    start = len(_header(0))
    if state is None or not part.exists() or part.stat().st_size < start + state.good * _ROW_BYTES:
        state = _State()
    part.touch()
    told = Progress(progress).count("describing pictures", count, "pictures")
    with part.open("r+b") as file, told as moved, ThreadPoolExecutor(min(16, os.cpu_count() or 1)) as threads:
        while state.done < count:
            file.seek(start + state.good * _ROW_BYTES)
            _describe_block(file, threads, place, range(state.done, min(state.done + BLOCK, count)), state, moved)
            os.fsync(file.fileno())
            _write_state(part_notes, state)
        file.truncate(start + state.good * _ROW_BYTES)
        file.seek(0)
        file.write(_header(state.good))
        os.fsync(file.fileno())
    _write_state(notes, state)
    try:
        part.replace(features)
    except FileNotFoundError:  # another process described the same pictures and was done first
        if not features.exists():
            raise
    part_notes.unlink(missing_ok=True)
    return state


def _describe_block(
    file: BinaryIO,
    threads: ThreadPoolExecutor,
    place: Callable[[int], Place],
    rows: range,
    state: _State,
    moved: Callable[[int], None],
) -> None:
    """Write the features of a block of pictures at the position of the file; failures go to the state."""

    def work(chunk: range) -> list[Array | Failure]:
        return [describe(place(row)) for row in chunk]

    chunks = [rows[first : first + _CHUNK] for first in range(0, len(rows), _CHUNK)]
    waiting: list[Future[list[Array | Failure]]] = [threads.submit(work, chunk) for chunk in chunks]
    try:
        for chunk, future in zip(chunks, waiting, strict=True):
            for row, result in zip(chunk, future.result(), strict=True):
                if isinstance(result, Failure):
                    state.failures[row] = result
                else:
                    file.write(result.tobytes())
            moved(chunk.stop)
    finally:
        for future in waiting:
            future.cancel()
    file.flush()
    state.done = rows.stop


def _header(rows: int) -> bytes:
    """The header of a .npy file; NumPy leaves room for any number of rows, so that all have one length."""
    buffer = BytesIO()
    header = {"descr": "<f2", "fortran_order": False, "shape": (rows, *_ROW_SHAPE)}
    np.lib.format.write_array_header_1_0(buffer, header)
    return buffer.getvalue()


def _fits(path: Path, rows: int) -> bool:
    try:
        features = map_npy(path) if rows else None
    except (OSError, ValueError):
        return False
    return features is None or (features.shape == (rows, *_ROW_SHAPE) and features.dtype == np.float16)


def _mended(place: Callable[[int], Place], state: _State) -> bool:
    """Whether a file that could not be read last time now can: such failures are no property of the picture."""
    unreadable = (row for row, failure in state.failures.items() if failure.reason == "unreadable-picture")
    found = (describe(place(row)) for row in islice(unreadable, BLOCK))
    return any(not isinstance(result, Failure) or result.reason != "unreadable-picture" for result in found)


def _write_state(path: Path, state: _State) -> None:
    failures = [[row, failure.reason, failure.detail] for row, failure in state.failures.items()]
    write_json_atomically(path, {"done": state.done, "failures": failures})


def _read_state(path: Path) -> _State | None:
    """The state as written; None where there is none, or something else stands in its place."""
    try:
        read = json.loads(path.read_text(encoding="utf-8"))
        failures = {int(row): Failure(str(reason), str(detail)) for row, reason, detail in read["failures"]}
        return _State(int(read["done"]), failures)
    except (OSError, ValueError, TypeError, KeyError):
        return None
