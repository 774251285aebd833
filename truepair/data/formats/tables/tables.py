"""A folder of pictures and a table of them: CSV, JSON Lines, Karpathy's JSON or parquet.

Every caption of a row is a pair of its image; a picture that several rows name is described once. Paths of pictures are
relative to the table's folder, or to `images/` in it, and never lead outside by their words; links that somebody put
into the folder are followed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from truepair.data.collection import PairsCollection, Problem
from truepair.data.config import Reading
from truepair.data.description import SplitDescription
from truepair.data.formats.format import Format
from truepair.data.formats.tables.captions import printable, read_caption
from truepair.data.formats.tables.csv_table import CsvTable
from truepair.data.formats.tables.drafts import Draft, Finished, class_names_of, finish, label_of, require_some
from truepair.data.formats.tables.jsonl_table import JsonLinesTable
from truepair.data.formats.tables.karpathy import KarpathyTable
from truepair.data.formats.tables.parquet_table import ParquetTable
from truepair.data.formats.tables.picture_folder import PictureFolder
from truepair.data.formats.tables.table_columns import Columns, TableReader, TableRow, caption_places, choose_columns
from truepair.data.formats.tables.table_files import find_table
from truepair.data.pairs import IntArray
from truepair.data.pictures.feature_cache import describe_all
from truepair.data.pictures.pictures import Failure
from truepair.data.selection import Selection
from truepair.data.splits import named
from truepair.errors import InputError

READERS: dict[str, Callable[[Path], TableReader]] = {
    ".csv": CsvTable,
    ".tsv": CsvTable,
    ".jsonl": JsonLinesTable,
    ".json": KarpathyTable,
    ".parquet": ParquetTable,
}
"""Suffix of a table → what reads it."""


_MOST_CLASSES = 100_000


class TableCollection(PairsCollection):
    """Pairs from a table of pictures.

    Attributes:
        table, table_format: the file, and "csv", "tsv", "jsonl", "karpathy" or "parquet".
        encoding, delimiter: of its text; the delimiter is empty where the format has none.
        image_column, caption_columns: where images and captions stand (`caption_places` numbers the captions).
        row_of_pair: (N,) row of the table, from 0: records after the header of CSV, lines of JSON Lines (blank ones
            counted), entries of Karpathy's "images", rows of parquet. Also the `source_rows`.
        caption_of_pair: (N,) which caption of its row a pair has, from 0.
        split_column, splits: the column that says which split a row is of, and the names in it that were read; None
            and () where all rows were.
        folder: what the paths of pictures are relative to.
    """

    writable = True

    def __init__(
        self, finished: Finished, problems: list[Problem], reader: TableReader, columns: Columns, draft: Draft,
        folder: Path, splits: tuple[str, ...],
    ) -> None:  # fmt: skip
        self.table, self.table_format = reader.path, reader.format
        self.encoding: str = getattr(reader, "encoding", "utf-8")
        self.delimiter: str = getattr(reader, "delimiter", "")
        self.image_column, self.caption_columns = columns.image, columns.captions
        self.row_of_pair = finished.pairs.source_rows
        self.caption_of_pair: IntArray = np.array(draft.number, dtype=np.int64)[finished.kept]
        self.split_column, self.splits = columns.split if splits else None, splits
        self.folder = folder
        super().__init__(finished.pairs, problems=problems)

    def place(self, row: int) -> tuple[str, int]:
        return self.table.name, int(self.row_of_pair[row])

    def write(self, selection: Selection, folder: Path) -> None:
        from truepair.data.formats.tables.write import write_table

        write_table(self, selection, folder)


class Tables(Format):
    """Folders of pictures with a table, and such tables."""

    holds = "a table"
    understood = (
        "a folder of pictures with one table (.csv, .tsv, .jsonl, .parquet, Karpathy's .json), or the table itself"
    )
    options = frozenset({"table", "caption", "image", "label", "dev_share", "test_share", "split_seed"})
    collection = TableCollection

    def recognises(self, source: str | Path, reading: Reading) -> bool:
        return find_table(Path(source), reading.table) is not None

    def splits(self, source: str | Path, reading: Reading) -> tuple[str, ...]:
        reader = open_reader(_table(source, reading))
        columns = choose_columns(reader, image=reading.image, caption=reading.caption, label=reading.label)
        return survey(reader, columns)[0]

    def open(self, source: str | Path, split: str | None, reading: Reading) -> TableCollection:
        table, path = _table(source, reading), Path(source)
        return open_table(path.resolve() if path.is_dir() else table.parent, table, split, reading)

    def describe(self, source: str | Path, split: str | None, reading: Reading) -> SplitDescription:
        described = super().describe(source, split, reading)
        reader = open_reader(_table(source, reading))
        columns = choose_columns(reader, image=reading.image, caption=reading.caption, label=reading.label)
        return replace(described, label_columns=label_columns(reader, columns))


def open_reader(table: Path) -> TableReader:
    return READERS[table.suffix.lower()](table)


def _table(source: str | Path, reading: Reading) -> Path:
    found = find_table(Path(source), reading.table)
    assert found is not None  # `recognises` found it
    return found


def survey(reader: TableReader, columns: Columns) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The names of all splits of a table in alphabetical order, and those of all classes; () where there are none."""
    status = reader.path.stat()
    return _survey(reader.path, (status.st_mtime_ns, status.st_size), columns.split, columns.label)


