"""What is the same: images that a source holds several times in a row, and digests of captions and features.

Dev and test of Flickr30K and MS-COCO in the precomp layout hold every image five times (5,070 rows for 1,014 images).
Taken for different images they tie with each other, and no recall at 1 could exceed a fifth.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from hashlib import blake2b
from typing import Any

import numpy as np

from truepair.data.pairs import Array, BoolArray, IntArray

_ROWS_AT_ONCE = 64
_AT_ONCE = 1024
_BEGINNING = 16  # numbers of an image


def copies(features: Any, names: Sequence[str] | None = None) -> int:
    """How many times in a row a source holds each image (>= 1): the images are the rows 0, k, 2 k, …

    All images must be held the same number of times: k is the largest number that divides the length of every run of
    rows that are equal bit by bit, or else of every run of equal names. Single repeated images, such as two products
    with one photograph, change nothing, and neither do two different images that are equal, each held k times.
    """
    by_features = _runs(features)
    return by_features if by_features > 1 or names is None else _runs(np.asarray(names, dtype=object))


def _runs(rows: Any) -> int:
    """The greatest common divisor of the lengths of all runs of equal rows; stops reading once it is one."""
    common, begin = 0, 0  # of the run that goes on
    for start in range(1, len(rows), _ROWS_AT_ONCE):
        here = np.asarray(rows[start - 1 : start + _ROWS_AT_ONCE])
        begins = start + np.flatnonzero(differ(here[1:], here[:-1]))
        common = int(np.gcd.reduce(np.diff(begins, prepend=begin), initial=common))
        begin = int(begins[-1]) if len(begins) else begin
        if common == 1:
            return 1
    return math.gcd(common, len(rows) - begin) if len(rows) else 1


def differ(ones: Array, others: Array) -> BoolArray:
    """Compared as bytes: a row with NaN equals itself."""
    if ones.dtype == object:
        return np.asarray(ones != others, dtype=np.bool_)
    ones, others = (np.ascontiguousarray(side).reshape(len(side), -1).view(np.uint8) for side in (ones, others))
    return np.asarray((ones != others).any(axis=1))


def bytes_digest(values: Array) -> int:
    """64 bits of an array's bytes."""
    return int.from_bytes(blake2b(np.ascontiguousarray(values).tobytes(), digest_size=8).digest(), "little")


def image_digests(features: Array, rows: IntArray | None = None) -> IntArray:
    """(n,) int64, the same for images of equal features: float16 and float32 of the same numbers are equal.

    Args:
        features: (N, R, D) or (N, D).
        rows: (n,) of which images; None for all.
    """
    found = np.empty(len(features) if rows is None else len(rows), dtype=np.uint64)
    for start in range(0, len(found), _AT_ONCE):
        here = slice(start, start + _AT_ONCE)
        block = np.asarray(features[here if rows is None else rows[here]]).astype(np.float32)
        found[here] = [bytes_digest(row) for row in block]
    return found.view(np.int64)


def first_copies(features: Array) -> IntArray:
    """(n,) int64: of each image the first one of equal features, itself where there is none before it.

    Most images differ in their first numbers from all others and are not read any further.

    Args:
        features: (n, R, D) or (n, D).
    """
    firsts = np.arange(len(features))
    _, group, sizes = np.unique(_beginnings(features), return_inverse=True, return_counts=True)
    alike = np.flatnonzero(sizes[group] > 1)
    if len(alike):
        _, first, group = np.unique(image_digests(features, alike), return_index=True, return_inverse=True)
        firsts[alike] = alike[first[group]]
    return firsts


def held_in(features: Array, others: Array) -> IntArray:
    """Which rows of the features, (m,) ascending, are equal to one of the others; both (n, R, D) or (n, D)."""
    keys = np.concatenate([_beginnings(features), _beginnings(others)])
    group = np.unique(keys, return_inverse=True)[1]
    here, there = group[: len(features)], group[len(features) :]
    alike, among = np.flatnonzero(np.isin(here, there)), np.flatnonzero(np.isin(there, here))
    if not len(alike):
        return alike
    return alike[np.isin(image_digests(features, alike), image_digests(others, among))]


def _beginnings(features: Array) -> Array:
    """(n,): the bytes of the first numbers of each image, as one key."""
    first = features.reshape(len(features), math.prod(features.shape[1:]))[:, :_BEGINNING].astype(np.float32)
    return np.ascontiguousarray(first).view(np.dtype((np.void, first.shape[1] * first.itemsize)))[:, 0]


def caption_key(caption: str) -> str:
    """The words, whatever their case and the spaces between them."""
    return " ".join(caption.split()).casefold()
