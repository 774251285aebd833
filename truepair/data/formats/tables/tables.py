"""A folder of pictures and a table of them: CSV, JSON (lines, a list, Karpathy's) or parquet.

Every caption of a row is a pair of its image; a picture that several rows name is described once. Paths of pictures are
relative to the table's folder, or to `images/` in it, and never lead outside by their words; links that somebody put
into the folder are followed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache
from pathlib import Path

from truepair.data.collection import PairsCollection, Problem
from truepair.data.config import Reading
from truepair.data.description import SplitDescription
from truepair.data.formats.format import Format
from truepair.data.formats.tables.csv_table import CsvTable
from truepair.data.formats.tables.drafts import Draft, Finished, class_names_of, finish, label_of, read_caption
from truepair.data.formats.tables.json_tables import JsonLinesTable, json_table
from truepair.data.formats.tables.parquet_table import ParquetTable
from truepair.data.formats.tables.picture_folder import PictureFolder
from truepair.data.formats.tables.table_columns import Columns, TableReader, TableRow, caption_places, choose_columns
from truepair.data.pictures.pictures import Failure
from truepair.data.selection import Selection
from truepair.data.splits import named
from truepair.errors import InputError
from truepair.phrases import printable

READERS: dict[str, Callable[[Path], TableReader]] = {
    ".csv": CsvTable,
    ".tsv": CsvTable,
    ".jsonl": JsonLinesTable,
    ".json": json_table,
    ".parquet": ParquetTable,
}
"""Suffix of a table → what reads it."""
_MOST_CLASSES = 100_000


class TableCollection(PairsCollection):
    """Pairs from a table of pictures. Their source rows are rows of the table, from 0: records after the header of CSV,
    lines of JSON Lines (blank ones counted), entries of a JSON list or of Karpathy's "images", rows of parquet.

    Attributes:
        reader, columns: of the table, and which of its columns hold what.
        caption_of_pair: (N,) which caption of its row a pair has, from 0, as `caption_places` numbers them.
        splits: the names in the split column that were read; () where all rows were.
        folder: what the paths of pictures are relative to.
    """

    writable = True

    def __init__(
        self, finished: Finished, reader: TableReader, columns: Columns, folder: Path, splits: tuple[str, ...]
    ) -> None:
        self.reader, self.columns, self.folder, self.splits = reader, columns, folder, splits
        self.caption_of_pair = finished.numbers
        super().__init__(finished.pairs, problems=finished.problems)

    def place(self, row: int) -> tuple[str, int]:
        return self.reader.path.name, int(self.pairs.source_rows[row])

    def write(self, selection: Selection, folder: Path) -> None:
        from truepair.data.formats.tables.write import write_table

        write_table(self, selection, folder)


class Tables(Format):
    """Folders of pictures with a table, and such tables."""

    holds = "a table"
    understood = "a folder of pictures with one table (.csv, .tsv, .jsonl, .parquet, .json), or the table itself"
    options = frozenset({"table", "caption", "image", "label", "dev_share", "test_share", "split_seed", "encoder"})
    collection = TableCollection

    def recognises(self, source: str | Path, reading: Reading) -> bool:
        return _find_table(Path(source), reading.table) is not None

    def splits(self, source: str | Path, reading: Reading) -> tuple[str, ...]:
        return _survey(*_opened(source, reading))[0]

    def open(self, source: str | Path, split: str | None, reading: Reading) -> TableCollection:
        reader, columns = _opened(source, reading)
        folder = Path(source).resolve() if Path(source).is_dir() else reader.path.parent
        return _read(folder, reader, columns, split, reading)

    def describe(self, source: str | Path, split: str | None, reading: Reading) -> SplitDescription:
        described = super().describe(source, split, reading)
        return replace(described, label_columns=_label_columns(*_opened(source, reading)))


def _find_table(source: Path, table: str | None) -> Path | None:
    """The one table in the folder `source`, the file `source` itself, or the one named; None where there is none."""
    inside = source.iterdir() if source.is_dir() else ()
    tables = sorted(path for path in inside if path.suffix.lower() in READERS and path.is_file())
    listed = ", ".join(path.name for path in tables[:20]) or "none"
    if table is not None:
        chosen = next((path for path in (source / table, Path(table)) if path.is_file()), None)
        if chosen is None:
            raise InputError(f"{table}: no such table in {source}; it holds {listed}. Check the name")
        if chosen.suffix.lower() not in READERS:
            raise InputError(f"{chosen} is no table that is understood; expected {', '.join(READERS)}")
        return chosen.resolve()
    if source.is_file():
        return source.resolve() if source.suffix.lower() in READERS else None
    # JSON files are often something else, such as a description of the data.
    others = [path for path in tables if path.suffix.lower() != ".json"]
    tables = others if len(others) == 1 else tables
    if len(tables) > 1:
        raise InputError(f"{source} holds several tables: {listed}. Say which one is meant with --table NAME")
    return tables[0].resolve() if tables else None


def _opened(source: str | Path, reading: Reading) -> tuple[TableReader, Columns]:
    table = _find_table(Path(source), reading.table)
    assert table is not None  # `recognises` found it
    reader = READERS[table.suffix.lower()](table)
    return reader, choose_columns(reader, image=reading.image, caption=reading.caption, label=reading.label)


def _survey(reader: TableReader, columns: Columns) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The names of all splits of a table in alphabetical order, and those of all classes; () where there are none."""
    status = reader.path.stat()
    return _surveyed(reader.path, (status.st_mtime_ns, status.st_size), columns.split, columns.label)


