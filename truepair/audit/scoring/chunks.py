"""One chunk of a collection of embeddings: read, made unit vectors, scored against the bank, and put into bytes.

The same function for every engine: a chunk depends on the collection, the bank and its range of rows alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from truepair.audit.scoring.bank import Bank
from truepair.audit.scoring.indicators import scored_columns
from truepair.data.collection import EmbeddingCollection
from truepair.data.pairs import Array, IntArray
from truepair.files import tensor_bytes

READ_ROWS = 8192
"""Rows in memory at a time; a chunk may be far longer."""
UNUSABLE = {
    "nan-row": "a number of the image's or the text's vector is NaN or infinite",
    "zero-row": "the image's or the text's vector is all zeros",
}
"""Why a row cannot be scored; stored by position."""


@dataclass(frozen=True)
class Units:
    """Rows of a collection as unit vectors, those that can be scored, and the others.

    Attributes:
        rows: (n,) int64, which rows of the collection.
        images, texts: (n, D) float32, unit rows.
        unusable: (u,) int64, the rows left out.
        reason: (u,) uint8, positions in `UNUSABLE`.
    """

    rows: IntArray
    images: Tensor
    texts: Tensor
    unusable: IntArray
    reason: Array


def unit_vectors(images: Array, texts: Array, rows: IntArray) -> Units:
    """Unit vectors of the rows of both sides, (n, D) each of any length, without those that have none."""
    sides, broken, empty = [], np.zeros(len(rows), dtype=bool), np.zeros(len(rows), dtype=bool)
    for side in (images, texts):
        vectors = torch.from_numpy(np.array(side, dtype=np.float32))
        # The largest entry is NaN or infinite where any is; divided by it, no square overflows or vanishes.
        largest = torch.linalg.vector_norm(vectors, ord=torch.inf, dim=1, keepdim=True)
        broken |= ~torch.isfinite(largest[:, 0]).numpy()
        empty |= (largest[:, 0] == 0).numpy()
        vectors /= largest
        sides.append(vectors.div_(torch.linalg.vector_norm(vectors, dim=1, keepdim=True)))
    bad = broken | empty
    image_units, text_units = (side[torch.from_numpy(~bad)] if bad.any() else side for side in sides)
    return Units(rows[~bad], image_units, text_units, rows[bad], np.where(broken[bad], 0, 1).astype(np.uint8))


def chunk_bytes(collection: EmbeddingCollection, bank: Bank, start: int, stop: int) -> bytes:
    """The scores of the rows [start, stop) as a safetensors file: always the same bytes.

    Columns: rows (n,) int64, similarity, log_odds and the bank's indicators (n,) float32; unusable (u,) int64 and
    reason (u,) uint8 for the rows that could not be scored.
    """
    tables = []
    for first in range(start, stop, READ_ROWS):
        end = min(first + READ_ROWS, stop)
        units = unit_vectors(*collection.read(first, end), np.arange(first, end, dtype=np.int64))
        scored = scored_columns(units.images, units.texts, bank, units.rows, units.rows)
        tables.append({"rows": units.rows, **scored, "unusable": units.unusable, "reason": units.reason})
    return tensor_bytes({name: np.concatenate([table[name] for table in tables]) for name in tables[0]})


@contextmanager
def threads(count: int | None) -> Iterator[None]:
    """Within the block torch computes on so many threads; None leaves their number as it is."""
    before = torch.get_num_threads()
    torch.set_num_threads(before if count is None else count)
    try:
        yield
    finally:
        torch.set_num_threads(before)
