"""Which files of a folder of embeddings belong together, which of them can be used, and what their rows are called.

Rows have names from the metadata where these tell them apart, else numbers.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from hashlib import blake2b

import numpy as np

from truepair.data.collection import Problem
from truepair.data.formats.embeddings.arrays import HEADER_BYTES, VectorFile, open_vectors
from truepair.data.formats.embeddings.metadata import LineMetadata, Metadata, ParquetMetadata, RowGroups
from truepair.data.pairs import Array
from truepair.data.storage.stored_path import FilePath, StoredPath, files_in, name_in
from truepair.errors import InputError

# clip-retrieval's OutputSink writes <folder>/<stem><number>.<ending>, the number padded with zeros in later versions.
_PARTS = {"img_emb": ("img_emb_", ".npy"), "text_emb": ("text_emb_", ".npy"), "metadata": ("metadata_", ".parquet")}

# Eight bytes a row are kept while names are compared across shards; beyond this every name carries its shard.
MOST_COMPARED = 20_000_000


@dataclass(frozen=True)
class Shard:
    """Files that describe the same rows.

    Attributes:
        name: its number as the files write it ("0", "00"); empty where there is one shard without a number.
        images, texts: the vectors, of one width and one number of rows.
        metadata: captions and names, or None where there are none that fit.
    """

    name: str
    images: VectorFile
    texts: VectorFile
    metadata: Metadata | None

    @property
    def rows(self) -> int:
        return self.images.rows


@dataclass(frozen=True)
class RowNames:
    """How rows are named.

    Attributes:
        columns: for each shard the column of the metadata whose values differ from each other; None for the row.
        with_shard: whether "<shard>:" stands before the names of a column; it always does before rows, unless there is
            one shard.
    """

    columns: tuple[str | None, ...]
    with_shard: bool

    def read(self, shard: Shard, number: int, start: int, stop: int) -> list[str]:
        """The names of the rows [start, stop) of the shard with this number."""
        column = self.columns[number]
        if column is None or shard.metadata is None:
            before = f"{shard.name}:" if len(self.columns) > 1 else ""
            return [f"{before}{row}" for row in range(start, stop)]
        before = f"{shard.name}:" if self.with_shard else ""
        return [before + name for name in shard.metadata.read(column, start, stop)]


def name_rows(shards: Sequence[Shard]) -> RowNames:
    """The naming that makes all names unique, from one pass over the columns that could serve."""
    columns: list[str | None] = []
    seen: list[Array] = []
    compared = sum(shard.rows for shard in shards) <= MOST_COMPARED
    clash = False
    for shard in shards:
        column, hashes, looks_numbered = _unique_column(shard.metadata)
        columns.append(column)
        clash |= looks_numbered
        if column is not None and compared:
            seen.append(hashes)
    if len(shards) == 1:
        return RowNames(tuple(columns), with_shard=False)
    clash = clash and None in columns  # "3:17" as a key could be row 17 of shard 3
    unique = compared and not clash and (not seen or _all_differ(np.concatenate(seen)))
    return RowNames(tuple(columns), with_shard=not unique)


def _unique_column(metadata: Metadata | None) -> tuple[str | None, Array, bool]:
    """The first column with a value in each row and no value twice, hashes of its values, and if any has a colon."""
    if metadata is not None:
        for column in metadata.ids:
            hashes, complete, colon = _hashes(metadata, column)
            if complete and _all_differ(hashes):
                return column, hashes, colon
    return None, np.empty(0, dtype=np.uint64), False


def _hashes(metadata: Metadata, column: str) -> tuple[Array, bool, bool]:
    """A hash of each value, whether all rows have one, and whether any has a colon."""
    hashes, place, complete, colon = np.empty(metadata.rows, dtype=np.uint64), 0, True, False
    for values in metadata.batches(column):
        complete = complete and all(values)
        colon = colon or any(":" in value for value in values)
        digests = b"".join(blake2b(value.encode(), digest_size=8).digest() for value in values)
        hashes[place : place + len(values)] = np.frombuffer(digests, dtype=np.uint64)
        place += len(values)
    return hashes, complete, colon


def _all_differ(hashes: Array) -> bool:
    ordered = np.sort(hashes)
    return not bool((ordered[1:] == ordered[:-1]).any())


class ShardReader:
    """Opens the shards of a folder or of a store; what cannot be used is told in `problems`, by names within `root`."""

    def __init__(self, root: FilePath) -> None:
        self.root, self.cache = root, RowGroups()
        self.problems: list[Problem] = []

    def numbered(self) -> list[Shard]:
        """The usable shards of clip-retrieval's layout, by number."""
        files = {part: self._files(part) for part in _PARTS}
        for path in (*files["img_emb"].values(), *files["text_emb"].values()):
            with suppress(OSError, InputError):  # told when it is opened
                if isinstance(path, StoredPath):  # one after the other they would take a thousand shards minutes
                    path.expect(0, min(HEADER_BYTES, path.size))
        shards = []
        for number in sorted(files["img_emb"] | files["text_emb"]):
            missing = next((part for part in ("img_emb", "text_emb") if number not in files[part]), None)
            if missing is not None:
                there = files["text_emb" if missing == "img_emb" else "img_emb"][number]
                detail = f"it has no file of the same number in {missing}/; copy that there, or compute it again"
                self._note(there, "missing-file", detail)
                continue
            images, texts = files["img_emb"][number], files["text_emb"][number]
            shards += self.open(_digits(images), images, texts, files["metadata"].get(number))
        for number in sorted(set(files["metadata"]) - set(files["img_emb"]) - set(files["text_emb"])):
            detail = "there are no vectors of the same number; copy them there, or compute them again"
            self._note(files["metadata"][number], "missing-file", detail)
        return self._of_one_width(shards)

    def open(self, name: str, images: FilePath, texts: FilePath, metadata: FilePath | None) -> list[Shard]:
        """Two arrays as one shard, or none where they cannot be used."""
        sides = []
        for path in (images, texts):
            try:
                sides.append(open_vectors(path))
            except InputError as error:
                self._note(path, "broken-array", str(error))
        if len(sides) < 2:
            return []
        one, other = sides
        for reason, what, mine, its in (
            ("different-length", "rows", one.rows, other.rows),
            ("different-width", "numbers a row", one.width, other.width),
        ):
            if mine != its:
                detail = f"it has {mine} {what}, {texts.name} has {its}; both must agree. Compute the two anew together"
                self._note(images, reason, detail)
                return []
        return [Shard(name, one, other, None if metadata is None else self._metadata(metadata, one.rows))]

    def _metadata(self, path: FilePath, rows: int) -> Metadata | None:
        """The metadata if they can be read and fit; what is amiss is told, and the vectors are used without them."""

        def note(reason: str, detail: str, row: int = -1) -> None:
            self._note(path, reason, f"{detail}; the vectors are used all the same", row, used=True)

        metadata: Metadata
        try:
            metadata = LineMetadata(path) if path.suffix == ".txt" else ParquetMetadata(path, self.cache)
        except InputError as error:
            note("broken-metadata", str(error))
            return None
        if metadata.rows != rows:
            detail = f"it has {metadata.rows} rows for {rows} vectors, so nobody knows which belongs where"
            note("different-length", detail)
            return None
        if isinstance(metadata, ParquetMetadata) and metadata.caption is None:
            found = ", ".join(metadata.columns) or "none"
            note("no-captions", f"its columns are {found}; expected one named caption that holds text")
        if isinstance(metadata, LineMetadata) and metadata.not_utf8:
            first = metadata.first_not_utf8
            detail = (
                f"{metadata.not_utf8} lines are not UTF-8, the first is line {first + 1}; they are read as Windows-1252"
            )
            note("encoding", f"{detail}. Save the file as UTF-8", first)
        return metadata

    def _of_one_width(self, shards: list[Shard]) -> list[Shard]:
        """The shards of the width that most rows have."""
        rows_of_width: Counter[int] = Counter()
        for shard in shards:
            rows_of_width[shard.images.width] += shard.rows
        width = max(rows_of_width, key=lambda width: (rows_of_width[width], -width), default=0)
        for shard in shards:
            if shard.images.width != width:
                found = f"its vectors have {shard.images.width} numbers"
                detail = f"{found}, those of most rows {width}; expected one model's"
                self._note(shard.images.path, "different-width", detail)
        return [shard for shard in shards if shard.images.width == width]

    def _files(self, part: str) -> dict[int, FilePath]:
        stem, ending = _PARTS[part]
        pattern = re.compile(re.escape(stem) + r"\d+" + re.escape(ending), re.ASCII)
        found: dict[int, FilePath] = {}
        for path in files_in(self.root / part):
            if not pattern.fullmatch(path.name):
                continue
            if (number := int(_digits(path))) in found:
                detail = f"{found[number].name} has the same number and is used; remove one of the two"
                self._note(path, "repeated-number", detail)
            else:
                found[number] = path
        return found

    def _note(self, path: FilePath, reason: str, detail: str, row: int = -1, *, used: bool = False) -> None:
        name = name_in(path, self.root) or path.name
        self.problems.append(Problem(path.name, name, row, reason, detail, used))


def _digits(path: FilePath) -> str:
    return path.stem.rpartition("_")[2]
