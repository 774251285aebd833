"""Tables in parquet, read by row groups; only the needed columns leave the disk."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from truepair.data.collection import Problem
from truepair.data.formats.tables.table_columns import TableRow
from truepair.data.formats.tables.text_decoding import decode
from truepair.errors import InputError
from truepair.files import open_file

_BATCH_ROWS = 4096
MOST_ROWS = 10_000_000
"""A file of a few megabytes may claim far more, and every row costs some 100 bytes of memory."""


class ParquetTable:
    """A .parquet file. Rows are numbered from 0 over all row groups; a damaged row group costs its own rows only."""

    format = "parquet"
    encoding = "utf-8"

    def __init__(self, path: Path) -> None:
        from pyarrow.parquet import ParquetFile

        self.path = path
        try:
            open_file(path).close()
            with ParquetFile(path) as file:
                self._columns, count = list(file.schema_arrow.names), file.metadata.num_rows
        except (OSError, ValueError) as error:  # pyarrow's own errors are ValueErrors
            raise InputError(
                f"{path} cannot be read as parquet ({error}); expected a table of images and captions. "
                "Copy or write it again"
            ) from error

        if count > MOST_ROWS:
            raise InputError(
                f"{path} has {count:,} rows; a table of pictures is read into memory, {MOST_ROWS:,} rows of it at "
                "most. Split the table, or audit embeddings of the pairs"
            )

    def columns(self) -> list[str]:
        return self._columns

    def rows(self, columns: Sequence[str]) -> Iterator[TableRow | Problem]:
        from pyarrow.parquet import ParquetFile

        with ParquetFile(self.path) as file:
            start, odd = 0, 0
            for group in range(file.num_row_groups):
                stop, row = start + file.metadata.row_group(group).num_rows, start
                try:
                    for batch in file.iter_batches(_BATCH_ROWS, row_groups=[group], columns=list(columns)):
                        values = [_values(batch.column(name)) for name in columns]
                        odd += sum(misread for _, misread in values)
                        for fields in zip(*(cells for cells, _ in values), strict=True):
                            yield TableRow(row, dict(zip(columns, fields, strict=True)))
                            row += 1
                except (OSError, ValueError) as error:
                    detail = (
                        f"rows {row} to {stop - 1} cannot be read ({str(error)[:200]}) and were left out; "
                        "copy or write the table again"
                    )
                    yield Problem(self.path.name, self.path.name, row, "broken-rows", detail)
                start = stop
        if odd:
            detail = (
                f"{odd} values are not UTF-8 and were read as Windows-1252; look whether their accents are right, and "
                "write the table again"
            )
            yield Problem(self.path.name, self.path.name, -1, "encoding", detail, used=True)


def _values(column: Any) -> tuple[list[Any], int]:
    """The cells of a column of a batch, and how many of them are text that is not UTF-8."""
    try:
        return list(column.to_pylist()), 0
    except UnicodeDecodeError:  # text that its writer did not check
        import pyarrow

        found = column.cast(pyarrow.binary()).to_pylist()
        cells = [(None, "utf-8") if value is None else decode(value) for value in found]
        return [text for text, _ in cells], sum(encoding != "utf-8" for _, encoding in cells)
