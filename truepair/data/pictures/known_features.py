"""Features that other files of the cache have already: the same pictures, described as part of another set."""

from __future__ import annotations

import json
from pathlib import Path
from typing import BinaryIO

import numpy as np
import numpy.typing as npt

from truepair.data.pairs import Array
from truepair.encoders.encoder import Encoder
from truepair.files import map_npy, read_file

Digests = npt.NDArray[np.void]
DIGEST = np.dtype("V16")
"""16 bytes a picture."""


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

    Args:
        files: (n,) see `files_file`; None where pictures are no files of their own.
    """

    def __init__(self, folder: Path, encoder: Encoder, digests: Digests, files: Digests | None = None) -> None:
        self._found: dict[int, tuple[Array, int]] = {}
        paths = sorted(folder.glob(f"features-{'?' * 32}-{encoder.identity()}.npy"))
        for column, name in ((digests, digests_file), (files, files_file)):
            wanted: dict[bytes, list[int]] = {}
            for row, digest in enumerate(() if column is None else column.tolist()):
                if row not in self._found:
                    wanted.setdefault(digest, []).append(row)
            for path in paths if wanted else ():
                for digest, features, place in _rows_of(path, name(path), encoder):
                    for row in wanted.pop(digest, ()):
                        self._found[row] = features, place

    def __contains__(self, row: int) -> bool:
        return row in self._found

    def copy(self, rows: range, file: BinaryIO) -> None:
        """Write the features of known rows."""
        for row in rows:
            features, place = self._found[row]
            file.write(features[place].tobytes())


def _rows_of(path: Path, beside: Path, encoder: Encoder) -> list[tuple[bytes, Array, int]]:
    """(digest, array, row of the array) of the pictures that a finished file holds, by the digests beside it."""
    try:
        features, digests = map_npy(path), map_npy(beside)
        failed = {int(row) for row, *_ in json.loads(read_file(path.with_suffix(".json")))["failures"]}
    except (OSError, ValueError, TypeError, KeyError):
        return []
    good = [row for row in range(len(digests)) if row not in failed]
    if features.shape != (len(good), encoder.regions, encoder.width) or features.dtype != np.float16:
        return []
    if digests.shape != (len(good) + len(failed),) or digests.dtype != DIGEST:
        return []
    held = digests.tolist()
    return [(held[row], features, place) for place, row in enumerate(good)]
