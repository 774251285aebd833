"""Text tables with fewer rows: what stays unchanged keeps its bytes."""

from __future__ import annotations

import codecs
import csv
import io
import json
from collections.abc import Iterator
from pathlib import Path

from truepair.data.formats.tables.csv_table import CsvTable
from truepair.data.formats.tables.karpathy import KarpathyTable
from truepair.data.formats.tables.table_columns import TableRow
from truepair.data.formats.tables.text_decoding import decode
from truepair.data.formats.tables.write_rows import TableRows, without

# Wide encodings are read line by line as text, and written as little-endian whatever they were.
_WIDE = {"utf-16": ("utf-16-le", codecs.BOM_UTF16_LE), "utf-32": ("utf-32-le", codecs.BOM_UTF32_LE)}


def write_csv(source: Path, rows: TableRows, target: Path) -> None:
    """The header and the kept records; a record that loses a caption is quoted anew, all others are copied."""
    table = CsvTable(source)
    names, codec = table.columns(), _WIDE.get(table.encoding, ("utf-8", b""))[0]
    lines = _NumberedLines(source, table.encoding)
    records = table.records()
    with target.open("wb") as file:
        file.write(_WIDE.get(table.encoding, ("", b""))[1])
        for row, (first, last, record) in enumerate(records, start=-1):
            raw = lines.take(first, last)
            if row < 0:
                file.write(raw)
            elif isinstance(record, list):
                fields = dict(zip(names, record, strict=True))
                removed = rows.removed(row, fields)
                if removed:
                    record = list(without(fields, removed).values())
                    raw = _csv_line(record, table.delimiter).encode(codec) + _line_end(raw, codec)
                if removed is not None:
                    file.write(raw)


def write_jsonl(source: Path, rows: TableRows, target: Path, *, encoding: str) -> None:
    """The kept lines; one that loses a caption is written anew, all others are copied."""
    codec, mark = _WIDE.get(encoding, ("utf-8", b""))
    with target.open("wb") as file:
        file.write(mark)
        for row, raw in enumerate(_lines(source, encoding)):
            entry = _object(raw, codec)
            removed = None if entry is None else rows.removed(row, entry)
            if entry is not None and removed:
                raw = json.dumps(without(entry, removed), ensure_ascii=False).encode(codec) + _line_end(raw, codec)
            if removed is not None:
                file.write(raw)


def write_karpathy(source: Path, rows: TableRows, target: Path) -> None:
    """The same JSON with fewer images and sentences."""
    content = json.loads(decode(source.read_bytes())[0])
    images = []
    for row in KarpathyTable(source).rows(()):
        removed = rows.removed(row.row, row.fields) if isinstance(row, TableRow) else None
        if removed is not None:
            images.append(without(content["images"][row.row], removed))
    content["images"] = images
    with target.open("w", encoding="utf-8") as file:
        json.dump(content, file)


class _NumberedLines:
    """The lines of a file by their numbers from 1, asked for in ascending order."""

    def __init__(self, path: Path, encoding: str) -> None:
        self._lines, self._next = _lines(path, encoding), 1

    def take(self, first: int, last: int) -> bytes:
        taken = []
        for number in range(self._next, last + 1):
            line = next(self._lines, b"")
            if number >= first:
                taken.append(line)
        self._next = last + 1
        return b"".join(taken)


def _lines(path: Path, encoding: str) -> Iterator[bytes]:
    if encoding not in _WIDE:
        with path.open("rb") as file:
            yield from file
        return
    with path.open(encoding=encoding, errors="replace", newline="\n") as text:
        for line in text:
            yield line.encode(_WIDE[encoding][0])


def _csv_line(record: list[str], delimiter: str) -> str:
    text = io.StringIO()
    csv.writer(text, delimiter=delimiter, lineterminator="").writerow(record)
    return text.getvalue()


def _line_end(raw: bytes, codec: str) -> bytes:
    return next((end for mark in ("\r\n", "\n") if raw.endswith(end := mark.encode(codec))), b"")


def _object(raw: bytes, codec: str) -> dict[str, object] | None:
    text = raw.decode(codec) if codec != "utf-8" else decode(raw)[0]
    try:
        entry = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return entry if isinstance(entry, dict) else None
