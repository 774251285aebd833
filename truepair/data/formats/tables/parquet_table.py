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
        from pyarrow import ArrowException
        from pyarrow.parquet import ParquetFile

        self.path = path
        try:
            open_file(path).close()
            with ParquetFile(path) as file:
                self._schema, count = file.schema_arrow, file.metadata.num_rows
        except (OSError, ValueError, ArrowException) as error:
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
        return list(self._schema.names)

    def countable(self) -> list[str]:
        """The columns of text, whole numbers or true and false: others are no classes, and need not be read."""
        return [field.name for field in self._schema if _holds_classes(field.type)]

    def rows(self, columns: Sequence[str]) -> Iterator[TableRow | Problem]:
        from pyarrow import ArrowException
        from pyarrow.parquet import ParquetFile

        twice = next((name for name in columns if self._schema.names.count(name) > 1), None)
        if twice is not None:
            raise InputError(f"{self.path}: the table has the column {twice!r} twice; rename one of them")
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
                except (OSError, ValueError, OverflowError, ArrowException) as error:  # times beyond the year 9999
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
    """The cells of a column of a batch, and how many texts in them are not UTF-8."""
    try:
        return list(column.to_pylist()), 0
    except UnicodeDecodeError:  # text that its writer did not check
        odd = 0

        def text(cell: Any) -> Any:
            nonlocal odd
            if isinstance(cell, list):
                return [text(item) for item in cell]
            if not isinstance(cell, bytes):
                return cell
            found, encoding = decode(cell)
            odd += encoding != "utf-8"
            return found

        return [text(cell) for cell in column.cast(_as_bytes(column.type)).to_pylist()], odd


def _as_bytes(kind: Any) -> Any:
    """The type of a column of text, or of lists of text, with bytes in the place of the text."""
    from pyarrow import binary, list_, types

    if types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind):
        return list_(_as_bytes(kind.value_type))
    return binary()


def _holds_classes(kind: Any) -> bool:
    from pyarrow import types

    kind = kind.value_type if types.is_dictionary(kind) else kind
    tests = (types.is_string, types.is_large_string, types.is_integer, types.is_boolean, types.is_null)
    return any(test(kind) for test in tests)
