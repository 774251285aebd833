"""The one cache of features: pictures described in parallel, in bounded memory, kept on disk, continued after a kill.

The cache folder is `$TRUEPAIR_CACHE`, else `~/.cache/truepair`; it may be deleted at any time. What versions before
this one kept there has other names and is never read.

The features go straight to a file in the cache folder, block by block; a small JSON file beside it says how far they
are, so that a killed description goes on where it was. Names hold a hash of the pictures and the encoder's identity;
a third file has a digest of each picture, so that those of a split are found when all of a table is asked for, and the
other way round. A fourth one has a digest of each file without its path, and one of its content, so that pictures are
found again in a folder that was moved, or that holds links to them, as a cleaned copy does. The bytes of a row depend
on its picture alone: two processes at work on the same file write the same and do no harm.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, field
from hashlib import blake2b
from io import BytesIO
from itertools import islice
from pathlib import Path
from typing import BinaryIO

import numpy as np

from truepair.data.config import Reading
from truepair.data.pairs import Array, IntArray
from truepair.data.pictures.describing import Places
from truepair.data.pictures.engines import describe_parts
from truepair.data.pictures.known_features import FILE, NOTHING, Digests, KnownFeatures, digests_file, files_file
from truepair.data.pictures.pictures import Failure, Place, content_of, readable
from truepair.encoders.encoder import Encoder
from truepair.errors import TruepairError
from truepair.files import atomic_file, cache_folder, map_npy, write_json_atomically
from truepair.progress import Progress

BLOCK = 512
"""Pictures after which what was done is safe from a kill."""
_MOST_TRIED_AGAIN = 4096


_DEFAULTS = Reading()


@dataclass(frozen=True)
class Described:
    """What became of n pictures.

    Attributes:
        features: (k, R, D) float16, memory-mapped: those that could be described, in order.
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
    place: Places, digests: Digests, encoder: Encoder, reading: Reading = _DEFAULTS, *, files: Digests | None = None
) -> Described:
    """The encoder's features of n pictures, from the cache where they are there already.

    Args:
        place: where picture k lies.
        digests: (n,) 16 bytes of each picture, which change whenever it does.
        reading: its cache, extraction and progress count.
        files: (n,) 16 bytes of the file of each picture, of whatever path; None where these are no files of their own.
    """
    count = len(digests)
    if not count:
        return Described(_nothing(encoder), np.empty(0, dtype=np.int64), {})
    folder = cache_folder(reading.cache)
    stem = folder / f"features-{blake2b(digests.tobytes(), digest_size=16).hexdigest()}-{encoder.identity()}"
    features, notes = Path(f"{stem}.npy"), Path(f"{stem}.json")
    state = _read_state(notes) if features.exists() else None
    if state is None or state.done != count or not _fits(features, state.good, encoder) or _mended(place, state):
        try:
            folder.mkdir(parents=True, exist_ok=True)
            state = _Description(encoder, place, digests, files, reading, features, notes).run()
        except OSError as error:
            raise TruepairError(
                f"{folder} cannot take the features of {count:,} pictures ({error.strerror or error}); they need up to "
                f"{count * _row_bytes(encoder) / 1e6:,.0f} MB. Free some room, or set TRUEPAIR_CACHE to another folder"
            ) from error
    rows = np.setdiff1d(np.arange(count, dtype=np.int64), np.array(list(state.failures), dtype=np.int64))
    described = map_npy(features) if state.good else _nothing(encoder)
    return Described(described, rows, state.failures)


