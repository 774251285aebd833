"""Rows of a collection of embeddings as unit vectors: drawn over all of it, or chunk by chunk and scored.

A chunk is read, scored against the bank, and put into bytes by the same function for every engine: it depends on the
collection, the bank and its range of rows alone.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from truepair.audit.scoring.bank import Bank
from truepair.audit.scoring.indicators import scored_columns
from truepair.audit.scoring.row_ranges import row_ranges
from truepair.data.collection import EmbeddingCollection
from truepair.data.pairs import Array, IntArray
from truepair.errors import InputError
from truepair.files import tensor_bytes
from truepair.seeding import generator

READ_ROWS = 8192
"""Rows in memory at a time; a chunk may be far longer."""
SAME = 1 - 1e-4
"""Cosine from which two vectors are of the same image, or of the same text: an image embedded again with its next
caption differs by the rounding of half precision, about 1e-5."""

_ENOUGH_MORE = 4
"""Where a draw meets unusable rows, the next one is so many times as large."""


class Units(NamedTuple):
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


def draw_bank(collection: EmbeddingCollection, size: int, *, seed: int, neighbours: int) -> Bank:
    """A bank of `size` usable rows drawn over the whole collection, or of all where there are fewer; an InputError
    where none can be used.
    """
    units = usable_rows(collection, size, seed=seed, purpose="audit bank")
    if not len(units.rows):
        raise InputError(
            f"{collection.name}: none of the {len(collection)} pairs can be scored; every row has NaN, infinite "
            "numbers or only zeros in its image's or its text's vector. Embed the pairs again"
        )
    return Bank.of(units.images, units.texts, torch.from_numpy(units.rows), neighbours=neighbours, same=SAME)


def usable_rows(collection: EmbeddingCollection, size: int, *, seed: int, purpose: str) -> Units:
    """`size` rows that can be scored, each as likely as any other, ascending; all there are where they are fewer."""
    found = read_units(collection, np.empty(0, dtype=np.int64))
    drawn, wanted, draws = found.rows, size, 0
    while wanted and len(drawn) < len(collection):
        draw = generator(seed, purpose, draws).choice(len(collection), min(wanted, len(collection)), replace=False)
        new = draw[~np.isin(draw, drawn)]
        drawn, draws = np.concatenate([drawn, new]), draws + 1
        found = joined([found, read_units(collection, np.sort(new))])
        wanted = 0 if len(found.rows) >= size else _ENOUGH_MORE * wanted
    taken = np.sort(drawn[np.isin(drawn, found.rows)][:size])
    order = np.argsort(found.rows)
    at = order[np.searchsorted(found.rows, taken, sorter=order)]
    return Units(taken, found.images[at], found.texts[at], found.unusable, found.reason)


def read_units(collection: EmbeddingCollection, rows: IntArray) -> Units:
    """Those of ascending rows that can be scored."""
    width, none = collection.width, np.empty(0, dtype=np.int64)
    parts = [Units(none, torch.empty(0, width), torch.empty(0, width), none, none.astype(np.uint8))]
    for piece, start, stop in collection.coming(row_ranges(rows)):
        images, texts = collection.read(start, stop)
        at = rows[piece] - start
        parts.append(unit_vectors(images[at], texts[at], rows[piece]))
    return joined(parts)


def joined(parts: list[Units]) -> Units:
    rows, images, texts, unusable, reason = zip(*parts, strict=True)
    numbers = (np.concatenate(column) for column in (rows, unusable, reason))
    return Units(next(numbers), torch.cat(images), torch.cat(texts), *numbers)
