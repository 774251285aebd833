"""Tables with separated values: .csv and .tsv, with a header line."""

from __future__ import annotations

import csv
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from truepair.data.collection import Problem
from truepair.data.formats.tables.table_columns import TableRow
from truepair.data.formats.tables.text_decoding import TextLines
from truepair.errors import InputError

_DELIMITERS = ",;\t|"
# Python's own limit of 131,072 characters a field would refuse long captions; some limit must stand.
_LONGEST_FIELD = 2**24


class CsvTable:
    """A .csv or .tsv file. In .csv the delimiter is the one of , ; tab | that the header holds most of.

    Records are numbered from 0 after the header; blank lines are not counted. A quote that is never closed would
    swallow all records to the next quote: a record that spans lines and has another number of fields than the header
    costs its first line only, and reading goes on with the next line.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.format = "tsv" if path.suffix.lower() == ".tsv" else "csv"
        self._lines = TextLines(path)
        self.encoding = self._lines.encoding
        header = next((line for line in self._lines if line.strip()), "")
        self.delimiter = "\t" if self.format == "tsv" else max(_DELIMITERS, key=header.count)
        first = next(self.records(), None)
        self._header = first[2] if first is not None and isinstance(first[2], list) else []

    def columns(self) -> list[str]:
        return [name.strip() for name in self._header]

    def rows(self, columns: Sequence[str]) -> Iterator[TableRow | Problem]:
        names = self.columns()
        twice = next((name for name in columns if names.count(name) > 1), None)
        if twice is not None:
            raise InputError(f"{self.path}: the header has the column {twice!r} twice; rename one of them")
        records = self.records()
        next(records, None)
        for row, (first, _, record) in enumerate(records):
            if isinstance(record, list):
                yield TableRow(row, dict(zip(names, record, strict=True)))
            else:
                detail = f"line {first}: {record}; correct the quotes and delimiters there"
                yield Problem(f"row {row}", self.path.name, row, "wrong-field-count", detail)
        yield from self._lines.problems()

    def records(self) -> Iterator[tuple[int, int, list[str] | str]]:
        """(first line, last line, fields) of each record, the header first; for one that cannot be used, why."""
        width = 0
        numbered = enumerate(self._lines, start=1)
        again: deque[tuple[int, str]] = deque()
        while True:
            taken: list[tuple[int, str]] = []
            fields = self._next_record(numbered, again, taken)
            if fields is None:
                return
            if not any(line.strip() for _, line in taken):
                continue
            first, last = taken[0][0], taken[-1][0]
            width = width or (len(fields) if isinstance(fields, list) else 0)
            if isinstance(fields, list) and len(fields) > width and not any(fields[width:]):
                fields = fields[:width]
            if isinstance(fields, list) and len(fields) == width:
                yield first, last, fields
                continue
            why = fields if isinstance(fields, str) else f"{len(fields)} fields where the header has {width}"
            if last > first:
                again.extendleft(reversed(taken[1:]))
                why += f" (a quote stays open until line {last})"
            yield first, first, why

    def _next_record(
        self, numbered: Iterator[tuple[int, str]], again: deque[tuple[int, str]], taken: list[tuple[int, str]]
    ) -> list[str] | str | None:
        """The fields of the next record, why it cannot be read, or None at the end; its lines go to `taken`."""

        def feed() -> Iterator[str]:
            while (line := again.popleft() if again else next(numbered, None)) is not None:
                taken.append(line)
                yield line[1]

        # The limit belongs to the whole process: it is only changed for the moment of one record.
        limit = csv.field_size_limit(_LONGEST_FIELD)
        try:
            return next(csv.reader(feed(), delimiter=self.delimiter, strict=True))
        except StopIteration:
            return None
        except csv.Error as error:
            if len(taken) == 1:  # careless quotes, read as spreadsheets do
                with suppress(csv.Error):
                    return next(csv.reader([taken[0][1]], delimiter=self.delimiter))
            return f"it cannot be read ({error})"
        finally:
            csv.field_size_limit(limit)
