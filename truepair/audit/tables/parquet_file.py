"""Parquet files written piece by piece, and yet whole or not at all."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from truepair.files import atomic_file, writing


def write_tables(path: Path, schema: Any, tables: Iterable[Any]) -> None:
    """Write arrow tables of one schema as the row groups of one file; only one table is in memory at a time.

    Raises:
        TruepairError: the system refused (disk full, no permission). The old file is untouched and no temporary file
            stays behind.
    """
    from pyarrow import parquet

    with atomic_file(path) as temporary:
        with writing(path):
            writer = parquet.ParquetWriter(temporary, schema, compression="zstd")
        try:
            for table in tables:  # whose own errors (a source that vanished) are not this file's
                with writing(path):
                    writer.write_table(table, row_group_size=max(1, table.num_rows))
        finally:
            with writing(path):
                writer.close()
