"""Embeddings in, embeddings out: the kept rows of each shard, in the layout they came in.

clip-retrieval's layout keeps its file names; a shard of which no row is kept is left out. The kept rows' weights are
`weights/weights_0.npy`, …, float32. Two aligned arrays become `images.npy`, `texts.npy`, `weights.npy`, with the
parquet or text file beside them where there was one. Values and columns stay as stored. A parquet file that could not
be used is left out. Pictures of this machine that the metadata name lie at the same paths, as hard links or copies.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

import numpy as np

from truepair.data.formats.embeddings.arrays import VectorFile
from truepair.data.formats.embeddings.metadata import LineMetadata, Metadata, open_parquet, picture_in
from truepair.data.formats.embeddings.shards import Shard
from truepair.data.pairs import Array, BoolArray
from truepair.data.selection import Selection, write_npy
from truepair.data.storage.stored_path import FilePath
from truepair.files import link_or_copy

if TYPE_CHECKING:
    from truepair.data.formats.embeddings.files import EmbeddingFiles

_CHUNK_BYTES = 16 * 2**20
_BATCH_ROWS = 65_536


def write_embeddings(collection: EmbeddingFiles, selection: Selection, folder: Path) -> None:
    """Writes the kept rows into the folder."""
    for number, shard in enumerate(collection.shards):
        rows = slice(int(collection.starts[number]), int(collection.starts[number + 1]))
        kept = selection.kept[rows]
        if kept.any():
            _write_shard(shard, kept, selection.weights[rows][kept], folder)
            _link_pictures(shard.metadata, kept, collection.root, folder)


def _write_shard(shard: Shard, kept: BoolArray, weights: Array, folder: Path) -> None:
    if shard.name:
        parts = [folder / part for part in ("img_emb", "text_emb", "weights", "metadata")]
        names = [f"{part.name}_{shard.name}.npy" for part in parts]
    else:
        parts, names = [folder] * 4, ["images.npy", "texts.npy", "weights.npy"]
    for part in parts if shard.metadata is not None else parts[:3]:
        part.mkdir(parents=True, exist_ok=True)
    for vectors, part, name in zip((shard.images, shard.texts), parts, names, strict=False):
        write_npy(part / name, (int(kept.sum()), vectors.width), vectors.dtype, _kept_vectors(vectors, kept))
    write_npy(parts[2] / names[2], weights.shape, np.float32, [weights])
    if shard.metadata is not None:
        _write_metadata(shard.metadata, kept, parts[3] / shard.metadata.path.name)


def _link_pictures(metadata: Metadata | None, kept: BoolArray, root: FilePath, folder: Path) -> None:
    if metadata is None or metadata.image is None or not isinstance(root, Path):
        return
    row = 0
    for names in metadata.batches(metadata.image):
        for name, wanted in zip(names, kept[row : row + len(names)].tolist(), strict=True):
            inside = wanted and not PurePosixPath(name).is_absolute() and ".." not in PurePosixPath(name).parts
            path = picture_in(root, name) if inside else None
            if path is not None and not (folder / name).exists():
                link_or_copy(path, folder / name)
        row += len(names)


def _kept_vectors(vectors: VectorFile, kept: BoolArray) -> Iterator[Array]:
    step = max(1, _CHUNK_BYTES // (vectors.width * vectors.dtype.itemsize))
    for start in range(0, vectors.rows, step):
        stop = min(start + step, vectors.rows)
        if kept[start:stop].any():
            yield vectors.read_stored(start, stop)[kept[start:stop]]


def _write_metadata(metadata: Metadata, kept: BoolArray, path: Path) -> None:
    if isinstance(metadata, LineMetadata):
        with path.open("wb") as file:
            file.writelines(line for row, line in enumerate(metadata.lines(0, metadata.rows)) if kept[row])
        return
    import pyarrow as pa
    import pyarrow.parquet as pq

    with open_parquet(metadata.path) as source, pq.ParquetWriter(path, source.schema_arrow) as writer:
        start = 0
        for batch in source.iter_batches(_BATCH_ROWS):
            chosen = kept[start : start + batch.num_rows]
            start += batch.num_rows
            if chosen.any():
                writer.write_batch(batch.filter(pa.array(chosen)))
