"""Which captions are the same, and which are all but the same."""

from __future__ import annotations

import re
import unicodedata
from hashlib import blake2b

import numpy as np

from truepair.audit.scoring.row_ranges import row_ranges
from truepair.data.collection import Collection
from truepair.data.pairs import Array, IntArray
from truepair.phrases import printable

# Signs that carry the sentence, not the meaning. Others stay: "keycap: #" is not "keycap: *".
PUNCTUATION = re.compile(r"""[.,;:!?¡¿'"‘’“”„«»()\[\]{}/\\…–—_-]+""")


def caption_classes(collection: Collection, rows: IntArray) -> tuple[IntArray, IntArray]:
    """Two class numbers for every pair, (M,) each, −1 where the caption is empty.

    The first is shared by captions that are equal after Unicode NFKC, case folding and joining of spaces; the second by
    captions of the same words, whatever their order and punctuation.
    """
    same, near = np.zeros(len(rows), dtype=np.uint64), np.zeros(len(rows), dtype=np.uint64)
    for piece, start, stop in row_ranges(rows):
        captions = collection.captions(start, stop)
        for position, row in enumerate(rows[piece].tolist(), start=piece.start):
            caption = plain(captions[row - start])
            if caption:
                same[position], near[position] = digest(caption), digest(words_of(caption))
    empty = same == 0
    classes = numbered(same), numbered(near)
    for numbers in classes:
        numbers[empty] = -1
    return classes


def plain(caption: str) -> str:
    return " ".join(unicodedata.normalize("NFKC", printable(caption)).casefold().split())


def words_of(caption: str) -> str:
    """The words of a plain caption in alphabetical order; the caption itself where it is punctuation alone."""
    return " ".join(sorted(PUNCTUATION.sub(" ", caption).split())) or caption


def digest(text: str) -> int:
    """64 bits, never 0, the same on every machine."""
    return int.from_bytes(blake2b(text.encode("utf-8"), digest_size=8).digest(), "little") or 1


def numbered(values: Array) -> IntArray:
    """(M,) values → (M,) int64 class numbers from 0; equal values share a number."""
    return np.asarray(np.unique(values, return_inverse=True)[1], dtype=np.int64)
