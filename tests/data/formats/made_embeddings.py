"""Embeddings for tests: shards in clip-retrieval's layout."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

COUNTS = (5, 1, 7)
Vectors = NDArray[Any]


def vectors(rows: int, width: int = 4, seed: int = 0) -> Vectors:
    return np.random.default_rng([rows, width, seed]).normal(size=(rows, width))


def write_parquet(path: Path, columns: dict[str, Any], *, rows_per_group: int = 3) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table(columns), path, row_group_size=rows_per_group)


def clip_folder(folder: Path, *, digits: int = 1, dtype: str = "<f2", metadata: bool = True) -> Path:
    for number, rows in enumerate(COUNTS):
        name = str(number).zfill(digits)
        for part, seed in (("img_emb", 1), ("text_emb", 2)):
            (folder / part).mkdir(parents=True, exist_ok=True)
            np.save(folder / part / f"{part}_{name}.npy", vectors(rows, seed=seed + 10 * number).astype(dtype))
        if metadata:
            paths = [f"pictures/{number}-{row}.png" for row in range(rows)]
            captions = [f"caption {number} {row}" for row in range(rows)]
            write_parquet(folder / f"metadata/metadata_{name}.parquet", {"image_path": paths, "caption": captions})
    return folder


def expected(part: int, dtype: str = "<f2") -> Vectors:
    rows = [vectors(rows, seed=part + 10 * number).astype(dtype) for number, rows in enumerate(COUNTS)]
    return np.concatenate(rows).astype(np.float32)
