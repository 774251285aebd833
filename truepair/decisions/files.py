"""Decisions as files that other programs read: parquet, CSV, JSON Lines, and the tasks of Label Studio.

A row is a row of the history, so that a file says all that the database says; beside it stand the names of the image
and the caption as given, for people, and to tell whether a file is about the pairs it is imported for.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from truepair.decisions import label_studio
from truepair.decisions.decision import Decision, checked
from truepair.errors import InputError
from truepair.files import read_file, write_bytes_atomically
from truepair.files.reading import json_object, reason

Given = Mapping[str, tuple[str, str]]
"""Pair id → name of its image, and its caption as given."""

_COLUMNS = {
    "number": "int64",
    "pair_id": "string",
    "verdict": "string",
    "person": "string",
    "chosen_by": "string",
    "caption": "string",
    "partner": "string",
    "probability_chosen": "float64",
    "seconds": "float64",
    "at": "string",
    "undoes": "int64",
    "given_image": "string",
    "given_caption": "string",
}
_NUMBERS: dict[str, Callable[[str], Any]] = {
    "number": int,
    "probability_chosen": float,
    "seconds": float,
    "undoes": int,
}
_LEAST = ("pair_id", "verdict")
CORRECTED = "corrected_caption"
"""As an audit's tables of pairs call what decisions call `caption`."""
IMPORTED = "imported"
"""Who decided, and how a pair was chosen, where a file does not say."""


@dataclass(frozen=True)
class FileRow:
    """A row of a file of decisions.

    Attributes:
        place: "FILE, row 3", for messages; rows count from 1, as people do, without the header.
        given_caption, given_image: what was judged, None where the file does not say.
    """

    place: str
    decision: Decision
    given_caption: str | None = None
    given_image: str | None = None


def write_decisions(path: Path, history: Sequence[Decision], given: Given) -> None:
    """Write a history; the ending of the path says how: .parquet, .csv, .jsonl, or .json for Label Studio.

    A file of that name is replaced only where it is an earlier export of this history, byte for byte: nothing is lost.

    Raises:
        InputError: another ending, or a file of that name holds anything else; it stays as it is.
        TruepairError: the disk is full, or the folder may not be written to.
    """
    bytes_of = _kind_of(path)[0]
    if path.exists() and not _is_earlier(path, history, given):
        raise InputError(
            f"{path} is there and is no earlier export of these decisions; it stays as it is. Choose another name; "
            "decisions that it holds come into the audit by truepair decisions import"
        )
    write_bytes_atomically(path, bytes_of(history, given))


def _is_earlier(path: Path, history: Sequence[Decision], given: Given) -> bool:
    """Whether a file is what would have been written after its last row, to which a history only adds."""
    try:
        count = len(read_decisions(path))
    except InputError:
        return False
    return read_file(path) == _kind_of(path)[0](history[:count], given)


def read_decisions(path: Path) -> list[FileRow]:
    """The rows of such a file, in order. Of columns only `pair_id` and `verdict` are needed; unknown ones are left
    out. An audit's table of pairs will do as well, once it has a column `verdict`.

    Raises:
        InputError: the file cannot be read, or a row is none; the message names it.
    """
    read = _kind_of(path)[1]
    try:
        return list(read(path))
    except (OSError, RecursionError) as error:
        raise InputError(f"{path} cannot be read ({reason(error)}); expected a file of decisions") from error


def _row_of(values: Mapping[str, Any], place: str) -> FileRow:
    lacking = [name for name in _LEAST if name not in values]
    if lacking:
        raise InputError(f"{place} has no {lacking[0]}; expected at least {' and '.join(_LEAST)}")
    known = {field.name for field in fields(Decision)}
    if CORRECTED in values:  # a table of pairs: its `caption` is the given one
        values = {**values, "caption": values[CORRECTED], "given_caption": values.get("caption")}
    told = {name: value for name, value in values.items() if name in known and value is not None}
    names = {"verdict": None, "person": IMPORTED, "chosen_by": IMPORTED}
    for name in ("number", "undoes"):
        if name in told and (type(told[name]) is not int or told[name] < 0):
            raise InputError(f"{place}: {name} is {told[name]!r}; expected a row of the history")
    try:
        decision = checked(Decision(**{**names, **told}))
    except InputError as error:
        raise InputError(f"{place}: {error}") from error
    judged = (values.get(name) for name in ("given_caption", "given_image"))
    return FileRow(place, decision, *(told if isinstance(told, str) else None for told in judged))


def _records(history: Sequence[Decision], given: Given) -> Iterator[dict[str, Any]]:
    for decision in history:
        image, caption = given.get(decision.pair_id, (None, None))
        beside = {"given_image": image, "given_caption": caption}
        yield {name: beside[name] if name in beside else getattr(decision, name) for name in _COLUMNS}


