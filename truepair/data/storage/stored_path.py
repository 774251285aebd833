"""Objects of a store by name, for what reads local files as well: `FilePath` is either."""

from __future__ import annotations

import io
from pathlib import Path, PurePosixPath
from typing import Any

from truepair.data.storage.object_store import Store, is_url
from truepair.errors import InputError

_VERSIONS = ("ETag", "etag", "e_tag", "md5Hash", "md5", "content_md5", "Content-MD5", "generation", "sha", "VersionId")
_TIMES = ("mtime", "LastModified", "last_modified", "Last-Modified", "updated", "modified", "created")
"""What drivers call the tag and the time of an object."""


class StoredPath:
    """An object or a folder of a store, named `inside` there, with as much of `pathlib.Path` as reading needs."""

    def __init__(self, store: Store, inside: str, info: dict[str, Any] | None = None) -> None:
        self.store, self.inside, self._info = store, inside, info
        last = PurePosixPath(inside)
        self.name, self.stem, self.suffix = last.name, last.stem, last.suffix

    def __str__(self) -> str:
        return self.store.full(self.inside)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, StoredPath) and str(self) == str(other)

    def __hash__(self) -> int:
        return hash(self.inside)

    def __truediv__(self, name: str) -> StoredPath:
        return StoredPath(self.store, f"{self.inside.rstrip('/')}/{name}")

    @property
    def parent(self) -> StoredPath:
        return StoredPath(self.store, self.inside.rpartition("/")[0])

    def is_dir(self) -> bool:
        """Whether something lies in it; errors as `files`."""
        return bool(self._listed())

    def is_file(self) -> bool:
        """Whether there is such an object; errors as `files`."""
        try:
            return bool(self.info()["type"] == "file")
        except FileNotFoundError:
            return False
        except PermissionError as error:
            raise self._denied(error) from error

    def files(self) -> list[StoredPath]:
        """The objects of this folder, not of folders within it, by name."""
        entries = [entry for entry in self._listed() if entry["type"] == "file"]
        return sorted((StoredPath(self.store, entry["name"], entry) for entry in entries), key=lambda path: path.inside)

    def info(self) -> dict[str, Any]:
        """What the store says of it, asked once; errors as `Store.read`."""
        if self._info is None:
            self._info = self.store.info(self.inside)
        return self._info

    @property
    def size(self) -> int:
        """Bytes; errors as `Store.read`, and `InputError` where the store does not say how many."""
        if self.info().get("size") is None:
            self._info = self.store.info(self.inside)  # listings of web pages are names alone
        size = self.info().get("size")
        if size is None:
            raise InputError(f"{self}: its server does not tell its size, which is needed; copy it to this machine")
        return int(size)

    @property
    def version(self) -> str:
        """What changes with the object as far as the store tells: its size, and its tag or else its time."""
        size, told = self.size, self.info()
        known = next((f"{key}={told[key]}" for key in (*_VERSIONS, *_TIMES) if told.get(key)), "")
        return f"{size}\0{known}"

    def read(self, start: int, stop: int) -> bytes:
        return self.store.read(self.inside, start, stop)

    def expect(self, start: int, stop: int) -> None:
        self.store.expect(self.inside, start, stop)

    def open(self, mode: str = "rb", buffering: int = 2**20) -> io.BufferedReader:
        """To be read, by so many bytes a request."""
        return io.BufferedReader(StoredFile(self), buffering)

    def _listed(self) -> list[dict[str, Any]]:
        try:
            return self.store.listed(self.inside)
        except OSError as error:
            raise self._denied(error) from error

    def _denied(self, error: OSError) -> InputError:
        return InputError(f"{self} cannot be looked into ({error.strerror}); check the name, and the driver's keys")


FilePath = Path | StoredPath


class StoredFile(io.RawIOBase):
    """An object as an open file: one request a read. Errors as `Store.read`."""

    def __init__(self, path: StoredPath) -> None:
        self.path, self.size, self.place = path, path.size, 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self.place

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        self.place = offset + {io.SEEK_SET: 0, io.SEEK_CUR: self.place, io.SEEK_END: self.size}[whence]
        return self.place

    def readinto(self, buffer: Any) -> int:
        stop = min(self.place + len(buffer), self.size)
        data = self.path.read(self.place, stop) if stop > self.place else b""
        buffer[: len(data)] = data
        self.place += len(data)
        return len(data)


def as_path(source: str | Path) -> FilePath:
    """The local path, or the object or folder that a URL names; whether it exists is not asked."""
    if not is_url(source):
        return Path(source).absolute()
    store = Store(str(source))
    return StoredPath(store, store.within(str(source).rstrip("/")))


def files_in(folder: FilePath) -> list[FilePath]:
    """What lies in a folder, by name; nothing where there is none."""
    if isinstance(folder, StoredPath):
        return [*folder.files()]
    return [*sorted(folder.glob("*"))]


def name_in(path: FilePath, root: FilePath) -> str | None:
    """How a file is called within a folder, with "/"; None for one that lies elsewhere."""
    if isinstance(path, StoredPath):
        before = f"{root.inside.rstrip('/')}/" if isinstance(root, StoredPath) else ""
        return path.inside.removeprefix(before) if before and path.inside.startswith(before) else None
    return path.relative_to(root).as_posix() if isinstance(root, Path) and path.is_relative_to(root) else None


def gone(path: FilePath, error: Exception) -> InputError:
    """What is said of a file that could be read at first."""
    said = getattr(error, "strerror", None) or str(error).partition("\n")[0]
    return InputError(f"{path} cannot be read any more ({said}); leave it in place")
