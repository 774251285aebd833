"""What is said of embeddings: captions, image paths and names, from parquet or from a text file, read by ranges."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections import OrderedDict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from truepair.data import columns
from truepair.data.pairs import IntArray
from truepair.data.storage.stored_path import FilePath, StoredFile, StoredPath, gone
from truepair.errors import InputError
from truepair.files import require_file

_CACHE_BYTES = 256 * 2**20
_BATCH_ROWS = 65_536
_LINES_PER_MARK = 1024
_LINE_BYTES = 8 * 2**20


class Metadata(ABC):
    """Columns of text beside the rows of a shard: that of the captions, that with paths of pictures, that with the
    split, None where there is none, and those that may name the rows, best first.
    """

    path: FilePath
    rows: int
    caption: str | None = None
    image: str | None = None
    split: str | None = None
    ids: tuple[str, ...] = ()

    @abstractmethod
    def read(self, column: str, start: int, stop: int) -> list[str]:
        """The values of a column in the rows [start, stop); empty where there is none."""

    def batches(self, column: str) -> Iterator[list[str]]:
        """All values of a column, a few ten thousand at a time."""
        for start in range(0, self.rows, _BATCH_ROWS):
            yield self.read(column, start, min(start + _BATCH_ROWS, self.rows))


class RowGroups:
    """The columns of row groups read last, up to a number of bytes; files of a collection and threads share them."""

    def __init__(self, most_bytes: int = _CACHE_BYTES) -> None:
        self.most_bytes = most_bytes
        self.kept: OrderedDict[tuple[FilePath, int, str], Any] = OrderedDict()
        self.footer: tuple[FilePath, Any] | None = None
        self.lock = threading.Lock()

    def get(self, path: FilePath, group: int, column: str) -> Any:
        """The column of the row group as an Arrow chunked array of large binary values."""
        key = (path, group, column)
        with self.lock:
            if key not in self.kept:
                self.kept[key] = self._read(path, group, column)
            self.kept.move_to_end(key)
            while len(self.kept) > 1 and sum(values.nbytes for values in self.kept.values()) > self.most_bytes:
                self.kept.popitem(last=False)
            return self.kept[key]

    def _read(self, path: FilePath, group: int, column: str) -> Any:
        import pyarrow as pa

        known = self.footer[1] if self.footer is not None and self.footer[0] == path else None
        try:
            with open_parquet(path, known) as file:
                self.footer = path, file.metadata
                return _as_bytes(file.read_row_group(group, columns=[column]).column(0))
        except (OSError, pa.ArrowException) as error:
            raise gone(path, error) from error

    def __reduce__(self) -> tuple[type[RowGroups], tuple[int]]:
        """Without what was read: a copy in another process reads for itself."""
        return RowGroups, (self.most_bytes,)


class ParquetMetadata(Metadata):
    """A parquet file with a caption, and perhaps a path or a key, for each row.

    Every column that is used is read once, so that a damaged file is refused at the beginning.
    """

    def __init__(self, path: FilePath, cache: RowGroups) -> None:
        import pyarrow as pa

        self.path, self.cache = path, cache
        try:
            with open_parquet(path) as file:
                counts = [file.metadata.row_group(k).num_rows for k in range(file.metadata.num_row_groups)]
                texts = [field.name for field in file.schema_arrow if _holds_text(field.type)]
                self.caption = next(iter(columns.find_captions(texts)), None)
                self.image = columns.find(texts, columns.IMAGES)
                self.split = columns.find(texts, columns.SPLITS)
                self.ids = tuple(name for wanted in columns.IDS if (name := columns.find(texts, [wanted])) is not None)
                self.columns = tuple(file.schema_arrow.names)
                used = sorted({self.caption, self.image, self.split, *self.ids} - {None}, key=str)
                for _ in file.iter_batches(_BATCH_ROWS, columns=used):
                    pass
        except (OSError, pa.ArrowException) as error:
            raise InputError(
                f"{path} cannot be read as parquet ({str(error).splitlines()[0]}); copy or download it again"
            ) from error
        self.starts: IntArray = np.cumsum([0, *counts], dtype=np.int64)
        self.rows = int(self.starts[-1])

    def read(self, column: str, start: int, stop: int) -> list[str]:
        found: list[str] = []
        for group, first, end in spans(self.starts, start, stop):
            values = self.cache.get(self.path, group, column).slice(first, end - first)
            found += [(value or b"").decode("utf-8", "replace") for value in values.to_pylist()]
        return found


class LineMetadata(Metadata):
    """A text file with one caption a line. Every 1,024th line's place is kept in memory, nothing else.

    `not_utf8` counts the lines that are not UTF-8, and `first_not_utf8` is the first of them, from 0; their bytes are
    read as if they were Windows-1252.
    """

    caption = "caption"

    def __init__(self, path: FilePath) -> None:
        self.path, self.not_utf8, self.first_not_utf8 = path, 0, -1
        marks, place, row = [], 0, -1
        try:
            require_file(path)
            with path.open("rb", buffering=_LINE_BYTES) as file:
                for row, line in enumerate(file):
                    if row % _LINES_PER_MARK == 0:
                        marks.append(place)
                    place += len(line)
                    if not _is_utf8(line):
                        self.first_not_utf8 = row if self.not_utf8 == 0 else self.first_not_utf8
                        self.not_utf8 += 1
        except OSError as error:
            raise InputError(f"{path} cannot be read ({error.strerror or error}). Check its permissions") from error
        self.rows, self.marks = row + 1, np.array([*marks, place], dtype=np.int64)

    def read(self, column: str, start: int, stop: int) -> list[str]:
        lines = self.lines(start, stop)
        texts = (line.decode("utf-8") if _is_utf8(line) else line.decode("cp1252", "replace") for line in lines)
        return [text.removeprefix("\ufeff").strip() for text in texts]

    def lines(self, start: int, stop: int) -> Iterator[bytes]:
        """The lines [start, stop) as they are, with their line ends."""
        start, stop = max(0, start), min(stop, self.rows)
        if start >= stop:
            return
        first = start // _LINES_PER_MARK
        bytes_there = int(self.marks[-(-stop // _LINES_PER_MARK)] - self.marks[first])
        try:
            with self.path.open("rb", buffering=min(max(2, bytes_there), _LINE_BYTES)) as file:
                file.seek(int(self.marks[first]))
                for row in range(start - start % _LINES_PER_MARK, stop):
                    line = file.readline()
                    if row >= start:
                        yield line
        except OSError as error:
            raise gone(self.path, error) from error


def spans(starts: IntArray, start: int, stop: int) -> Iterator[tuple[int, int, int]]:
    """(part, first row in it, end) of each part that has some of the rows; part k begins with row `starts[k]`."""
    start, stop = max(0, start), min(stop, int(starts[-1]))
    while start < stop:
        part = int(np.searchsorted(starts, start, side="right")) - 1
        first, end = int(starts[part]), min(stop, int(starts[part + 1]))
        yield part, start - first, end - first
        start = end


def picture_in(root: Path, name: str) -> Path | None:
    """The file of this name if it lies inside the folder, links on its way followed; else None."""
    try:
        path = (root / name).resolve()
        return path if path.is_relative_to(root) and path.is_file() else None
    except (OSError, ValueError):  # a name that no file can have
        return None


def open_parquet(path: FilePath, footer: Any = None) -> Any:
    """The file as a `pyarrow.parquet.ParquetFile`, its footer not read again where it is given."""
    import pyarrow.parquet as pq

    require_file(path)
    return pq.ParquetFile(StoredFile(path) if isinstance(path, StoredPath) else path, metadata=footer)


def _holds_text(kind: Any) -> bool:
    import pyarrow as pa

    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    tests = (pa.types.is_string, pa.types.is_large_string, pa.types.is_binary, pa.types.is_large_binary)
    return any(test(kind) for test in (*tests, pa.types.is_integer))


def _as_bytes(values: Any) -> Any:
    """An Arrow column of text or whole numbers as large binary: bytes that are not UTF-8 must not raise later."""
    import pyarrow as pa

    if pa.types.is_dictionary(values.type):
        values = values.cast(values.type.value_type)
    if pa.types.is_integer(values.type):
        values = values.cast(pa.string())
    return values.cast(pa.large_binary())


def _is_utf8(line: bytes) -> bool:
    try:
        line.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True
