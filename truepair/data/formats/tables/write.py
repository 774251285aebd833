"""A table of pictures in, the same table out: the kept rows, in the same format, columns and order.

A row of which some captions are kept loses the others: they are taken out of a list, or emptied in a column of their
own. Rows of splits that were not audited stay as they are. Pictures are not copied, and their paths not changed:
the new table belongs beside the old one. `weights.npy` is float32, a weight for each kept caption, in the order of the
table (of the audited split, where one was named).
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from truepair.audit.export.selection import Selection
from truepair.data.formats.embeddings.npy import write_npy
from truepair.data.formats.tables.tables import READERS, TableCollection
from truepair.data.formats.tables.write_parquet import write_parquet
from truepair.data.formats.tables.write_rows import TableRows
from truepair.data.formats.tables.write_text import write_csv, write_jsonl, write_karpathy

_OTHER_NAME = {"dev": "val", "val": "dev", "test": "testall", "testall": "test"}

_README = """\
{table} holds the {kept} pairs that the audit kept, out of {pairs}, as a table of the same format.

Pictures are not copied, and their paths are as they were: relative to the folder of the original table. Copy {table}
there, under another name or in the place of the original.

weights.npy holds a weight in [0, 1] (float32) for each kept caption, in the order of the table{of_split}.
"""


def write_table(collection: TableCollection, selection: Selection, split: str | None, folder: Path) -> None:
    """Writes the table, its weights and a README into the folder."""
    reader, target = READERS[collection.table.suffix.lower()](collection.table), folder / collection.table.name
    split_column = None
    if split is not None:
        split_column = next((name for name in reader.columns() if name.strip().lower() == "split"), None)
    audited = set() if split is None else {split, _OTHER_NAME.get(split, split)}
    rows = TableRows(collection, selection, split_column, audited)
    if collection.table_format in ("csv", "tsv"):
        write_csv(collection.table, rows, target)
    elif collection.table_format == "jsonl":
        write_jsonl(collection.table, rows, target, encoding=collection.encoding)
    elif collection.table_format == "karpathy":
        write_karpathy(collection.table, rows, target)
    else:
        columns = [*collection.caption_columns, *([] if split_column is None else [split_column])]
        write_parquet(collection.table, rows, target, columns)
    kept = selection.kept_rows
    kept = kept[np.lexsort((collection.caption_of_pair[kept], collection.row_of_pair[kept]))]
    write_npy(folder / "weights.npy", (len(kept),), np.float32, [selection.weights[kept]])
    of_split = "" if split_column is None else f", in the split {split}; rows of other splits are as they were"
    text = _README.format(table=target.name, kept=len(kept), pairs=len(collection), of_split=of_split)
    (folder / "README.txt").write_text(text, encoding="utf-8")
