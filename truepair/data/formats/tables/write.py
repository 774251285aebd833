"""A table of pictures in, the same table out with its pictures: the kept rows, in the same format, columns and order.

A row of which some captions are kept loses the others: they are taken out of a list, or emptied in a column of their
own; what stays unchanged keeps its bytes. Rows of splits that were not read stay as they are. The pictures of all rows
lie beside the table at the same paths, as hard links where the disk allows it and as copies where not, so that the new
folder opens as it stands. `weights.npy` is float32, a weight for each kept caption, in the order of the table (of the
split that was read, where one was named).
"""

from __future__ import annotations

import codecs
import csv
import io
import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from truepair.data.formats.json_text import json_text
from truepair.data.formats.tables.csv_table import CsvTable
from truepair.data.formats.tables.drafts import label_of
from truepair.data.formats.tables.json_tables import (
    TASK_DATA,
    JsonLinesTable,
    KarpathyTable,
    ListTable,
    parsed,
    read_json,
)
from truepair.data.formats.tables.picture_folder import PictureFolder
from truepair.data.formats.tables.table_columns import TableRow, caption_places
from truepair.data.formats.tables.text_decoding import decode
from truepair.data.selection import Selection
from truepair.errors import InputError
from truepair.files import link_or_copy

if TYPE_CHECKING:
    from truepair.data.formats.tables.tables import TableCollection

_README = """\
{table} holds the {kept} pairs that were kept, out of {pairs}, as a table of the same format. Its pictures are here at
the same paths: {pictures} of them, as hard links to the originals where the disk allows it. Do not edit them in place.

weights.npy holds a weight in [0, 1] (float32) for each kept caption, in the order of the table{of_split}.
"""
# Wide encodings are read line by line as text, and written as little-endian whatever they were.
_WIDE = {"utf-16": ("utf-16-le", codecs.BOM_UTF16_LE), "utf-32": ("utf-32-le", codecs.BOM_UTF32_LE)}
_BATCH_ROWS = 4096

_Places = list[tuple[str, int | None]]
"""Captions by their column, and their place in its list or None where the column holds one text."""


def write_table(collection: TableCollection, selection: Selection, folder: Path) -> None:
    """Writes the table, its pictures, its weights and a README into the folder."""
    collection.check_pairs_are_of_files()
    table, pictures = collection.reader.path, PictureFolder(collection.folder)
    rows = _Rows(collection, selection, pictures)
    _WRITERS[collection.reader.format](table, rows, folder / table.name)
    for number in range(len(pictures)):
        picture = Path(pictures.place(number).file)
        link_or_copy(picture, folder / picture.relative_to(collection.folder))
    kept = rows.pairs
    np.save(folder / "weights.npy", selection.weights[kept])
    names = " and ".join(collection.splits)
    of_split = f", in the split {names}; rows of other splits are as they were" if names else ""
    text = _README.format(
        table=table.name, kept=len(kept), pairs=len(collection), pictures=len(pictures), of_split=of_split
    )
    (folder / "README.txt").write_text(text, encoding="utf-8")


class _Rows:
    """What becomes of each row: kept as it is, kept without some captions, or left out.

    Attributes:
        pairs: the kept pairs in the order of the table.
        columns: those that say what becomes of a row.
    """

    def __init__(self, collection: TableCollection, selection: Selection, pictures: PictureFolder) -> None:
        self._of, self._splits, self._pictures = collection.columns, collection.splits, pictures
        self.columns = replace(self._of, split=self._of.split if self._splits else None, label=None).needed()
        kept, rows = selection.kept_rows, collection.source_rows
        self.pairs = kept[np.lexsort((collection.caption_of_pair[kept], rows(kept)))]
        self._rows, self._numbers = rows(self.pairs), collection.caption_of_pair[self.pairs]

    def has_kept(self, start: int, stop: int) -> bool:
        """Whether a caption is kept in the rows [start, stop)."""
        return bool(np.searchsorted(self._rows, start) < np.searchsorted(self._rows, stop))

    def removed(self, row: int, fields: Mapping[str, Any]) -> _Places | None:
        """The captions to take out of a row, none where it stays as it is; None where the row is left out.

        Captions that were not read (empty, no text, not asked for) are taken out like those that are not kept. The
        picture of each row that stays is asked for, so that all of them are known in the end.
        """
        found = self._removed(row, fields)
        image = fields.get(self._of.image)
        if found is not None and isinstance(image, str):
            self._pictures.find(image.strip())
        return found

    def _removed(self, row: int, fields: Mapping[str, Any]) -> _Places | None:
        if self._splits and label_of(fields.get(self._of.split or "")) not in self._splits:
            return []
        start, stop = np.searchsorted(self._rows, [row, row + 1])
        kept = set(self._numbers[start:stop].tolist())
        if not kept:
            return None
        return [
            (column, place)
            for number, (column, place, value) in enumerate(caption_places(fields, self._of.captions))
            if number not in kept and not (place is None and value in (None, ""))
        ]


def _without(entry: Mapping[str, Any], removed: _Places) -> dict[str, Any]:
    """The entry without these captions: taken out of a list, or emptied where the column holds one text."""
    changed = dict(entry)
    for column in dict.fromkeys(column for column, _ in removed):
        places = {place for name, place in removed if name == column}
        values = entry[column]
        changed[column] = "" if None in places else [item for k, item in enumerate(values) if k not in places]
        # Karpathy's layout has the numbers of the sentences beside them.
        numbers = entry.get("sentids") if column == "sentences" else None
        if isinstance(numbers, list) and len(numbers) == len(values):
            changed["sentids"] = [number for k, number in enumerate(numbers) if k not in places]
    return changed


