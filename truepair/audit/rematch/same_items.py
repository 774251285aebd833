"""Which pairs have the same image, and which the same caption, as numbers: equal numbers, equal items.

A collection of embeddings has no index of images. An image with five captions is five rows of equal vectors, or of one
name in the metadata; what is not seen to be the same image would take its own captions for those of others.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from truepair.audit.duplicates.captions import digest
from truepair.audit.scoring.row_ranges import row_ranges, words_at
from truepair.data.collection import Collection, EmbeddingCollection, PairsCollection
from truepair.data.pairs import IntArray
from truepair.data.repeats import bytes_digest
from truepair.phrases import printable

MOST_CAPTIONS = 100
"""A name that more rows share is no name of one image."""


def same_items(collection: Collection, rows: IntArray) -> tuple[IntArray, IntArray]:
    """Numbers of the images and of the captions of some pairs (ascending rows), (M,) int64 each; their size means
    nothing.

    Images are told apart by their index, or, where there are embeddings, by the bytes of their vectors and by their
    names (`image_numbers`). Captions are the same where their words are, but for case and spaces; those without words
    by their index or their vectors. Reads in ranges; remembers 8 bytes a number.
    """
    if isinstance(collection, PairsCollection):
        captions = caption_numbers(words_at(collection.captions, rows), collection.pairs.text_index[rows])
        return collection.pairs.image_index[rows], captions
    assert isinstance(collection, EmbeddingCollection)
    held, named, captions = (np.empty(len(rows), dtype=np.int64) for _ in range(3))
    for piece, start, stop in row_ranges(rows):
        at = (rows[piece] - start).tolist()
        images, texts = collection.read(start, stop)
        held[piece] = signed([bytes_digest(images[row]) for row in at])
        texts_held = signed([bytes_digest(texts[row]) for row in at])
        words = collection.captions(start, stop)
        captions[piece] = caption_numbers([words[row] for row in at], texts_held)
        named[piece] = name_numbers(collection, start, stop)[at]
    return image_numbers(held, named), captions


def image_numbers(held: IntArray, named: IntArray) -> IntArray:
    """(M,) the numbers `held` by the images' vectors, but one for all images of a name: that of the first. A name on
    more than a hundred rows ("", "image.jpg") counts as none, as the number 0 does.
    """
    if not named.any():
        return held
    _, first, place, count = np.unique(named, return_index=True, return_inverse=True, return_counts=True)
    shared = (named != 0) & (count[place] <= MOST_CAPTIONS)
    return np.where(shared, held[first[place]], held)


def name_numbers(collection: Collection, start: int, stop: int) -> IntArray:
    """Numbers of the names of the images of the rows [start, stop); 0 where they are but the names of the pairs."""
    names = collection.image_names(start, stop)
    if names == collection.ids(start, stop):
        return np.zeros(stop - start, dtype=np.int64)
    return signed([digest(printable(name)) if name else 0 for name in names])


def caption_numbers(captions: Sequence[str], otherwise: IntArray) -> IntArray:
    """(n,) numbers of captions by their words; `otherwise` (n,) where there are none."""
    words = (" ".join(printable(caption).split()).casefold() for caption in captions)
    numbers = signed([digest(text) if text else 0 for text in words])  # a digest is never 0
    return np.where(numbers == 0, otherwise, numbers)


def signed(numbers: list[int]) -> IntArray:
    """Numbers of 64 bits as int64."""
    return np.array(numbers, dtype=np.uint64).view(np.int64)
