"""Features that other files of the cache have already: the same pictures, described as part of another set."""

from __future__ import annotations

import json
from collections.abc import Callable, Container
from pathlib import Path
from typing import BinaryIO

import numpy as np
import numpy.typing as npt

from truepair.data.pairs import Array
from truepair.encoders.encoder import Encoder
from truepair.files import map_npy, read_file
from truepair.progress import Progress

Digests = npt.NDArray[np.void]
DIGEST = np.dtype("V16")
"""16 bytes a picture."""
FILE = np.dtype("V32")
"""The digest of a file, and the one of what is in it."""
NOTHING = bytes(16)
"""In place of the digest of a content that was not read."""


def digests_file(features: Path) -> Path:
    return _beside(features, "digests")


def files_file(features: Path) -> Path:
    """Of the files themselves, whatever their paths: they are found again where they were moved or linked to."""
    return _beside(features, "files")


def _beside(features: Path, what: str) -> Path:
    return features.with_name(f"{features.name.removesuffix('.npy')}.{what}.npy")


class KnownFeatures:
    """Rows of other files in a cache folder, by the pictures' digests, else by those of their files. A file that is
    damaged has none.

    Of another path a file counts as the same if its content does, too: a new file may have the number of one that was
    deleted, and its size and time as well, where these come from an archive.

    Args:
        files: (n,) digests of the files of whatever path; None where pictures are no files of their own.
        content: of a picture by its row, 16 bytes.
        told: of the contents that are read.

    Attributes:
        contents: row → digest of the content, of the known rows.
    """

    def __init__(
        self,
        folder: Path,
        encoder: Encoder,
        digests: Digests,
        files: Digests | None,
        content: Callable[[int], bytes],
        told: Progress,
    ) -> None:
        self.contents: dict[int, bytes] = {}
        self._found: dict[int, tuple[Array, int]] = {}
        paths = sorted(folder.glob(f"features-{'?' * 32}-{encoder.identity()}.npy"))
        wanted = _rows_by_digest(digests, self._found)
        for path in paths:
            for digest, file, features, place in _rows_of(path, encoder):
                for row in wanted.pop(digest, ()):
                    self._found[row], self.contents[row] = (features, place), file[16:]
        wanted = {} if files is None else _rows_by_digest(files, self._found)
        maybe: dict[int, dict[bytes, tuple[Array, int]]] = {}
        for path in paths if wanted else ():
            for _, file, features, place in _rows_of(path, encoder):
                for row in () if file[16:] == NOTHING else wanted.get(file[:16], ()):
                    maybe.setdefault(row, {})[file[16:]] = features, place
        with told.count("comparing pictures with described ones", len(maybe), "pictures") as moved:
            for done, (row, known) in enumerate(maybe.items(), start=1):
                read = content(row)
                if read in known:
                    self._found[row], self.contents[row] = known[read], read
                moved(done)

    def __contains__(self, row: int) -> bool:
        return row in self._found

    def copy(self, rows: range, file: BinaryIO) -> None:
        """Write the features of known rows."""
        for row in rows:
            features, place = self._found[row]
            file.write(features[place].tobytes())


def _rows_by_digest(digests: Digests, found: Container[int]) -> dict[bytes, list[int]]:
    """The rows that are not found yet."""
    wanted: dict[bytes, list[int]] = {}
    for row, digest in enumerate(digests.tolist()):
        if row not in found:
            wanted.setdefault(digest, []).append(row)
    return wanted


def _rows_of(path: Path, encoder: Encoder) -> list[tuple[bytes, bytes, Array, int]]:
    """(digest, those of file and content, array, row of the array) of the pictures that a finished file holds."""
    try:
        features, digests = map_npy(path), map_npy(digests_file(path))
        failed = {int(row) for row, *_ in json.loads(read_file(path.with_suffix(".json")))["failures"]}
    except (OSError, ValueError, TypeError, KeyError):
        return []
    good = [row for row in range(len(digests)) if row not in failed]
    if features.shape != (len(good), encoder.regions, encoder.width) or features.dtype != np.float16:
        return []
    if digests.shape != (len(good) + len(failed),) or digests.dtype != DIGEST:
        return []
    held, files = digests.tolist(), _files_of(path, len(digests))
    return [(held[row], files[row], features, place) for place, row in enumerate(good)]


def _files_of(path: Path, count: int) -> list[bytes]:
    """Nothing of each where there is no such file: of drawn pictures, or by versions that wrote none."""
    try:
        files = map_npy(files_file(path))
    except (OSError, ValueError):
        return [NOTHING + NOTHING] * count
    known = files.shape == (count,) and files.dtype == FILE
    return files.tolist() if known else [NOTHING + NOTHING] * count
