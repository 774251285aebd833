"""An index of vectors: built, and searched exactly or by cells, and what the cells miss.

python -m benchmarks.bench_index
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from benchmarks.measure import median_seconds
from truepair.search.vectors import Exact, InvertedFile, Vectors, have_faiss

WIDTH, SIZES, QUERIES, K = 512, (100_000, 250_000, 1_000_000), 64, 10
_CENTRES = 5000


@dataclass(frozen=True)
class Row:
    """One line of the table: seconds to build, milliseconds of a query alone and in a batch of `QUERIES`.

    `recall` is the share of the exact `K` best that are found.
    """

    size: int
    way: str
    build_seconds: float
    query_ms: float
    batch_ms: float
    recall: float


def measure() -> list[Row]:
    """Both ways at every size; vectors in clusters, as those of pictures are, queries beside some of them."""
    rows = []
    for size in SIZES:
        rng = np.random.default_rng(0)
        held = clustered(size, rng)
        queries = held[rng.integers(size, size=QUERIES)] + 0.02 * rng.standard_normal(
            (QUERIES, WIDTH), dtype=np.float32
        )
        exact = Exact(held)
        truth = [set(found.rows.tolist()) for found in exact.search(queries, K)]
        rows.append(_row(size, "exact", exact, 0.0, queries, truth))
        if have_faiss():
            began = time.perf_counter()
            cells = InvertedFile(held)
            rows.append(_row(size, "cells (faiss)", cells, time.perf_counter() - began, queries, truth))
    return rows


def clustered(size: int, rng: np.random.Generator) -> np.ndarray[tuple[int, int], np.dtype[np.float32]]:
    """(size, WIDTH) unit vectors around `_CENTRES` directions, the cosine of two of one cluster about a half."""
    centres = rng.standard_normal((_CENTRES, WIDTH), dtype=np.float32)
    found = np.empty((size, WIDTH), dtype=np.float32)
    for start in range(0, size, 50_000):
        part = found[start : start + 50_000]
        part[:] = centres[rng.integers(_CENTRES, size=len(part))]
        part += rng.standard_normal(part.shape, dtype=np.float32)
        part /= np.linalg.norm(part, axis=1, keepdims=True)
    return found


def _row(size: int, way: str, index: Vectors, build: float, queries: np.ndarray, truth: Sequence[set[int]]) -> Row:
    found = index.search(queries, K)
    recall = np.mean([len(known & set(each.rows.tolist())) / K for known, each in zip(truth, found, strict=True)])
    each = iter(range(10**9))
    alone = median_seconds(lambda: index.search(queries[next(each) % QUERIES][None], K), 9)
    batch = median_seconds(lambda: index.search(queries, K), 3)
    return Row(size, way, build, 1000 * alone, 1000 * batch / QUERIES, float(recall))


def table(rows: Sequence[Row]) -> str:
    lines = [f"{'vectors':>10}  {'way':14}{'build s':>9}{'ms/query':>10}{'ms, in batches':>16}{'recall@10':>11}"]
    for row in rows:
        lines.append(
            f"{row.size:10,}  {row.way:14}{row.build_seconds:9.1f}{row.query_ms:10.1f}{row.batch_ms:16.2f}"
            f"{row.recall:11.3f}"
        )
    return "\n".join(lines)


if __name__ == "__main__":
    print(table(measure()))
