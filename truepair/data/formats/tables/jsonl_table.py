"""Tables of one JSON object a line: .jsonl."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from truepair.data.collection import Problem
from truepair.data.formats.tables.table_columns import TableRow
from truepair.data.formats.tables.text_decoding import TextLines

_ROWS_FOR_COLUMNS = 1000


class JsonLinesTable:
    """A .jsonl file. Rows are lines, numbered from 0, blank ones counted."""

    format = "jsonl"

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lines = TextLines(path)
        self.encoding = self._lines.encoding

    def columns(self) -> list[str]:
        rows = (row for row in self.rows(()) if isinstance(row, TableRow))
        return list(dict.fromkeys(name for row in islice(rows, _ROWS_FOR_COLUMNS) for name in row.fields))

    def rows(self, columns: Sequence[str]) -> Iterator[TableRow | Problem]:
        for row, line in enumerate(self._lines):
            if line.strip():
                entry = _parse(line)
                if isinstance(entry, dict):
                    yield TableRow(row, entry)
                else:
                    detail = f"line {row + 1} {entry}; expected one object a line: correct or remove the line"
                    yield Problem(f"row {row}", self.path.name, row, "not-json", detail)
        yield from self._lines.problems()


def _parse(line: str) -> dict[str, Any] | str:
    try:
        entry = json.loads(line)
    except (ValueError, RecursionError) as error:
        return f"is not JSON ({error})"
    return entry if isinstance(entry, dict) else f"holds {type(entry).__name__}, not an object"
