"""Which pairs of a collection are written anew, and the weight of each."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from truepair.data.pairs import Array, BoolArray, IntArray

_ROWS_AT_ONCE = 65_536
_CHUNK_BYTES = 16 * 2**20


@dataclass(frozen=True)
class Selection:
    """One entry for each row of the collection.

    Attributes:
        kept: (N,) whether the pair is written.
        flagged: (N,) whether it was flagged as mismatched; a pair that could not be scored is neither.
        weights: (N,) float32 in [0, 1]: how far to trust each pair; 0 for those that are flagged or were not scored.
        p_match: (N,) float32 probability that each pair matches, NaN where it was not scored; None where nobody asked.
    """

    kept: BoolArray
    flagged: BoolArray
    weights: Array
    p_match: Array | None = None

    @property
    def kept_rows(self) -> IntArray:
        """The rows of the kept pairs, ascending."""
        return np.flatnonzero(self.kept)

    def ranges(self) -> Iterator[tuple[int, int]]:
        """All rows, a few ten thousand at a time."""
        for start in range(0, len(self.kept), _ROWS_AT_ONCE):
            yield start, min(start + _ROWS_AT_ONCE, len(self.kept))


def write_npy(path: Path, shape: tuple[int, ...], dtype: npt.DTypeLike, pieces: Iterable[Array]) -> None:
    """Write a .npy file, larger than the memory if need be: its rows come in pieces, which together have the shape."""
    kind, rows = np.dtype(dtype), 0
    with path.open("wb") as file:
        header = {"descr": np.lib.format.dtype_to_descr(kind), "fortran_order": False, "shape": shape}
        np.lib.format.write_array_header_1_0(file, header)
        for piece in pieces:
            np.ascontiguousarray(piece, dtype=kind).tofile(file)
            rows += len(piece)
    if rows != shape[0]:
        raise ValueError(f"{path}: {rows} rows written, {shape[0]} announced")


def taken(array: Array, rows: IntArray) -> Iterator[Array]:
    """array[rows] in pieces of at most 16 MiB (one row at least)."""
    step = max(1, _CHUNK_BYTES // max(1, array[:1].nbytes))
    for start in range(0, len(rows), step):
        yield np.asarray(array[rows[start : start + step]])