@lru_cache(maxsize=8)  # train, dev and test of one table ask one after the other
def _surveyed(
    path: Path, _version: tuple[int, int], split: str | None, label: str | None
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    wanted = [name for name in (split, label) if name is not None]
    if not wanted:
        return (), ()
    splits, labels = set[str](), set[str | None]()
    for row in READERS[path.suffix.lower()](path).rows(wanted):
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


def _label_columns(reader: TableReader, columns: Columns) -> dict[str, int]:
    """The columns that could serve as label -> number of classes: text or whole numbers, of a name of their own."""
    taken, names = {columns.image, *columns.captions, columns.split}, Counter(reader.columns())
    countable = reader.countable() if isinstance(reader, ParquetTable) else list(names)
    others = [name for name in countable if name not in taken and names[name] == 1]
    found: dict[str, set[str]] = {name: set() for name in others}
    for row in reader.rows(others):
        fields = row.fields if isinstance(row, TableRow) else {}
        for name in list(found):
            value = fields.get(name)
            if (text := label_of(value)) is not None:
                found[name].add(text)
            if not isinstance(value, bool | int | str | None) or len(found[name]) > _MOST_CLASSES:
                del found[name]
    return {name: len(values) for name, values in found.items() if values}


def _read(folder: Path, reader: TableReader, columns: Columns, split: str | None, reading: Reading) -> TableCollection:
    """The usable pairs of a table; bad rows are problems. Without a split all splits are read."""
    table, pictures, draft, problems = reader.path, PictureFolder(folder), Draft(), list[Problem]()
    known, class_names = _survey(reader, columns) if split is not None or columns.label is not None else ((), ())
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
    finished = finish(
        draft,
        pictures,
        reading,
        problems,
        source=table,
        name="/".join(filter(None, (folder.name, split))),
        place_of=lambda pair: (table.name, draft.row[pair]),
        order=lambda problem: problem.row,
        class_names=None if columns.label is None else class_names,
    )
    return TableCollection(finished, reader, columns, folder, wanted)


def _add(draft: Draft, row: TableRow, columns: Columns, pictures: PictureFolder, file: str) -> list[Problem]:
    """Add the pairs of one row to the draft; what keeps them out is returned."""
    path = row.fields.get(columns.image)
    if not isinstance(path, str) or not path.strip():
        entry = f"row {row.row}"
        found = f"is {path!r:.60}" if columns.image in row.fields else "is missing"
        detail = f"{entry}: {columns.image} {found}; expected the path of a picture: write it, or remove the row"
        return [Problem(entry, file, row.row, "no-picture-path", detail)]
    entry = printable(path)
    places = caption_places(row.fields, columns.captions)
    problems, usable = list[Problem](), list[tuple[int, str, Problem | None]]()
    for number, (column, _, value) in enumerate(places[: columns.most]):
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
            row=row.row, number=number, label=None if columns.label is None else row.fields.get(columns.label),
        )  # fmt: skip
    return problems
