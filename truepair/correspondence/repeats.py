"""What stands in a data set several times: copies of pairs, and captions of many images.

Pairs are crawled twice, saved again at another size, oversampled. From a copy a model learns the caption of a pair that
it has not seen, right or wrong. So whatever is held out has to be held out with its copies. And a caption of a tenth of
all images, such as "image of the day", fits each of them as well as a random caption does, matched or not.

Shape letters: N pairs, D and E widths of the vectors.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from truepair.correspondence.canonical import unit
from truepair.correspondence.near_vectors import near_classes
from truepair.data.pairs import Array, IntArray

ALIKE = 0.6
"""Cosine of two images, centred, from which they count as one where their captions are equal. Of 300 photographs saved
again it is 0.93 and more, cropped by a twentieth 0.81, at half the size 0.54 (one in a hundred) to 0.74 (the median).
Of products, drawings, photographs and emoji 0.4, 0.3, 0.02 and 20 % of the images have another one of this kind."""
EQUAL = 1 - 1e-5  # cosine of equal captions, but for rounding
FEW = 8  # pairs of one caption, up to which captions are compared all at once
BLOCK = 1024  # pairs of one caption that are compared with each other
ROWS_AT_ONCE = 4096


@dataclass(frozen=True)
class _Captions:
    """Centred captions of length one."""

    texts: Array
    mean: Array
    near: float = EQUAL
    block: int = ROWS_AT_ONCE

    def unit(self, rows: IntArray) -> Array:
        """(n, E) float32."""
        return unit(self.texts[rows] - self.mean)


def caption_classes(texts: Array) -> IntArray:
    """(N,) a number for every caption, the same for equal ones.

    Args:
        texts: (N, E) float32, finite; equal captions have equal vectors, but for rounding.
    """
    mean = texts.mean(axis=0, dtype=np.float64).astype(np.float32)
    return near_classes(_Captions(texts, mean), np.arange(len(texts)), seed=0)


def with_copies(images: Array, captions: IntArray, image_rows: IntArray) -> IntArray:
    """(N,) the first image of those that pairs are copies of each other with; its own image for most pairs.

    Args:
        images: (N, D) float32, finite.
        captions: (N,) the class of the caption of every pair.
        image_rows: (N,) which image a pair has.
    """
    distinct, image = np.unique(image_rows, return_inverse=True)
    left, right = alike(images, captions)
    group = components(image[left], image[right], len(distinct))
    _, first, group = np.unique(group, return_index=True, return_inverse=True)
    found: IntArray = distinct[first[group]][image]
    return found


def alike(images: Array, captions: IntArray) -> tuple[IntArray, IntArray]:
    """Pairs of equal captions and images of a cosine of `ALIKE`, (L,) each; enough of them to link all that are.

    Of a caption of more than 1,024 pairs those are compared that are next to each other along the first axis.
    """
    order = np.lexsort((images[:, 0], captions))
    _, begins, sizes = np.unique(captions[order], return_index=True, return_counts=True)
    mean = images.mean(axis=0, dtype=np.float64).astype(np.float32)
    found = [np.empty((2, 0), dtype=np.int64)]
    few = order[np.repeat((sizes > 1) & (sizes <= FEW), sizes)]  # of many captions: all at once
    for step in range(1, FEW):
        left, right = few[:-step], few[step:]
        for start in range(0, len(left), ROWS_AT_ONCE):
            one, other = left[start : start + ROWS_AT_ONCE], right[start : start + ROWS_AT_ONCE]
            same = captions[one] == captions[other]
            one, other = one[same], other[same]
            cosine = np.einsum("nd,nd->n", unit(images[one] - mean), unit(images[other] - mean))
            found.append(np.stack([one, other])[:, cosine >= ALIKE])
    for begin, size in zip(begins[sizes > FEW].tolist(), sizes[sizes > FEW].tolist(), strict=True):
        for start in range(begin, begin + size, BLOCK):
            rows = order[start : min(start + BLOCK, begin + size)]
            vectors = unit(images[rows] - mean)
            left, right = np.nonzero(vectors @ vectors.T >= ALIKE)
            group = components(left, right, len(rows))
            _, first = np.unique(group, return_index=True)
            found.append(np.stack([rows, rows[first[group]]]))
    left, right = np.concatenate(found, axis=1)
    return left, right


def components(left: IntArray, right: IntArray, count: int) -> IntArray:
    """(count,) the number of the connected component of each, of a graph with these edges (L,)."""
    from scipy.sparse import coo_matrix
    from scipy.sparse.csgraph import connected_components

    links = coo_matrix((np.ones(len(left), dtype=bool), (left, right)), shape=(count, count))
    return np.asarray(connected_components(links, directed=False)[1], dtype=np.int64)
