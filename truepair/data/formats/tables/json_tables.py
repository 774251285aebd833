"""Tables in JSON: .jsonl with one object a line, .json with a list of objects (Label Studio's tasks among them), and
Karpathy's dataset_flickr30k.json and dataset_coco.json.

Karpathy's files hold the field's usual splits of these collections:
{"images": [{"filename": …, "filepath": … (COCO's folder), "split": …, "sentences": [{"raw": …}, …]}, …]}
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from truepair.data.collection import Problem
from truepair.data.formats.tables.table_columns import TableRow
from truepair.data.formats.tables.text_decoding import TextLines, decode
from truepair.errors import InputError
from truepair.files import read_file

_ROWS_FOR_COLUMNS = 1000
_IMAGE, _CAPTIONS = "filename", "sentences"
_SERVED = "/data/local-files/?d="
TASK_DATA = "data"
"""Where a task of Label Studio has its picture and texts."""


class JsonLinesTable:
    """A .jsonl file. Rows are lines, numbered from 0, blank ones counted."""

    format = "jsonl"

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lines = TextLines(path)
        self.encoding = self._lines.encoding

    def columns(self) -> list[str]:
        return _columns(row.fields for row in self.rows(()) if isinstance(row, TableRow))

    def rows(self, columns: Sequence[str]) -> Iterator[TableRow | Problem]:
        for row, line in enumerate(self._lines):
            if line.strip():
                entry = parsed(line)
                if isinstance(entry, dict):
                    yield TableRow(row, entry)
                else:
                    detail = f"line {row + 1} {entry}; expected one object a line: correct or remove the line"
                    yield Problem(f"row {row}", self.path.name, row, "not-json", detail)
        yield from self._lines.problems()


class KarpathyTable:
    """Karpathy's JSON. Rows are the entries of "images", numbered from 0; captions are the "raw" of the sentences.

    The columns are those of the entries, with two differences: `filename` holds the folder too (`filepath`), and
    `sentences` a list of texts.
    """

    format = "karpathy"
    encoding = "utf-8"

    def __init__(self, path: Path) -> None:
        self.path = path
        content = read_json(path)
        images = content.get("images") if isinstance(content, dict) else None
        if not isinstance(images, list):
            found = f"an object with {', '.join(list(content)[:8])}" if isinstance(content, dict) else "something else"
            raise InputError(
                f"{path} holds {found}; expected Karpathy's layout, an object with a list of images, each with "
                "filename and sentences. Write other tables as a list of objects, or as .jsonl, one object a line"
            )
        self._images: list[Any] = images

    def columns(self) -> list[str]:
        return _columns(image for image in self._images[:_ROWS_FOR_COLUMNS] if isinstance(image, dict))

    def rows(self, columns: Sequence[str]) -> Iterator[TableRow | Problem]:
        for row, image in enumerate(self._images):
            if isinstance(image, dict):
                yield TableRow(row, {**image, _IMAGE: _path(image), _CAPTIONS: _captions(image)})
            else:
                detail = f"entry {row} of images is {type(image).__name__}, not an object; correct or remove it"
                yield Problem(f"row {row}", self.path.name, row, "not-an-object", detail)


class ListTable:
    """A list of objects in .json. Rows are its entries, numbered from 0.

    Of tasks of Label Studio ({"data": {…}, …}) the columns of their data are read, too, and pictures that it serves
    from this machine ("/data/local-files/?d=pictures/a%20b.png") have the path that stands in their address.
    """

    format = "json"
    encoding = "utf-8"

    def __init__(self, path: Path, content: list[Any]) -> None:
        self.path, self._entries = path, content

    def columns(self) -> list[str]:
        return _columns(row.fields for row in islice(self.rows(()), _ROWS_FOR_COLUMNS) if isinstance(row, TableRow))

    def rows(self, columns: Sequence[str]) -> Iterator[TableRow | Problem]:
        for row, entry in enumerate(self._entries):
            if isinstance(entry, dict):
                data = entry.get(TASK_DATA)
                yield TableRow(row, {**entry, **_served(data)} if isinstance(data, dict) else entry)
            else:
                detail = f"entry {row} is {type(entry).__name__}, not an object; correct or remove it"
                yield Problem(f"row {row}", self.path.name, row, "not-an-object", detail)


def json_table(path: Path) -> KarpathyTable | ListTable:
    """A .json file, by what it holds."""
    content = read_json(path)
    return ListTable(path, content) if isinstance(content, list) else KarpathyTable(path)


def read_json(path: Path) -> Any:
    try:
        return json.loads(decode(read_file(path))[0])
    except (OSError, ValueError, RecursionError) as error:
        raise InputError(
            f"{path} cannot be read as JSON ({error}); expected Karpathy's layout or a list of objects. Copy or "
            "download it again"
        ) from error


def parsed(line: str) -> dict[str, Any] | str:
    """The object that a text holds, or what it is instead."""
    try:
        entry = json.loads(line)
    except (ValueError, RecursionError) as error:
        return f"is not JSON ({error})"
    return entry if isinstance(entry, dict) else f"holds {type(entry).__name__}, not an object"


def _columns(rows: Iterable[Mapping[str, Any]]) -> list[str]:
    return list(dict.fromkeys(name for fields in islice(rows, _ROWS_FOR_COLUMNS) for name in fields))


def _served(data: Mapping[str, Any]) -> dict[str, Any]:
    """The data of a task with paths in place of the addresses under which Label Studio serves them."""
    return {
        name: unquote(value.removeprefix(_SERVED)) if isinstance(value, str) and value.startswith(_SERVED) else value
        for name, value in data.items()
    }


def _path(image: dict[str, Any]) -> object:
    folder, name = image.get("filepath"), image.get(_IMAGE)
    return f"{folder}/{name}" if isinstance(folder, str) and folder and isinstance(name, str) else name


def _captions(image: dict[str, Any]) -> object:
    sentences = image.get(_CAPTIONS)
    if not isinstance(sentences, list):
        return sentences
    return [sentence.get("raw") if isinstance(sentence, dict) else sentence for sentence in sentences]
