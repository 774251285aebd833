"""Embeddings as arrays: what training takes of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from truepair.data.pairs import Array, BoolArray, Images, IntArray, Pairs, Texts
from truepair.data.repeats import copies
from truepair.device import check_memory
from truepair.errors import InputError

if TYPE_CHECKING:
    from truepair.data.collection import EmbeddingCollection

_ROWS_AT_ONCE = 65_536


def load_vectors(collection: EmbeddingCollection) -> Pairs:
    """The pairs of embeddings as arrays; see `EmbeddingCollection.load`."""
    count, width = len(collection), collection.width
    check_memory(8 * count * width, f"{collection.name}: its {count:,} pairs of vectors (take some of the shards)")
    sides: tuple[Array, Array] = (np.empty((count, width), np.float32), np.empty((count, width), np.float32))
    captions, names, ids, rows = list[str](), list[str](), list[str](), list[IntArray]()
    kept = 0
    for start in range(0, count, _ROWS_AT_ONCE):
        stop = min(start + _ROWS_AT_ONCE, count)
        read = collection.read(start, stop)
        good = np.flatnonzero(usable(read[0]) & usable(read[1]))
        for side, vectors in zip(sides, read, strict=True):
            side[kept : kept + len(good)] = vectors[good]
        kept += len(good)
        rows.append(start + good)
        for found, values in (
            (captions, collection.captions(start, stop)),
            (names, collection.image_names(start, stop)),
            (ids, collection.ids(start, stop)),
        ):
            found += [values[row] for row in good.tolist()]
    if not kept:
        raise InputError(f"{collection.name}: no row can be used, all are zero or not finite. Compute them again")
    images, texts = (side[:kept] for side in sides)
    each = copies(images, names)
    index = np.arange(kept, dtype=np.int64)
    return Pairs(
        images=Images(images[::each], tuple(names[::each]), copies=each),
        texts=Texts(tuple(captions), tuple(ids), texts),
        image_index=index // each,
        text_index=index,
        name=collection.name,
        source_rows=np.concatenate(rows),
        pair_ids=ids,
    )


def usable(vectors: Array) -> BoolArray:
    """(n,) whether a row is finite and has a direction."""
    return np.asarray(np.isfinite(vectors).all(axis=1) & vectors.any(axis=1))
