"""Vectors by inner product: exact in blocks of rows, or from the cells of an inverted file (extra `faiss`)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from truepair.data.pairs import Array, BoolArray, IntArray

Floats = npt.NDArray[np.float32]
EXACT_UP_TO = 200_000
"""Vectors of one side that are searched exactly; of more, the extra `faiss` looks into some cells only."""
BLOCK_BYTES = 64 << 20
LEAST_PROBED = 64
"""Cells that a query looks into at least: with half of them, a tenth of the best is missed just above `EXACT_UP_TO`."""
DEEP = 1000
"""Hits down to which an inverted file is asked; whoever pages further gets all in their exact order."""


@dataclass(frozen=True)
class Ranked:
    """The best rows for one query: (k,) int64, best first, equal ones by row; and their scores, (k,) float32."""

    rows: IntArray
    scores: Floats


class Vectors(ABC):
    """N vectors of width D that can be searched.

    Attributes:
        held: (N, D) float32, perhaps memory-mapped.
        exact: whether every vector is compared.
    """

    held: Array
    exact: bool

    def __len__(self) -> int:
        return int(self.held.shape[0])

    @abstractmethod
    def search(self, queries: Floats, k: int, allowed: BoolArray | None = None) -> list[Ranked]:
        """The k rows of the largest inner products with each query; fewer where fewer are allowed.

        Args:
            queries: (Q, D).
            allowed: (N,) which rows may be found; None for all.
        """


class Exact(Vectors):
    """Every vector is compared, in blocks under a memory budget."""

    exact = True

    def __init__(self, held: Array, block_bytes: int = BLOCK_BYTES) -> None:
        self.held, self._block_bytes = held, block_bytes

    def search(self, queries: Floats, k: int, allowed: BoolArray | None = None) -> list[Ranked]:
        count, width = len(self), self.held.shape[1]
        rows_at_once = max(1, self._block_bytes // (4 * (width + len(queries))))
        found = [Ranked(np.empty(0, np.int64), np.empty(0, np.float32)) for _ in queries]
        for start in range(0, count, rows_at_once):
            block = np.asarray(self.held[start : start + rows_at_once], dtype=np.float32)
            rows = np.arange(start, start + len(block), dtype=np.int64)
            if allowed is not None:
                rows = rows[allowed[start : start + len(block)]]
                block = block if len(rows) == len(block) else block[rows - start]
            if not len(rows):
                continue
            scores = block @ queries.T if len(queries) > 1 else (block @ queries[0])[:, None]
            for query in range(len(queries)):
                better = best(rows, scores[:, query], k)
                found[query] = merged(found[query], better, k)
        return found


def best(rows: IntArray, scores: Floats, k: int) -> Ranked:
    """The k best of some rows in ascending order; of equal scores the first rows."""
    if k < len(scores):
        bound = np.partition(scores, len(scores) - k)[len(scores) - k]
        above, level = np.flatnonzero(scores > bound), np.flatnonzero(scores == bound)
        kept = np.concatenate([above, level[: k - len(above)]])
        rows, scores = rows[kept], scores[kept]
    order = np.lexsort((rows, -scores))
    return Ranked(rows[order], np.ascontiguousarray(scores[order], dtype=np.float32))


def merged(one: Ranked, other: Ranked, k: int) -> Ranked:
    """The k best of both."""
    if not len(one.rows):
        return other
    rows, scores = np.concatenate([one.rows, other.rows]), np.concatenate([one.scores, other.scores])
    order = np.lexsort((rows, -scores))[:k]
    return Ranked(rows[order], scores[order])


class InvertedFile(Vectors):
    """√N cells by k-means, of which a query looks into the nearest sixteenth, at least 64.

    Deep pages, narrow choices, and queries near which too little of a choice lies, are exact.

    Args:
        held: (N, D).
        cells: a trained faiss index; None trains one, which takes as long as docs/speed.md says.
    """

    exact = False

    def __init__(self, held: Array, cells: Any = None) -> None:
        self.held, self._whole = held, Exact(held)
        self.cells = trained(held) if cells is None else cells
        self.cells.nprobe = max(LEAST_PROBED, self.cells.nlist // 16)

    def search(self, queries: Floats, k: int, allowed: BoolArray | None = None) -> list[Ranked]:
        import faiss

        narrow = allowed is not None and int(allowed.sum()) * 20 < len(self)
        if k > DEEP or narrow:
            return self._whole.search(queries, k, allowed)
        choice = None
        if allowed is not None:
            among = faiss.IDSelectorBatch(np.flatnonzero(allowed).astype(np.int64))
            parameters: Any = faiss.SearchParametersIVF
            choice = parameters(nprobe=self.cells.nprobe, sel=among)
        scores, rows = self.cells.search(np.ascontiguousarray(queries, dtype=np.float32), k, params=choice)
        found = [
            Ranked(row[row >= 0].astype(np.int64), score[row >= 0]) for row, score in zip(rows, scores, strict=True)
        ]
        wanted = min(k, len(self) if allowed is None else int(allowed.sum()))
        few = [query for query, ranked in enumerate(found) if len(ranked.rows) < wanted]
        for query, ranked in zip(few, self._whole.search(queries[few], k, allowed) if few else (), strict=True):
            found[query] = ranked
        return found


def trained(held: Array) -> Any:
    """An inverted file of all vectors. Its k-means sees 64 vectors a cell at most, drawn by a seed of its own."""
    import faiss

    count, width = held.shape
    lists = max(1, round(count**0.5))
    cells = faiss.IndexIVFFlat(faiss.IndexFlatIP(width), width, lists, faiss.METRIC_INNER_PRODUCT)
    cells.cp.niter, cells.cp.seed, cells.cp.max_points_per_centroid = 8, 1234, 64
    rows = np.sort(np.random.default_rng(0).permutation(count)[: 64 * lists])
    cells.train(np.asarray(held[rows], dtype=np.float32))
    for start in range(0, count, 65_536):
        cells.add(np.asarray(held[start : start + 65_536], dtype=np.float32))
    return cells


def have_faiss() -> bool:
    """Whether the extra is installed."""
    from importlib.util import find_spec

    return find_spec("faiss") is not None


def vectors_of(held: Array, exact: bool | None = None) -> Vectors:
    """What searches some vectors: all of them up to `EXACT_UP_TO`, or where faiss is missing; else an inverted file.

    Args:
        exact: says which, whatever their number.
    """
    if exact is None:
        exact = len(held) <= EXACT_UP_TO or not have_faiss()
    return Exact(held) if exact else InvertedFile(held)
