"""What every table has in common: rows of named values, of which some are the image, its captions and its split."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from truepair.data import columns
from truepair.data.collection import Problem
from truepair.errors import InputError


@dataclass(frozen=True, slots=True)
class TableRow:
    """A row as read. `row` counts from 0: records after the header of CSV, lines of JSON Lines, entries, rows."""

    row: int
    fields: Mapping[str, Any]


_OF_DOWNLOADS = {"url", "key", "status"}
_OPEN_SHARDS = "It is img2dataset's list of downloads; open the .tar shards beside it (its output format webdataset)"


class TableReader(Protocol):
    """One format: "csv", "tsv", "jsonl", "json", "karpathy", "parquet". Unreadable rows are problems in their place."""

    path: Path
    format: str

    def columns(self) -> list[str]:
        """The names of the columns, those of the first 1,000 rows where each row has its own."""
        ...

    def rows(self, columns: Sequence[str]) -> Iterator[TableRow | Problem]:
        """All rows, streamed, with at least these columns; problems of the whole file last."""
        ...


@dataclass(frozen=True)
class Columns:
    """Which columns hold what; with `most` only the first so many captions of a row are pairs. See `caption_places`."""

    image: str
    captions: tuple[str, ...]
    most: int | None = None
    split: str | None = None
    label: str | None = None

    def needed(self) -> list[str]:
        names = (self.image, *self.captions, self.split, self.label)
        return list(dict.fromkeys(name for name in names if name is not None))


def choose_columns(
    reader: TableReader, *, image: str | None = None, caption: str | None = None, label: str | None = None
) -> Columns:
    """Which columns hold the image, the captions and the split.

    By default those that `data/columns.py` knows. `caption` may name several columns, with commas between them, or be
    `FIRST` (as `most_captions` reads it) or `ALL`.
    """
    found = reader.columns()
    most = None if caption in found else columns.most_captions(caption)
    by_name = caption if most is None and (caption in found or caption != columns.ALL) else None
    images = next(iter(_named(reader, found, "image", image)), columns.find(found, columns.IMAGES))
    captions = tuple(_named(reader, found, "caption", by_name)) or columns.find_captions(found)
    wanted = (("image paths", "--image COLUMN", images), ("captions", "--caption COLUMN", captions))
    missing = {what: option for what, option, known in wanted if not known}
    if missing or images is None:
        remedy = _OPEN_SHARDS if {*found} >= _OF_DOWNLOADS else f"Say which with {' and '.join(missing.values())}"
        raise InputError(
            f"{reader.path} has no column of {' and of '.join(missing)} that is known by its name; its columns are "
            f"{_list(found)}. {remedy}"
        )
    labels = _named(reader, found, "label", label)
    split = columns.find(found, columns.SPLITS)
    return Columns(images, captions, most, split, labels[0] if labels else None)


def caption_places(fields: Mapping[str, Any], captions: Sequence[str]) -> list[tuple[str, int | None, Any]]:
    """The captions of a row, in order: (column, place within its list or None, value).

    A column with a list gives its items, any other column one caption, be it empty. Caption k of a row, in ids and in
    `caption_of_pair`, is item k of this list.
    """
    places: list[tuple[str, int | None, Any]] = []
    for column in captions:
        value = fields.get(column)
        if isinstance(value, list | tuple):
            places += [(column, place, item) for place, item in enumerate(value)]
        else:
            places.append((column, None, value))
    return places


def _named(reader: TableReader, found: list[str], what: str, name: str | None) -> list[str]:
    if name is None:
        return []
    names = [name] if name in found else [part.strip() for part in name.split(",")]
    for part in names:
        if part not in found:
            raise InputError(
                f"{reader.path} has no column {part!r} for the {what}; its columns are {_list(found)}. Name one of them"
            )
    if what != "caption" and len(names) > 1:
        raise InputError(f"{reader.path}: {name!r} names {len(names)} columns for the {what}; name one")
    return names


def _list(found: list[str]) -> str:
    return ", ".join(found[:30]) + (", …" if len(found) > 30 else "") if found else "none"
