"""A folder of pictures and a table of them: CSV, JSON Lines, Karpathy's JSON or parquet.

Every caption of a row is a pair of its image; a picture that several rows name is described once. Paths of pictures are
relative to the table's folder, or to `images/` in it, and never lead outside by their words; links that somebody put
into the folder are followed.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from truepair.data.collection import PairsCollection, Problem
from truepair.data.formats.tables.captions import printable, read_caption
from truepair.data.formats.tables.csv_table import CsvTable
from truepair.data.formats.tables.drafts import Draft, Finished, finish, require_some
from truepair.data.formats.tables.jsonl_table import JsonLinesTable
from truepair.data.formats.tables.karpathy import KarpathyTable
from truepair.data.formats.tables.parquet_table import ParquetTable
from truepair.data.formats.tables.picture_folder import PictureFolder
from truepair.data.formats.tables.table_columns import Columns, TableReader, TableRow, caption_places, choose_columns
from truepair.data.pairs import Array, IntArray
from truepair.data.pictures.descriptions import describe_all
from truepair.data.pictures.pictures import Failure, read_pixels
from truepair.errors import InputError

READERS: dict[str, Callable[[Path], TableReader]] = {
    ".csv": CsvTable,
    ".tsv": CsvTable,
    ".jsonl": JsonLinesTable,
    ".json": KarpathyTable,
    ".parquet": ParquetTable,
}
"""Suffix of a table → what reads it."""

_OTHER_NAME = {"dev": "val", "val": "dev", "test": "testall", "testall": "test"}


class TableCollection(PairsCollection):
    """Pairs from a table of pictures.

    Attributes:
        table, table_format: the file, and "csv", "tsv", "jsonl", "karpathy" or "parquet".
        encoding, delimiter: of its text; the delimiter is empty where the format has none.
        image_column, caption_columns: where images and captions stand (`caption_places` numbers the captions).
        row_of_pair: (N,) row of the table, from 0: records after the header of CSV, lines of JSON Lines (blank ones
            counted), entries of Karpathy's "images", rows of parquet. Also the `source_rows`.
        caption_of_pair: (N,) which caption of its row a pair has, from 0.
    """

    def __init__(
        self, finished: Finished, problems: list[Problem], reader: TableReader, columns: Columns, draft: Draft,
        pictures: PictureFolder,
    ) -> None:  # fmt: skip
        self.table, self.table_format = reader.path, reader.format
        self.encoding: str = getattr(reader, "encoding", "utf-8")
        self.delimiter: str = getattr(reader, "delimiter", "")
        self.image_column, self.caption_columns = columns.image, columns.captions
        self.row_of_pair = finished.pairs.source_rows
        self.caption_of_pair: IntArray = np.array(draft.number, dtype=np.int64)[finished.kept]
        self._pictures, self._images = pictures, finished.images
        super().__init__(finished.pairs, problems=problems)

    def picture(self, row: int) -> Array | None:
        pixels = read_pixels(self._pictures.place(int(self._images[self.pairs.image_index[row]])))
        return None if isinstance(pixels, Failure) else pixels

    def place(self, row: int) -> tuple[str, int]:
        """The file a pair stands in, and its place there from 0."""
        return self.table.name, int(self.row_of_pair[row])


def open_table(
    folder: Path,
    table: Path,
    *,
    split: str | None = None,
    image: str | None = None,
    caption: str | None = None,
    label: str | None = None,
    cache: Path | None = None,
    progress: bool | None = None,
) -> TableCollection:
    """The usable pairs of a table; bad rows are problems. Without a split all splits are read.

    Args:
        folder: what the paths of pictures are relative to.
        image, caption: the columns of paths and captions, see `choose_columns`.
        label: a column whose values become the pairs' labels; rows without one are of class `NO_LABEL`.

    Raises:
        InputError: the table cannot be read, lacks a column, or nothing in it can be used.
        TruepairError: the cache cannot be written.
    """
    reader = READERS[table.suffix.lower()](table)
    columns = choose_columns(reader, image=image, caption=caption, label=label)
    pictures, draft, problems = PictureFolder(folder), Draft(), list[Problem]()
    splits: set[str] = set()
    wanted = _wanted(reader, columns, split)
    for row in reader.rows(columns.needed()):
        if isinstance(row, Problem):
            problems.append(row)
            continue
        if columns.split is not None and split is not None:
            found = str(row.fields.get(columns.split))
            splits.add(found)
            if found not in wanted:
                continue
        problems += _add(draft, row, columns, pictures, table.name)
    if split is not None and splits and not splits & wanted:
        raise InputError(
            f"{table} has no split {split!r}; its splits are {', '.join(sorted(splits)[:20])}. Choose one of them, or "
            "none for all"
        )
    require_some(len(draft), table, problems)
    described = describe_all(pictures.place, len(pictures), key=pictures.fingerprint(), cache=cache, progress=progress)
    name = "/".join(filter(None, (folder.name, split)))
    finished = finish(
        draft,
        described,
        pictures.names,
        lambda pair: (table.name, draft.row[pair]),
        name=name,
        labelled=columns.label is not None,
    )
    problems = sorted(problems + finished.problems, key=lambda problem: problem.row)
    require_some(len(finished.pairs), table, problems)
    return TableCollection(finished, problems, reader, columns, draft, pictures)


def _wanted(reader: TableReader, columns: Columns, split: str | None) -> set[str]:
    """The names the split may have: the field calls some by two."""
    if split is not None and columns.split is None:
        raise InputError(f"{reader.path} has no column 'split', so it has no split {split!r}; leave out the split")
    return set() if split is None else {split, _OTHER_NAME.get(split, split)}


def _add(draft: Draft, row: TableRow, columns: Columns, pictures: PictureFolder, file: str) -> list[Problem]:
    """Add the pairs of one row to the draft; what keeps them out is returned."""
    path = row.fields.get(columns.image)
    entry = printable(path) if isinstance(path, str) and path.strip() else f"row {row.row}"
    if not isinstance(path, str) or not path.strip():
        found = f"is {path!r:.60}" if columns.image in row.fields else "is missing"
        detail = f"row {row.row}: {columns.image} {found}; expected the path of a picture: write it, or remove the row"
        return [Problem(entry, file, row.row, "no-picture-path", detail)]
    places = caption_places(row.fields, columns.captions)
    problems, usable = list[Problem](), list[tuple[int, str, Problem | None]]()
    for number, (column, _, value) in enumerate(places[:1] if columns.first_only else places):
        # Of several columns some may be empty: not every picture has as many captions as the table has columns.
        if len(columns.captions) > 1 and (value is None or value == ""):
            continue
        caption = read_caption(value)
        where = f"caption {number} of {entry}" if len(places) > 1 else entry
        detail = f"{where} ({column}): {caption.detail}"
        problem = Problem(entry, file, row.row, caption.reason, detail, used=bool(caption.text))
        if caption.text:
            usable.append((number, caption.text, problem if caption.reason else None))
        else:
            problems.append(problem)
    if not usable and not problems:
        detail = f"{entry}: the row has no caption in {', '.join(columns.captions)}; write one, or remove the row"
        return [Problem(entry, file, row.row, "empty-caption", detail)]
    image = pictures.find(path.strip()) if usable else -1
    if isinstance(image, Failure):
        return [Problem(entry, file, row.row, image.reason, f"{entry}: {image.detail}"), *problems]
    for number, text, note in usable:
        if note is not None:
            draft.note(note)
        draft.add(
            image=image, caption=text, name=f"{entry}#{number}" if len(places) > 1 else entry, again=f"#{row.row}",
            row=row.row, number=number, label=_label(row, columns),
        )  # fmt: skip
    return problems


def _label(row: TableRow, columns: Columns) -> Any:
    return None if columns.label is None else row.fields.get(columns.label)
