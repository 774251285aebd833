"""A table of pictures in, the same table out with its pictures: the kept rows, in the same format, columns and order.

A row of which some captions are kept loses the others: they are taken out of a list, or emptied in a column of their
own. Rows of splits that were not read stay as they are. The pictures of all rows lie beside the table at the same
paths, as hard links where the disk allows it and as copies where not, so that the new folder opens as it stands.
`weights.npy` is float32, a weight for each kept caption, in the order of the table (of the split that was read, where
one was named).
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from truepair.data.formats.embeddings.npy import write_npy
from truepair.data.formats.tables.picture_folder import PictureFolder
from truepair.data.formats.tables.write_parquet import write_parquet
from truepair.data.formats.tables.write_rows import TableRows
from truepair.data.formats.tables.write_text import write_csv, write_jsonl, write_karpathy
from truepair.data.selection import Selection
from truepair.files import link_or_copy

if TYPE_CHECKING:
    from truepair.data.formats.tables.tables import TableCollection

_README = """\
{table} holds the {kept} pairs that were kept, out of {pairs}, as a table of the same format. Its pictures are here at
the same paths: {pictures} of them, as hard links to the originals where the disk allows it. Do not edit them in place.

weights.npy holds a weight in [0, 1] (float32) for each kept caption, in the order of the table{of_split}.
"""


def write_table(collection: TableCollection, selection: Selection, folder: Path) -> None:
    """Writes the table, its pictures, its weights and a README into the folder.

    Raises:
        InputError: the table cannot be read in whole, or noise was injected into the pairs.
    """
    collection.check_pairs_are_of_files()
    target, pictures = folder / collection.table.name, PictureFolder(collection.folder)
    rows = TableRows(collection, selection, pictures)
    if collection.table_format in ("csv", "tsv"):
        write_csv(collection.table, rows, target)
    elif collection.table_format == "jsonl":
        write_jsonl(collection.table, rows, target, encoding=collection.encoding)
    elif collection.table_format == "karpathy":
        write_karpathy(collection.table, rows, target)
    else:
        write_parquet(collection.table, rows, target)
    for number in range(len(pictures)):
        picture = Path(pictures.place(number).file)
        link_or_copy(picture, folder / picture.relative_to(collection.folder))
    kept = selection.kept_rows
    kept = kept[np.lexsort((collection.caption_of_pair[kept], collection.row_of_pair[kept]))]
    write_npy(folder / "weights.npy", (len(kept),), np.float32, [selection.weights[kept]])
    names = " and ".join(collection.splits)
    of_split = f", in the split {names}; rows of other splits are as they were" if names else ""
    text = _README.format(
        table=target.name, kept=len(kept), pairs=len(collection), pictures=len(pictures), of_split=of_split
    )
    (folder / "README.txt").write_text(text, encoding="utf-8")
