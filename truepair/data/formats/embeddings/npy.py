"""`.npy` files written piece by piece, so that they may be larger than the memory."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np
import numpy.typing as npt

from truepair.data.pairs import Array, IntArray

_CHUNK_BYTES = 16 * 2**20


def write_npy(path: Path, shape: tuple[int, ...], dtype: npt.DTypeLike, pieces: Iterable[Array]) -> None:
    """Writes an array whose rows come in pieces. The pieces together must have the shape."""
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