def _write_csv(source: Path, rows: _Rows, target: Path) -> None:
    """The header and the kept records; a record that loses a caption is quoted anew, all others are copied."""
    table = CsvTable(source)
    names, (codec, mark) = table.columns(), _WIDE.get(table.encoding, ("utf-8", b""))
    lines, taken = _lines(source, table.encoding), 0
    with target.open("wb") as file:
        file.write(mark)
        for row, (first, last, record) in enumerate(table.records(), start=-1):
            raw = b"".join(islice(lines, first - 1 - taken, last - taken))
            taken = last
            if row < 0:
                file.write(raw)
            elif isinstance(record, list):
                fields = dict(zip(names, record, strict=True))
                removed = rows.removed(row, fields)
                if removed:
                    emptied = {names.index(column) for column, _ in removed}  # other columns may share a name
                    values = ["" if place in emptied else value for place, value in enumerate(record)]
                    text = io.StringIO()
                    csv.writer(text, delimiter=table.delimiter, lineterminator="").writerow(values)
                    raw = text.getvalue().encode(codec) + _line_end(raw, codec)
                if removed is not None:
                    file.write(raw)


def _write_jsonl(source: Path, rows: _Rows, target: Path) -> None:
    """The kept lines; one that loses a caption is written anew, all others are copied."""
    encoding = JsonLinesTable(source).encoding
    codec, mark = _WIDE.get(encoding, ("utf-8", b""))
    with target.open("wb") as file:
        file.write(mark)
        for row, raw in enumerate(_lines(source, encoding)):
            entry = parsed(raw.decode(codec) if encoding in _WIDE else decode(raw)[0])
            removed = rows.removed(row, entry) if isinstance(entry, dict) else None
            if isinstance(entry, dict) and removed:
                raw = json_text(_without(entry, removed)).encode(codec) + _line_end(raw, codec)
            if removed is not None:
                file.write(raw)


def _write_karpathy(source: Path, rows: _Rows, target: Path) -> None:
    """The same JSON with fewer images and sentences."""
    content = json.loads(decode(source.read_bytes())[0])
    images = []
    for row in KarpathyTable(source).rows(()):
        removed = rows.removed(row.row, row.fields) if isinstance(row, TableRow) else None
        if removed is not None:
            images.append(_without(content["images"][row.row], removed))
    with target.open("w", encoding="utf-8") as file:
        json.dump({**content, "images": images}, file)


def _write_list(source: Path, rows: _Rows, target: Path) -> None:
    """The same list with fewer entries and captions."""
    content, entries = read_json(source), []
    for row in ListTable(source, content).rows(()):
        removed = rows.removed(row.row, row.fields) if isinstance(row, TableRow) else None
        if removed is None:
            continue
        entry = content[row.row]
        data = entry.get(TASK_DATA)
        inside = [place for place in removed if isinstance(data, dict) and place[0] in data]
        entry = {**entry, TASK_DATA: _without(data, inside)} if inside else entry
        entries.append(_without(entry, [place for place in removed if place not in inside]))
    target.write_text(json_text(entries, indent=1), encoding="utf-8")


def _write_parquet(source: Path, rows: _Rows, target: Path) -> None:
    """The kept rows with all their columns; raises InputError where a row group that has some cannot be read."""
    import pyarrow as pa
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
            except (OSError, ValueError, OverflowError, pa.ArrowException) as error:
                if rows.has_kept(row, stop):
                    raise InputError(
                        f"{source}: the rows {row} to {stop - 1} cannot be read in all columns ({str(error)[:200]}). "
                        "Export csv, jsonl or parquet instead, or repair the table"
                    ) from error
            start = stop


def _chosen(batch: Any, start: int, rows: _Rows) -> Any:
    """The rows of the batch that stay, without the captions that do not."""
    import pyarrow as pa

    entries = batch.select(rows.columns).to_pylist()
    removed = [rows.removed(start + k, entry) for k, entry in enumerate(entries)]
    entries = [entry if not places else _without(entry, places) for entry, places in zip(entries, removed, strict=True)]
    for column in dict.fromkeys(column for places in removed for column, _ in places or ()):
        place = batch.schema.get_field_index(column)
        values = pa.array([entry[column] for entry in entries], type=batch.schema.field(place).type)
        batch = batch.set_column(place, batch.schema.field(place), values)
    return batch.filter(pa.array([places is not None for places in removed], type=pa.bool_()))


def _lines(path: Path, encoding: str) -> Iterator[bytes]:
    if encoding not in _WIDE:
        with path.open("rb") as file:
            yield from file
        return
    with path.open(encoding=encoding, errors="replace", newline="\n") as text:
        for line in text:
            yield line.encode(_WIDE[encoding][0])


def _line_end(raw: bytes, codec: str) -> bytes:
    return next((end for mark in ("\r\n", "\n") if raw.endswith(end := mark.encode(codec))), b"")


_WRITERS = {
    "csv": _write_csv,
    "tsv": _write_csv,
    "jsonl": _write_jsonl,
    "json": _write_list,
    "karpathy": _write_karpathy,
    "parquet": _write_parquet,
}
