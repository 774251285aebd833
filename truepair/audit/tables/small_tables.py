"""`problems.parquet` and `duplicates.parquet`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from truepair.audit.result import AuditResult
from truepair.audit.scoring.row_ranges import whole, words_at
from truepair.audit.tables.parquet_file import write_tables
from truepair.data.pair_columns import SHARED, described_schema

PROBLEM_COLUMNS = {
    "entry": ("string", "what people know the entry by"),
    "file": ("string", "the file it stands in, relative to the input"),
    "row": ("int64", "its place in that file from 0; -1 for the whole file"),
    "reason": ("string", "what kind of problem"),
    "detail": ("string", "the same in a sentence"),
    "used": ("bool", "whether the entry was audited all the same"),
}
DUPLICATE_COLUMNS = {
    "group": ("int64", "number of the group"),
    "kind": ("string", "what its pairs share"),
    **{name: SHARED[name] for name in ("pair_id", "image", "caption")},
}
PIECE = 50_000


def write_problems(result: AuditResult, path: Path) -> None:
    """Write every problem of an audit, also where there is none."""
    import pyarrow

    schema = described_schema(PROBLEM_COLUMNS)

    def tables() -> Iterator[Any]:
        for start in range(0, max(1, len(result.problems)), PIECE):
            piece = result.problems[start : start + PIECE]
            columns = {name: [getattr(problem, name) for problem in piece] for name in PROBLEM_COLUMNS}
            for name in ("entry", "file", "reason", "detail"):
                columns[name] = [whole(text) for text in columns[name]]
            yield pyarrow.table(columns, schema=schema)

    write_tables(path, schema, tables())


def write_duplicates(result: AuditResult, path: Path) -> None:
    """Write every pair of every group of duplicates, also where there is none."""
    import pyarrow

    schema = described_schema(DUPLICATE_COLUMNS)
    collection, groups = result.collection, result.duplicates

    def tables() -> Iterator[Any]:
        sizes = np.array([len(group.rows) for group in groups], dtype=np.int64)
        pieces = np.cumsum(sizes) // PIECE
        for piece in np.unique(pieces) if len(groups) else [0]:
            numbers = np.flatnonzero(pieces == piece)
            rows = np.concatenate([np.empty(0, np.int64), *(groups[number].rows for number in numbers)])
            wanted, seats = np.unique(rows, return_inverse=True)
            columns: dict[str, Any] = {
                "group": np.repeat(numbers, sizes[numbers]),
                "kind": [groups[number].kind for number in numbers for _ in groups[number].rows],
            }
            readers = {"pair_id": collection.ids, "image": collection.image_names, "caption": collection.captions}
            for name, read in readers.items():
                words = words_at(read, wanted)
                columns[name] = [words[seat] for seat in seats]
            yield pyarrow.table(columns, schema=schema)

    write_tables(path, schema, tables())
