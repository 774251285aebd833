"""Precomputed embeddings as a collection: clip-retrieval's layout, and two aligned arrays.

clip-retrieval (`clip_retrieval/clip_inference/writer.py`) writes a folder with

- `img_emb/img_emb_0.npy`, …: (rows, D), mostly float16;
- `text_emb/text_emb_0.npy`, …: the same for the captions;
- `metadata/metadata_0.parquet`, …: columns `image_path`, `caption` and whatever came with the data (`key`, `url`, …).

Numbers may be padded with zeros; metadata may be missing. Two aligned arrays are a folder with `images.npy` and
`texts.npy`, and perhaps `metadata.parquet`, `pairs.parquet` or `captions.txt`; or both paths as one text,
"images.npy,texts.npy".

Either may lie in an object store, named by a URL: "s3://bucket/laion", "gs://bucket/images.npy,gs://bucket/texts.npy".
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from hashlib import blake2b
from pathlib import Path, PurePosixPath
from typing import Literal, TypeVar

import numpy as np

from truepair.data.collection import EmbeddingCollection, Problem
from truepair.data.config import Reading
from truepair.data.formats.embeddings.arrays import VectorFile
from truepair.data.formats.embeddings.metadata import picture_in, spans
from truepair.data.formats.embeddings.shards import RowNames, Shard, ShardReader, name_rows
from truepair.data.formats.embeddings.split import SplitOfEmbeddings, read_splits
from truepair.data.formats.format import Format
from truepair.data.pairs import Array, IntArray
from truepair.data.selection import Selection
from truepair.data.storage.object_store import is_url, two_arrays
from truepair.data.storage.stored_path import FilePath, StoredPath, as_path, name_in
from truepair.encoders.decode import read_picture
from truepair.errors import InputError, TruepairError

SIDES = ("images", "texts")
_ALIGNED = ("images.npy", "texts.npy")
_METADATA = ("metadata.parquet", "pairs.parquet", "captions.txt")
_AT_ONCE, _AT_ONCE_ROWS = 16, 8192
"""Scattered ranges that a store sends at a time, and rows in these together."""
_T = TypeVar("_T")


def is_embeddings(source: str | Path) -> bool:
    """Whether the source is two arrays, a folder that holds them, or one with `img_emb/` or `text_emb/`."""
    if two_arrays(source):
        return True
    folder = as_path(source)
    return _is_clip_retrieval(folder) or all((folder / name).is_file() for name in _ALIGNED)


def open_embeddings(source: str | Path) -> EmbeddingFiles:
    """The embeddings of a folder or of two files "images.npy,texts.npy"; no vector is read yet.

    A shard that cannot be used (an array missing, damaged, cut short, of another length or width) is listed in
    `problems`, and its rows are no part of the collection. Metadata that cannot be used leave captions empty.
    """
    if two := two_arrays(source):
        images, texts = map(as_path, two)
        name, reader = f"{images.name},{texts.name}", ShardReader(images.parent)
        shards = reader.open("", images, texts, None)
    else:
        root = as_path(source) if is_url(source) else Path(source).resolve()
        name, reader = root.name, ShardReader(root)
        if _is_clip_retrieval(root):
            shards = reader.numbered()
        elif all((root / file).is_file() for file in _ALIGNED):
            metadata = next((root / file for file in _METADATA if (root / file).is_file()), None)
            shards = reader.open("", root / _ALIGNED[0], root / _ALIGNED[1], metadata)
        else:
            raise InputError(
                f"{source} holds no embeddings; expected img_emb/img_emb_0.npy and text_emb/text_emb_0.npy (clip-"
                'retrieval), images.npy and texts.npy, or two files as "images.npy,texts.npy". Check the path'
            )
    if not shards:
        problems = reader.problems
        first = f"{problems[0].file}: {problems[0].detail}" if problems else "there are no files of vectors"
        more = f" (and {len(problems) - 1} more problems)" if len(problems) > 1 else ""
        raise InputError(f"{source}: no embeddings can be used. {first}{more}")
    return EmbeddingFiles(reader.root, name, shards, reader.problems, name_rows(shards))


class EmbeddingFiles(EmbeddingCollection):
    """Embeddings in files, read by ranges.

    The name of a pair is its `image_path`, `key` or id in the metadata where these are unique; else, with several
    shards, "<shard>:<name>" or "<shard>:<row>"; with a single one the row.

    Attributes:
        root: the folder, or its place in a store, that the files are named relative to.
        starts: (shards + 1,) the first row of each shard, and the number of rows.
    """

    writable = True

    def __init__(
        self, root: FilePath, name: str, shards: list[Shard], problems: list[Problem], row_names: RowNames
    ) -> None:
        self.root, self.name, self.problems = root, name, problems
        self.shards = tuple(shards)
        self.starts: IntArray = np.cumsum([0, *(shard.rows for shard in shards)], dtype=np.int64)
        self.width = shards[0].images.width
        self.row_names = row_names
        self._read_to = -1

    def __len__(self) -> int:
        return int(self.starts[-1])

    def read(self, start: int, stop: int) -> tuple[Array, Array]:
        images, texts = self._read(start, stop, SIDES)
        return images, texts

    def read_side(self, side: int, start: int, stop: int) -> Array:
        return self._read(start, stop, SIDES[side : side + 1])[0]

    def _read(self, start: int, stop: int, sides: Sequence[str]) -> list[Array]:
        self._expect(start, stop, sides)
        if start == self._read_to:  # one range after the other: the next will be as long
            self._expect(stop, 2 * stop - start, sides)
        self._read_to = stop
        spans = list(self._spans(start, stop))
        if len(spans) == 1:
            number, first, end = spans[0]
            return [self._array(number, side).read(first, end) for side in sides]
        rows = sum(end - first for _, first, end in spans)
        found: list[Array] = [np.empty((rows, self.width), dtype=np.float32) for _ in sides]
        place = 0
        for number, first, end in spans:
            here = slice(place, place + end - first)
            for side, vectors in zip(sides, found, strict=True):
                vectors[here] = self._array(number, side).read(first, end)
            place = here.stop
        return found

    def _array(self, number: int, side: str) -> VectorFile:
        return self.shards[number].images if side == "images" else self.shards[number].texts

    def ids(self, start: int, stop: int) -> list[str]:
        return [name for span in self._spans(start, stop) for name in self._names(*span)]

    def captions(self, start: int, stop: int) -> list[str]:
        spans = self._spans(start, stop)
        return [text for span in spans for text in self._said("caption", *span) or [""] * (span[2] - span[1])]

    def image_names(self, start: int, stop: int) -> list[str]:
        spans = self._spans(start, stop)
        return [name for span in spans for name in self._said("image", *span) or self._names(*span)]

    def _names(self, number: int, first: int, end: int) -> list[str]:
        return self.row_names.read(self.shards[number], number, first, end)

    def _said(self, what: Literal["caption", "image"], number: int, first: int, end: int) -> list[str] | None:
        """What the metadata of a shard say of its rows; None where they say nothing."""
        metadata = self.shards[number].metadata
        column = None if metadata is None else metadata.caption if what == "caption" else metadata.image
        return None if metadata is None or column is None else metadata.read(column, first, end)

    def picture(self, row: int) -> Array | None:
        """The picture its metadata name, if that is a picture inside the folder; else None."""
        try:
            name = (self._said("image", *next(self._spans(row, row + 1))) or [""])[0]
            if isinstance(self.root, StoredPath):
                return _stored_picture(self.root, name)
            path = picture_in(self.root, name)
            return None if path is None else read_picture(path)
        except (TruepairError, OSError, ValueError):  # a broken picture, or a name that no file can have
            return None

    def place(self, row: int) -> tuple[str, int]:
        number, first, _ = next(self._spans(row, row + 1))
        path = self.shards[number].images.path
        return name_in(path, self.root) or path.name, first

    def write(self, selection: Selection, folder: Path) -> None:
        from truepair.data.formats.embeddings.write import write_embeddings

        write_embeddings(self, selection, folder)

    def fingerprint(self) -> str:
        digest = blake2b(digest_size=16)
        for shard in self.shards:
            paths = [shard.images.path, shard.texts.path]
            for path in paths if shard.metadata is None else [*paths, shard.metadata.path]:
                digest.update(f"{path.parent.name}/{path.name}\0{_version(path)}\n".encode())
            digest.update(f"{shard.rows} {shard.images.width}\n".encode())
        return digest.hexdigest()

    def coming(self, ranges: Iterable[tuple[_T, int, int]]) -> Iterator[tuple[_T, int, int]]:
        """The same (anything, start, stop), each to be read when it comes; a store sends the next ones meanwhile."""
        ahead: deque[tuple[_T, int, int]] = deque()
        rows = 0
        for item in ranges:
            start, stop = item[1:]
            while ahead and (len(ahead) >= _AT_ONCE or rows + stop - start > _AT_ONCE_ROWS):
                first = ahead.popleft()
                rows -= first[2] - first[1]
                yield first
            self._expect(start, stop)
            ahead.append(item)
            rows += stop - start
        yield from ahead

    def _expect(self, start: int, stop: int, sides: Sequence[str] = SIDES) -> None:
        for number, first, end in self._spans(start, stop):
            for side in sides:
                self._array(number, side).expect(first, end)

    def _spans(self, start: int, stop: int) -> Iterator[tuple[int, int, int]]:
        """(shard, first row in it, end) of each shard that has some of the rows."""
        return spans(self.starts, start, stop)


class Embeddings(Format):
    """Precomputed embeddings, on this machine or in an object store."""

    holds = "embeddings"
    understood = (
        'embeddings: a folder with img_emb/ and text_emb/, or two arrays "images.npy,texts.npy", on this machine or in '
        'an object store ("s3://bucket/folder")'
    )
    options = frozenset({"dev_share", "test_share", "split_seed"})
    vectors = True
    collection = EmbeddingCollection

    def recognises(self, source: str | Path, reading: Reading) -> bool:
        return is_embeddings(source)

    def splits(self, source: str | Path, reading: Reading) -> tuple[str, ...]:
        return read_splits(open_embeddings(source).shards)[0]

    def open(self, source: str | Path, split: str | None, reading: Reading) -> EmbeddingCollection:
        whole = open_embeddings(source)
        return whole if split is None else SplitOfEmbeddings(whole, split)


def _is_clip_retrieval(folder: FilePath) -> bool:
    return any((folder / part).is_dir() for part in ("img_emb", "text_emb"))


def _version(path: FilePath) -> str:
    if isinstance(path, StoredPath):
        return path.version
    status = path.stat()
    return f"{status.st_size}\0{status.st_mtime_ns}"


def _stored_picture(root: StoredPath, name: str) -> Array | None:
    """The picture beside the vectors, if the name is one within the folder."""
    parts = PurePosixPath(name).parts
    if not parts or parts[0] == "/" or ".." in parts or is_url(name) or not (root / name).is_file():
        return None
    with (root / name).open() as file:
        return read_picture(file)
