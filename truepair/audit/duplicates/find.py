"""All duplicates of a collection, a kind after the other."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from truepair.audit.duplicates.captions import caption_classes
from truepair.audit.duplicates.images import image_classes, own_reader, vector_classes, vectors_of_images
from truepair.audit.result import DuplicateGroup
from truepair.correspondence.near_vectors import near_classes
from truepair.data.collection import Collection
from truepair.data.pairs import IntArray
from truepair.errors import InputError

MOST_GROUPS = 100_000


def find_duplicates(
    collection: Collection,
    rows: IntArray,
    *,
    near: float | None = None,
    seed: int = 0,
    most: int = MOST_GROUPS,
) -> list[DuplicateGroup]:
    """Groups of pairs that share an image, a caption or both.

    A pair is in at most one group of a kind (see `DUPLICATES`). Groups come kind by kind, largest first.

    - same-image: images that are different to the source hold the same bytes (features, or vectors of an embedding).
      An image with several captions is one image. Groups whose captions are all the same are same-pair alone.
    - near-image: linked by a cosine of at least `near`: of 16 × 16 pixels where the pictures are in memory (0.995), of
      features (0.995), of embeddings (0.97; all centred). Up to 20,000 images every link is found, beyond that those
      that sorting by signs finds (over 95 % of those just above the limit, more of the closer ones).
    - same-caption: equal but for case, spaces and Unicode forms, on images that hold different bytes. Where there are
      no words, vectors of texts that are equal byte for byte.
    - near-caption: the same words in another order, or with other punctuation.
    - same-pair: the same image bytes and the same caption.

    Memory: some 100 bytes a pair, and 1 KB for each of at most 20,000 images.

    Args:
        rows: (M,) ascending rows of the collection.
        near: another limit, in (0, 1].
        seed: of the random projections.
        most: groups that are kept of each kind, the largest.

    Raises:
        InputError: `near` is out of range.
    """
    if near is not None and not 0 < near <= 1:
        raise InputError(f"near is {near}; expected a cosine in (0, 1], such as 0.995")
    if not len(rows):
        return []
    read = own_reader(collection, 0)
    captions, words = caption_classes(collection, rows)
    texts = own_reader(collection, 1)
    if texts is not None and (captions < 0).all():
        captions = words = vector_classes(texts, rows)
    found: dict[str, list[IntArray]] = {}
    classes = image_classes(collection, rows, read)
    if classes is None:
        images = names = np.arange(len(rows))
    else:
        images, names = classes
        pairs = np.where(captions < 0, -1, images * (captions.max() + 1) + captions)
        found["same-pair"] = groups_of(pairs, most=most)
        known = (captions >= 0).any()
        found["same-image"] = groups_of(images, varying=(names, captions) if known else (names,), most=most)
        vectors = vectors_of_images(collection, rows, read, near)
        if vectors is not None:
            first = np.unique(images, return_index=True)[1]
            ascending = np.argsort(first)
            alike = np.empty(len(first), dtype=np.int64)
            alike[ascending] = near_classes(vectors, rows[first[ascending]], seed=seed)
            found["near-image"] = groups_of(alike[images], varying=(images,), most=most)
    found["same-caption"] = groups_of(captions, varying=(images,), most=most)
    found["near-caption"] = groups_of(words, varying=(captions,), most=most)
    order = ("same-pair", "same-image", "same-caption", "near-image", "near-caption")
    return [DuplicateGroup(kind, rows[group]) for kind in order for group in found.get(kind, [])]


def groups_of(classes: IntArray, *, varying: Sequence[IntArray] = (), most: int) -> list[IntArray]:
    """Positions of the pairs that share a class, ascending, a group each; the largest first, then by first pair.

    Args:
        classes: (M,) the class of each pair; −1 is none.
        varying: (M,) arrays that must each take two or more values within a group.
        most: of so many groups the largest are kept.
    """
    order = np.argsort(classes, kind="stable")
    order = order[np.searchsorted(classes[order], 0) :]
    if not len(order):
        return []
    starts = np.flatnonzero(np.diff(classes[order], prepend=-1))
    sizes = np.diff(starts, append=len(order))
    wanted = sizes > 1
    for values in varying:
        inside = values[order]
        wanted &= np.minimum.reduceat(inside, starts) != np.maximum.reduceat(inside, starts)
    starts, sizes = starts[wanted], sizes[wanted]
    ranked = np.lexsort((order[starts], -sizes))[:most]
    return [order[starts[group] : starts[group] + sizes[group]] for group in ranked]
