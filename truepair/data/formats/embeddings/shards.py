"""Which files of a folder of embeddings belong together, and which of them can be used."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass

from truepair.data.collection import Problem
from truepair.data.formats.embeddings.arrays import HEADER_BYTES, VectorFile, open_vectors
from truepair.data.formats.embeddings.metadata import LineMetadata, Metadata, ParquetMetadata, RowGroups
from truepair.data.storage.stored_path import FilePath, StoredPath, files_in, name_in
from truepair.errors import InputError

# clip-retrieval's OutputSink writes <folder>/<stem><number>.<ending>, the number padded with zeros in later versions.
_PARTS = {"img_emb": ("img_emb_", ".npy"), "text_emb": ("text_emb_", ".npy"), "metadata": ("metadata_", ".parquet")}


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


def find_shards(folder: FilePath, cache: RowGroups) -> tuple[list[Shard], list[Problem]]:
    """The usable shards of a folder in clip-retrieval's layout by number, and what is wrong with the others."""
    problems: list[Problem] = []
    files = {part: _numbered(folder, part, problems) for part in _PARTS}
    _expect_headers([*files["img_emb"].values(), *files["text_emb"].values()])
    shards = []
    for number in sorted(files["img_emb"] | files["text_emb"]):
        missing = next((part for part in ("img_emb", "text_emb") if number not in files[part]), None)
        if missing is not None:
            there = files["text_emb" if missing == "img_emb" else "img_emb"][number]
            detail = f"it has no file of the same number in {missing}/; copy that there, or compute it again"
            problems.append(_problem(folder, there, "missing-file", detail))
            continue
        images, texts = files["img_emb"][number], files["text_emb"][number]
        metadata = files["metadata"].get(number)
        shard = _open_shard(folder, _digits(images), images, texts, metadata, cache, problems)
        shards += [] if shard is None else [shard]
    for number in sorted(set(files["metadata"]) - set(files["img_emb"]) - set(files["text_emb"])):
        detail = "there are no vectors of the same number; copy them there, or compute them again"
        problems.append(_problem(folder, files["metadata"][number], "missing-file", detail))
    return _of_one_width(folder, shards, problems), problems


def open_aligned(
    root: FilePath, images: FilePath, texts: FilePath, metadata: FilePath | None, cache: RowGroups
) -> tuple[list[Shard], list[Problem]]:
    """Two arrays as one shard, or none and what is wrong with them; files are named relative to `root`."""
    problems: list[Problem] = []
    shard = _open_shard(root, "", images, texts, metadata, cache, problems)
    return [] if shard is None else [shard], problems


def _open_shard(
    root: FilePath,
    name: str,
    images: FilePath,
    texts: FilePath,
    metadata: FilePath | None,
    cache: RowGroups,
    problems: list[Problem],
) -> Shard | None:
    sides = []
    for path in (images, texts):
        try:
            sides.append(open_vectors(path))
        except InputError as error:
            problems.append(_problem(root, path, "broken-array", str(error)))
    if len(sides) < 2:
        return None
    for reason, what, one, other in (
        ("different-length", "rows", sides[0].rows, sides[1].rows),
        ("different-width", "numbers a row", sides[0].width, sides[1].width),
    ):
        if one != other:
            detail = f"it has {one} {what}, {texts.name} has {other}; both must agree. Compute the two anew together"
            problems.append(_problem(root, images, reason, detail))
            return None
    return Shard(name, sides[0], sides[1], _open_metadata(root, metadata, sides[0].rows, cache, problems))


def _open_metadata(
    root: FilePath, path: FilePath | None, rows: int, cache: RowGroups, problems: list[Problem]
) -> Metadata | None:
    """The metadata if they can be read and fit; what is amiss is told, and the vectors are used without them."""
    if path is None:
        return None

    def note(reason: str, detail: str, row: int = -1) -> None:
        problems.append(_problem(root, path, reason, f"{detail}; the vectors are used all the same", row, used=True))

    metadata: Metadata
    try:
        metadata = LineMetadata(path) if path.suffix == ".txt" else ParquetMetadata(path, cache)
    except InputError as error:
        note("broken-metadata", str(error))
        return None
    if metadata.rows != rows:
        note("different-length", f"it has {metadata.rows} rows for {rows} vectors, so nobody knows which belongs where")
        return None
    if isinstance(metadata, ParquetMetadata) and metadata.caption is None:
        found = ", ".join(metadata.columns) or "none"
        note("no-captions", f"its columns are {found}; expected one named caption that holds text")
    if isinstance(metadata, LineMetadata) and metadata.not_utf8:
        note(
            "encoding",
            f"{metadata.not_utf8} lines are not UTF-8, the first is line {metadata.first_not_utf8 + 1}; they are read "
            "as Windows-1252. Save the file as UTF-8",
            metadata.first_not_utf8,
        )
    return metadata


def _of_one_width(folder: FilePath, shards: list[Shard], problems: list[Problem]) -> list[Shard]:
    """The shards of the width that most rows have."""
    rows_of_width: Counter[int] = Counter()
    for shard in shards:
        rows_of_width[shard.images.width] += shard.rows
    width = max(rows_of_width, key=lambda width: (rows_of_width[width], -width), default=0)
    for shard in shards:
        if shard.images.width != width:
            detail = f"its vectors have {shard.images.width} numbers, those of most rows {width}; expected one model's"
            problems.append(_problem(folder, shard.images.path, "different-width", detail))
    return [shard for shard in shards if shard.images.width == width]


def _numbered(folder: FilePath, part: str, problems: list[Problem]) -> dict[int, FilePath]:
    stem, ending = _PARTS[part]
    pattern = re.compile(re.escape(stem) + r"\d+" + re.escape(ending), re.ASCII)
    found: dict[int, FilePath] = {}
    for path in files_in(folder / part):
        if not pattern.fullmatch(path.name):
            continue
        number = int(_digits(path))
        if number in found:
            detail = f"{found[number].name} has the same number and is used; remove one of the two"
            problems.append(_problem(folder, path, "repeated-number", detail))
        else:
            found[number] = path
    return found


def _digits(path: FilePath) -> str:
    return path.stem.rpartition("_")[2]


def _expect_headers(paths: Sequence[FilePath]) -> None:
    """One after the other they would take a thousand shards minutes."""
    for path in paths:
        with suppress(OSError, InputError):  # told when it is opened
            if isinstance(path, StoredPath):
                path.expect(0, min(HEADER_BYTES, path.size))


def _problem(root: FilePath, path: FilePath, reason: str, detail: str, row: int = -1, *, used: bool = False) -> Problem:
    return Problem(path.name, name_in(path, root) or path.name, row, reason, detail, used)
