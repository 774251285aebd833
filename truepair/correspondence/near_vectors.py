"""Vectors that are all but the same: all of them among some, nearly all of them among many.

Up to 20,000 vectors each is compared with each, in blocks, after a random projection to 256 numbers; beyond that they
are sorted by the signs of random projections (Charikar 2002, "Similarity estimation techniques from rounding
algorithms") in twelve orders, and compared with their neighbours there. What either finds is checked with the vectors
themselves, so that nothing is reported that is not near.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

import numpy as np

from truepair.data.pairs import Array, IntArray

EXACT = 20_000
WIDTH = 256
BLOCK = 512
LINKS = 32  # of a vector with more near ones only the nearest are linked; the others hang on those
SLACK = 1.5  # distances² after a projection to 256 numbers deviate by 9 % (one sigma)
WORDS = WIDTH // 64
TURNS = (0, 21, 42)  # with four words of 64 bits twelve orders, each led by 21 bits of its own
NEIGHBOURS = 3


class UnitVectors(Protocol):
    """Vectors of length 1 (or 0, which are near nothing), by their rows.

    Attributes:
        near: cosine from which two are all but the same.
        block: how many are read at once.
    """

    @property
    def near(self) -> float: ...

    @property
    def block(self) -> int: ...

    def unit(self, rows: IntArray) -> Array:
        """(n, D) float32."""
        ...


def near_classes(vectors: UnitVectors, rows: IntArray, *, seed: int) -> IntArray:
    """(U,) int64: those of U ascending rows that are linked by a cosine of at least `vectors.near` share a number."""
    from scipy.sparse import coo_matrix
    from scipy.sparse.csgraph import connected_components

    size = len(rows)
    pairs = by_comparing(vectors, rows, seed) if size <= EXACT else by_sorting(vectors, rows, seed)
    links = checked(vectors, rows, pairs)
    graph = coo_matrix((np.ones(len(links), dtype=bool), (links[:, 0], links[:, 1])), shape=(size, size))
    return np.asarray(connected_components(graph, directed=False)[1], dtype=np.int64)


def projected(vectors: UnitVectors, rows: IntArray, seed: int) -> Iterator[tuple[slice, Array]]:
    """Blocks of the vectors as 256 random projections, scaled so that distances stay what they are on average."""
    from truepair.seeding import generator  # which loads torch

    directions: Array | None = None
    for start in range(0, len(rows), vectors.block):
        block = vectors.unit(rows[start : start + vectors.block])
        if directions is None:
            draws = generator(seed, "near-duplicates").standard_normal((block.shape[1], WIDTH), dtype=np.float32)
            directions = draws / np.sqrt(np.float32(WIDTH))
        yield slice(start, start + len(block)), block @ directions


def by_comparing(vectors: UnitVectors, rows: IntArray, seed: int) -> IntArray:
    """(L, 2) candidates i < j: each with each, by their projections."""
    low = np.empty((len(rows), WIDTH), dtype=np.float32)
    for piece, block in projected(vectors, rows, seed):
        low[piece] = block
    squares = np.einsum("nd,nd->n", low, low)
    limit = SLACK * 2 * (1 - vectors.near) + 1e-5
    found = []
    for start in range(0, len(low), BLOCK):
        distances = low[start : start + BLOCK] @ low[start:].T
        distances *= -2
        distances += squares[start : start + BLOCK, None]
        distances += squares[start:]
        distances[np.tril_indices(len(distances), m=distances.shape[1])] = np.inf
        crowded = np.flatnonzero((distances <= limit).sum(axis=1) > LINKS)
        for row in crowded:
            kept = np.argpartition(distances[row], LINKS)[:LINKS]
            nearest = distances[row, kept]
            distances[row] = np.inf
            distances[row, kept] = nearest
        left, right = np.nonzero(distances <= limit)
        found.append(np.stack([left + start, right + start], axis=1))
    return np.concatenate(found) if found else np.empty((0, 2), dtype=np.int64)


def by_sorting(vectors: UnitVectors, rows: IntArray, seed: int) -> IntArray:
    """(L, 2) candidates i < j: neighbours in an order of their signs that differ in few of the 256 signs."""
    signs = np.empty((len(rows), WORDS), dtype=np.uint64)
    for piece, block in projected(vectors, rows, seed):
        signs[piece] = np.packbits(block > 0, axis=1).view(np.uint64)
    different = WIDTH * np.arccos(vectors.near) / np.pi
    limit = different + 4 * np.sqrt(different) + 1
    size, codes = len(rows), [np.empty(0, dtype=np.int64)]
    for word in range(WORDS):
        for turn in TURNS:
            bits = signs[:, word]
            turned = (bits << np.uint64(turn)) | (bits >> np.uint64((64 - turn) % 64)) if turn else bits
            order = np.argsort(turned, kind="stable")
            for step in range(1, NEIGHBOURS + 1):
                left, right = order[:-step], order[step:]
                close = hamming(signs, left, right) <= limit
                low, high = np.minimum(left, right)[close], np.maximum(left, right)[close]
                codes.append(low * size + high)
            codes = [np.unique(np.concatenate(codes))]
    return np.stack(np.divmod(codes[0], size), axis=1)


_ONES = np.unpackbits(np.arange(256, dtype=np.uint8)[:, None], axis=1).sum(axis=1, dtype=np.uint8)


def hamming(signs: Array, left: IntArray, right: IntArray) -> IntArray:
    """In how many signs the vectors of `left` and `right` differ, (n,)."""
    counts = np.empty(len(left), dtype=np.int64)
    for start in range(0, len(left), 1 << 16):
        piece = slice(start, start + (1 << 16))
        counts[piece] = _ONES[(signs[left[piece]] ^ signs[right[piece]]).view(np.uint8)].sum(axis=1, dtype=np.int64)
    return counts


def checked(vectors: UnitVectors, rows: IntArray, pairs: IntArray) -> IntArray:
    """Those of the candidates that are near indeed, a few thousand vectors in memory at a time."""
    near = np.zeros(len(pairs), dtype=bool)
    for start in range(0, len(pairs), vectors.block):
        piece = slice(start, start + vectors.block)
        used, index = np.unique(pairs[piece], return_inverse=True)
        unit, (left, right) = vectors.unit(rows[used]), index.reshape(-1, 2).T
        near[piece] = np.einsum("nd,nd->n", unit[left], unit[right], dtype=np.float64) >= vectors.near
    return pairs[near]
