"""Parquet tables with fewer rows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from truepair.data.formats.tables.write_rows import TableRows, without
from truepair.errors import InputError

_BATCH_ROWS = 4096


def write_parquet(source: Path, rows: TableRows, target: Path) -> None:
    """The kept rows with all their columns.

    Raises:
        InputError: a row group that has kept rows cannot be read in whole.
    """
    import pyarrow.parquet as pq

    with pq.ParquetFile(source) as file, pq.ParquetWriter(target, file.schema_arrow) as writer:
        start = 0
        for group in range(file.num_row_groups):
            row, stop = start, start + file.metadata.row_group(group).num_rows
            try:
                for batch in file.iter_batches(_BATCH_ROWS, row_groups=[group]):
                    chosen = _chosen(batch, row, rows)
                    row += batch.num_rows
                    if chosen.num_rows:
                        writer.write_batch(chosen)
            except (OSError, ValueError) as error:
                if rows.has_kept(row, stop):
                    raise InputError(
                        f"{source}: the rows {row} to {stop - 1} cannot be read in all columns ({str(error)[:200]}). "
                        "Export csv, jsonl or parquet instead, or repair the table"
                    ) from error
            start = stop


def _chosen(batch: Any, start: int, rows: TableRows) -> Any:
    """The rows of the batch that stay, without the captions that do not."""
    import pyarrow as pa

    entries = batch.select(rows.columns).to_pylist()
    removed = [rows.removed(start + k, entry) for k, entry in enumerate(entries)]
    entries = [entry if not places else without(entry, places) for entry, places in zip(entries, removed, strict=True)]
    for column in dict.fromkeys(column for places in removed for column, _ in places or ()):
        place = batch.schema.get_field_index(column)
        values = pa.array([entry[column] for entry in entries], type=batch.schema.field(place).type)
        batch = batch.set_column(place, batch.schema.field(place), values)
    return batch.filter(pa.array([places is not None for places in removed], type=pa.bool_()))