def _as_csv(history: Sequence[Decision], given: Given) -> bytes:
    text = io.StringIO(newline="")
    # The module quotes the signs of the line's end alone: with both of them, a carriage return in a caption survives.
    writer = csv.DictWriter(text, list(_COLUMNS), lineterminator="\r\n")
    writer.writeheader()
    for record in _records(history, given):
        writer.writerow({name: "" if value is None else value for name, value in record.items()})
    return text.getvalue().encode("utf-8", "backslashreplace")


def _read_csv(path: Path) -> Iterator[FileRow]:
    try:
        text = read_file(path).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(f"{path} is no UTF-8 text ({error}); save it as CSV in UTF-8") from error
    csv.field_size_limit(10**7)
    reader = csv.DictReader(io.StringIO(text, newline=""), strict=True)
    try:
        if not reader.fieldnames:
            raise InputError(f"{path} is empty; expected a table with the columns {' and '.join(_LEAST)} at least")
        for number, record in enumerate(reader, start=1):
            place = f"{path}, row {number}"
            if None in record:
                raise InputError(f"{place} has more values than there are columns; quote values with commas in them")
            yield _row_of({name: _number(name, value, place) for name, value in record.items()}, place)
    except csv.Error as error:
        raise InputError(f"{path}, line {reader.line_num} is no CSV ({error}); save it as CSV again") from error


def _number(name: str, value: str | None, place: str) -> Any:
    if value is None or (value == "" and name != "given_caption"):
        return None
    try:
        return _NUMBERS.get(name, str)(value)
    except ValueError as error:
        raise InputError(f"{place}: {name} is {value!r}; expected a number") from error


def lines_of(history: Sequence[Decision], given: Given) -> bytes:
    """A history as JSON Lines, as `write_decisions` writes it to a .jsonl file."""
    lines = [
        json.dumps({name: value for name, value in record.items() if value is not None or name == "verdict"}) + "\n"
        for record in _records(history, given)
    ]
    return "".join(lines).encode("utf-8")


def _read_lines(path: Path) -> Iterator[FileRow]:
    for number, line in enumerate(read_file(path).split(b"\n"), start=1):
        if line.strip():
            place = f"{path}, line {number}"
            try:
                record = json_object(line)
            except (ValueError, RecursionError) as error:
                raise InputError(f"{place} is no JSON object ({error}); expected a decision") from error
            yield _row_of(record, place)


def _as_parquet(history: Sequence[Decision], given: Given) -> bytes:
    import pyarrow
    from pyarrow import parquet

    schema = pyarrow.schema([(name, pyarrow.type_for_alias(kind)) for name, kind in _COLUMNS.items()])
    records = [{name: _encodable(value) for name, value in record.items()} for record in _records(history, given)]
    file = io.BytesIO()
    parquet.write_table(pyarrow.Table.from_pylist(records, schema=schema), file)
    return file.getvalue()


def _encodable(value: Any) -> Any:
    return value.encode("utf-8", "backslashreplace").decode("utf-8") if isinstance(value, str) else value


def _read_parquet(path: Path) -> Iterator[FileRow]:
    from pyarrow import ArrowException, parquet

    try:
        with parquet.ParquetFile(path) as file:
            names = [name for name in _COLUMNS if name in file.schema_arrow.names]
            records = file.read(columns=names).to_pylist()
    except ArrowException as error:
        raise InputError(f"{path} is no parquet table ({error}); expected a file of decisions") from error
    if not names or not set(_LEAST) <= set(names):
        raise InputError(f"{path} lacks the columns {' and '.join(_LEAST)}; expected a file of decisions")
    for number, record in enumerate(records, start=1):
        yield _row_of(record, f"{path}, row {number}")


def _as_tasks(history: Sequence[Decision], given: Given) -> bytes:
    tasks = label_studio.tasks_of(list(_records(history, given)), history)
    return json.dumps(tasks, ensure_ascii=True, indent=1).encode("utf-8")


def _read_tasks(path: Path) -> Iterator[FileRow]:
    for record, place in label_studio.records_of(path):
        yield _row_of(record, place)


_Kind = tuple[Callable[[Sequence[Decision], Given], bytes], Callable[[Path], Iterator[FileRow]]]
FILES: dict[str, _Kind] = {
    ".parquet": (_as_parquet, _read_parquet),
    ".csv": (_as_csv, _read_csv),
    ".jsonl": (lines_of, _read_lines),
    ".json": (_as_tasks, _read_tasks),
}
"""Ending → how such a file is written and read; .json is that of Label Studio."""


def _kind_of(path: Path) -> _Kind:
    kind = FILES.get(path.suffix.lower())
    if kind is None:
        raise InputError(f"{path} ends in {path.suffix or 'nothing'}; expected {', '.join(FILES)} (Label Studio)")
    return kind