@dataclass(frozen=True)
class _Description:
    """Pictures on their way into a file.

    Attributes:
        features, notes: the files to write, the features and what became of the pictures.
    """

    encoder: Encoder
    place: Places
    digests: Digests
    files: Digests | None
    reading: Reading
    features: Path
    notes: Path

    def run(self) -> _State:
        """Describe all pictures that no other file has, or those after the last that an earlier run kept."""
        count, progress = len(self.digests), Progress(self.reading.progress)
        known = KnownFeatures(self.features.parent, self.encoder, self.digests, self.files, self.content, progress)
        contents = known.contents
        part, part_notes = Path(f"{self.features}.part"), Path(f"{self.features}.part.json")
        state, start, size = _read_state(part_notes), len(_header(0, self.encoder)), _row_bytes(self.encoder)
        if state is None or not part.exists() or part.stat().st_size < start + state.good * size:
            state = _State()
        part.touch()
        told = progress.count(f"describing pictures ({self.encoder.name})", count, "pictures")
        missing = [row for row in range(state.done, count) if row not in known]
        parts = describe_parts(self.encoder, self.place, missing, self.reading.extraction)
        with part.open("r+b") as file, told as moved, closing(parts):
            moved(state.done)
            file.seek(start + state.good * size)
            for described in parts:
                block, good = state.done // BLOCK, iter(range(0, len(described.features), size))
                for row in described.rows:
                    known.copy(range(state.done, row), file)
                    if row not in described.failures:
                        place = next(good)
                        file.write(described.features[place : place + size])
                        contents[row] = self.content(row)  # it was read a moment ago
                    state.done = row + 1
                state.failures |= described.failures
                moved(state.done)
                if state.done // BLOCK > block:
                    _keep(file, part_notes, state)
            known.copy(range(state.done, count), file)
            state.done = count
            file.truncate(start + state.good * size)
            file.seek(0)
            file.write(_header(state.good, self.encoder))
            file.flush()
            os.fsync(file.fileno())
        _write_digests(digests_file(self.features), self.digests)
        if self.files is not None:
            files = b"".join(file + contents.get(row, NOTHING) for row, file in enumerate(self.files.tolist()))
            _write_digests(files_file(self.features), np.frombuffer(files, dtype=FILE))
        _write_state(self.notes, state)
        try:
            part.replace(self.features)
        except FileNotFoundError:  # another process described the same pictures and was done first
            if not self.features.exists():
                raise
        part_notes.unlink(missing_ok=True)
        return state

    def content(self, row: int) -> bytes:
        """The digest of what is in the file of a picture; nothing where pictures are no files."""
        return NOTHING if self.files is None else content_of(self.place(row))


def _write_digests(path: Path, digests: Digests) -> None:
    with atomic_file(path) as temporary, temporary.open("wb") as kept:
        np.save(kept, digests)


def _keep(file: BinaryIO, notes: Path, state: _State) -> None:
    file.flush()
    os.fsync(file.fileno())
    _write_state(notes, state)


def _nothing(encoder: Encoder) -> Array:
    return np.empty((0, encoder.regions, encoder.width), dtype=np.float16)


def _row_bytes(encoder: Encoder) -> int:
    return encoder.regions * encoder.width * 2


def _header(rows: int, encoder: Encoder) -> bytes:
    """The header of a .npy file; NumPy leaves room for any number of rows, so that all have one length."""
    buffer = BytesIO()
    header = {"descr": "<f2", "fortran_order": False, "shape": (rows, encoder.regions, encoder.width)}
    np.lib.format.write_array_header_1_0(buffer, header)
    return buffer.getvalue()


def _fits(path: Path, rows: int, encoder: Encoder) -> bool:
    try:
        features = map_npy(path) if rows else None
    except (OSError, ValueError):
        return False
    expected = (rows, encoder.regions, encoder.width)
    return features is None or (features.shape == expected and features.dtype == np.float16)


def _mended(place: Callable[[int], Place], state: _State) -> bool:
    """Whether a file that could not be read last time now can: such failures are no property of the picture."""
    unreadable = (row for row, failure in state.failures.items() if failure.reason == "unreadable-picture")
    return any(readable(place(row)) for row in islice(unreadable, _MOST_TRIED_AGAIN))


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
