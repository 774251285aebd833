"""The pictures that a table names: found inside one folder, and each counted once."""

from __future__ import annotations

import os
import stat
from array import array
from hashlib import blake2b
from pathlib import Path, PurePosixPath, PureWindowsPath

import numpy as np

from truepair.data.pictures.known_features import DIGEST, Digests
from truepair.data.pictures.pictures import Failure, Place

BESIDE = ("images", "Images", "pictures", "photos", "imgs", "img", "data")
"""Folders in that of the table where pictures are looked for, after the folder itself, in this order."""


class PictureFolder:
    """Pictures by the paths that a table gives (`names`), numbered in the order they were first found.

    Paths are relative to the folder, or else to one of `BESIDE` in it. Ways to write one path ("a.png", "./a.png",
    "images/a.png") are one picture, of the name that came first.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.names: list[str] = []
        self._number: dict[str, int | Failure] = {}
        self._number_of_path: dict[str, int] = {}
        self._bases = (os.fspath(folder), *(os.fspath(folder / name) for name in BESIDE))
        self._base = array("b")
        self._digests, self._files = bytearray(), bytearray()

    def __len__(self) -> int:
        return len(self.names)

    def find(self, name: str) -> int | Failure:
        """The number of the picture, or why there is none."""
        if name not in self._number:
            self._number[name] = self._find(name)
        return self._number[name]

    def place(self, number: int) -> Place:
        return Place(f"{self._bases[self._base[number]]}{os.sep}{self.names[number]}")

    def digests(self) -> Digests:
        """Hashes of the paths, sizes and times of the pictures found."""
        return np.frombuffer(bytes(self._digests), dtype=DIGEST)

    def files(self) -> Digests:
        """Hashes of the files themselves, sizes and times: the same for a hard link, or a file that was moved."""
        return np.frombuffer(bytes(self._files), dtype=DIGEST)

    def _find(self, name: str) -> int | Failure:
        if "://" in name:
            return Failure("missing-picture", "this is a web address; download the pictures and name their files")
        if not _inside(name):
            return Failure(
                "outside-folder",
                "the path is absolute or leads outside the folder of the table; name pictures by paths relative to it, "
                "without '..'",
            )
        for number, base in enumerate(self._bases):
            try:
                status = Path(base, name).stat()
            except (OSError, ValueError):  # ValueError: a path with a zero byte
                continue
            if not stat.S_ISREG(status.st_mode):
                return Failure("not-a-picture", "this is no file but a folder or device; name a picture")
            known = self._number_of_path.setdefault(os.path.normpath(f"{base}{os.sep}{name}"), len(self.names))
            if known < len(self.names):
                return known
            self._base.append(number)
            self.names.append(name)
            state = f"{status.st_size}\0{status.st_mtime_ns}"
            self._digests += _digest(f"{base}{os.sep}{name}\0{state}")
            self._files += _digest(f"{status.st_dev}\0{status.st_ino}\0{state}")
            return len(self.names) - 1
        return Failure(
            "missing-picture",
            f"there is no such file in {self.folder.name}/, nor in its folder {' or '.join(BESIDE)}; copy it there, or "
            "correct the path",
        )


def _digest(words: str) -> bytes:
    return blake2b(os.fsencode(words), digest_size=16).digest()


def _inside(name: str) -> bool:
    """Whether the path stays inside by its words; Windows' way of writing paths counts too."""
    posix, windows = PurePosixPath(name), PureWindowsPath(name)
    absolute = posix.is_absolute() or windows.is_absolute() or bool(windows.drive or windows.root)
    return not absolute and ".." not in posix.parts and ".." not in windows.parts
