"""Rows drawn from a collection of embeddings: the bank, and those that synthetic mismatches are made of."""

from __future__ import annotations

import numpy as np
import torch

from truepair.audit.scoring.bank import Bank
from truepair.audit.scoring.chunks import Units, unit_vectors
from truepair.audit.scoring.row_ranges import row_ranges
from truepair.data.collection import EmbeddingCollection
from truepair.data.pairs import BoolArray, IntArray
from truepair.errors import InputError
from truepair.seeding import generator

SAME = 1 - 1e-4
"""Cosine from which two vectors are of the same image, or of the same text: an image embedded again with its next
caption differs by the rounding of half precision, about 1e-5."""

_ENOUGH_MORE = 4
"""Where a draw meets unusable rows, the next one is so many times as large."""


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


def share_something(units: Units, left: IntArray, right: IntArray) -> BoolArray:
    """(q,) whether the rows at two places have the same image, or the same text, by their vectors."""
    alike = [(side[left] * side[right]).sum(dim=1) >= SAME for side in (units.images, units.texts)]
    shared: BoolArray = (alike[0] | alike[1]).numpy()
    return shared


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
    return Units(
        np.concatenate([part.rows for part in parts]),
        torch.cat([part.images for part in parts]),
        torch.cat([part.texts for part in parts]),
        np.concatenate([part.unusable for part in parts]),
        np.concatenate([part.reason for part in parts]),
    )