@lru_cache(maxsize=8)  # train, dev and test of one table ask one after the other
def _survey(
    path: Path, _version: tuple[int, int], split: str | None, label: str | None
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    wanted = [name for name in (split, label) if name is not None]
    if not wanted:
        return (), ()
    splits, labels = set[str](), set[str | None]()
    for row in open_reader(path).rows(wanted):
        if isinstance(row, Problem):
            continue
        if split is not None and (name := label_of(row.fields.get(split))) is not None:
            splits.add(name)
        if label is not None:
            value = row.fields.get(label)
            if isinstance(value, list | dict) or (isinstance(value, float) and value % 1):
                raise InputError(
                    f"{path}, row {row.row}: the column {label!r} is {value!r:.60}; expected text or a whole number, "
                    "or null for none. Choose another column"
                )
            labels.add(label_of(value))
    return tuple(sorted(splits)), class_names_of(labels)


def label_columns(reader: TableReader, columns: Columns) -> dict[str, int]:
    """The columns that could serve as label -> number of classes: text or whole numbers."""
    taken = {columns.image, *columns.captions, columns.split}
    others = [name for name in reader.columns() if name not in taken]
    found: dict[str, set[str]] = {name: set() for name in others}
    for row in reader.rows(others):
        if isinstance(row, Problem):
            continue
        for name in list(found):
            value = row.fields.get(name)
            if value is not None and not isinstance(value, bool | int | str):
                del found[name]
            elif (text := label_of(value)) is not None:
                found[name].add(text)
                if len(found[name]) > _MOST_CLASSES:
                    del found[name]
    return {name: len(values) for name, values in found.items() if values}


def open_table(folder: Path, table: Path, split: str | None, reading: Reading) -> TableCollection:
    """The usable pairs of a table; bad rows are problems. Without a split all splits are read.

    Args:
        folder: what the paths of pictures are relative to.

    Raises:
        InputError: the table cannot be read, lacks a column or the split, or nothing in it can be used.
        TruepairError: the cache cannot be written.
    """
    reader = open_reader(table)
    columns = choose_columns(reader, image=reading.image, caption=reading.caption, label=reading.label)
    pictures, draft, problems = PictureFolder(folder), Draft(), list[Problem]()
    known, class_names = survey(reader, columns) if split is not None or columns.label is not None else ((), ())
    wanted = () if split is None else named(split, known)
    if split is not None and not wanted:
        raise InputError(
            f"{table} has no split {split!r}; its splits are {', '.join(known[:20]) or 'none'}. Choose one of them, or "
            "leave out the split for all"
        )
    for row in reader.rows(columns.needed()):
        if isinstance(row, Problem):
            problems.append(row)
        elif not wanted or (found := label_of(row.fields.get(columns.split or ""))) in wanted:
            problems += _add(draft, row, columns, pictures, table.name)
        elif found is None:
            detail = f"row {row.row}: {columns.split} is empty, though other rows have one; name the split of each row"
            problems.append(Problem(f"row {row.row}", table.name, row.row, "no-split", detail))
    require_some(len(draft), table, problems)
    described = describe_all(
        pictures.place, len(pictures), key=pictures.fingerprint(), cache=reading.cache, progress=reading.progress
    )
    finished = finish(
        draft,
        described,
        pictures.names,
        lambda pair: (table.name, draft.row[pair]),
        place=pictures.place,
        name="/".join(filter(None, (folder.name, split))),
        class_names=None if columns.label is None else class_names,
    )
    problems = sorted(problems + finished.problems, key=lambda problem: problem.row)
    require_some(len(finished.pairs), table, problems)
    return TableCollection(finished, problems, reader, columns, draft, folder, wanted)


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
