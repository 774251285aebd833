"""Parquet files written piece by piece, and yet whole or not at all."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from truepair.errors import TruepairError


def write_tables(path: Path, schema: Any, tables: Iterable[Any]) -> None:
    """Write arrow tables of one schema as the row groups of one file; only one table is in memory at a time.

    Raises:
        TruepairError: the system refused (disk full, no permission). The old file is untouched and no temporary file
            stays behind.
    """
    from pyarrow import parquet

    temporary = path.with_name(f".{path.name}.{secrets.token_hex(6)}.tmp")
    try:
        try:
            writer = parquet.ParquetWriter(temporary, schema, compression="zstd")
        except OSError as error:
            raise refused(path, error) from error
        try:
            for table in tables:  # whose own errors (a source that vanished) are not this file's
                write(writer, table, path)
        finally:
            close(writer, path)
        try:
            with temporary.open("r+b") as file:
                os.fsync(file.fileno())
            temporary.replace(path)
        except OSError as error:
            raise refused(path, error) from error
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def write(writer: Any, table: Any, path: Path) -> None:
    try:
        writer.write_table(table, row_group_size=max(1, table.num_rows))
    except OSError as error:
        raise refused(path, error) from error


def close(writer: Any, path: Path) -> None:
    try:
        writer.close()
    except OSError as error:
        raise refused(path, error) from error


def refused(path: Path, error: OSError) -> TruepairError:
    return TruepairError(
        f"{path} could not be written: {error.strerror or error}; free space on that disk, check the permissions "
        "of the folder, or write elsewhere"
    )
