"""What is the same, told by content: digests of captions and of the features of images."""

from __future__ import annotations

from hashlib import blake2b

import numpy as np

from truepair.data.pairs import Array, IntArray

_AT_ONCE = 1024


def bytes_digest(values: Array) -> int:
    """64 bits of an array's bytes."""
    return int.from_bytes(blake2b(np.ascontiguousarray(values).tobytes(), digest_size=8).digest(), "little")


def image_digests(features: Array) -> IntArray:
    """(n,) int64, the same for images of equal features: float16 and float32 of the same numbers are equal.

    Args:
        features: (n, R, D) or (n, D).
    """
    found = np.empty(len(features), dtype=np.uint64)
    for start in range(0, len(features), _AT_ONCE):
        block = np.asarray(features[start : start + _AT_ONCE]).astype(np.float32)
        found[start : start + len(block)] = [bytes_digest(row) for row in block]
    return found.view(np.int64)


def caption_key(caption: str) -> str:
    """The words, whatever their case and the spaces between them."""
    return " ".join(caption.split()).casefold()
