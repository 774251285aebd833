"""A folder of pictures with a table: one JSON Lines file, and region features by the built-in descriptor.

Each line of the table is an object with

- `image`: path of a picture, relative to the folder and inside it;
- `captions`, a list of which the first is used, or `caption`;
- optionally `split`; without it in any line, all pairs are for training;
- further columns, each of which can serve as label. A line whose label is null has none and is left out.

Transparent pictures are laid on white, turned as their EXIF says, and shrunk to a longer side of 192 pixels.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from truepair.data.pairs import Images, IntArray, Pairs, Texts
from truepair.data.pictures.picture_features import describe_files
from truepair.errors import InputError
from truepair.files import read_file

_OTHER_NAME = {"dev": "val", "val": "dev", "test": "testall", "testall": "test"}
_OWN_COLUMNS = {"image", "captions", "caption", "split"}


@dataclass(frozen=True)
class PictureRow:
    """One checked line of the table: `line` counts from 1, `columns` are those that can be labels."""

    line: int
    image: str
    caption: str
    split: str
    columns: dict[str, Any]


def is_picture_table(folder: Path) -> bool:
    """Whether the folder holds a JSON Lines table, and not features in the precomp layout."""
    return any(folder.glob("*.jsonl")) and not any(folder.glob("*_ims.npy"))


def load_picture_table(folder: Path | str, split: str, *, label: str | None = None) -> Pairs:
    """The pairs of one split, one a line of the table; features (n, 36, 56) float16 are kept in a cache.

    Where the table has no `split`, "dev" and "val" stand for each other and "test" for "testall". `label` names a
    column: it becomes `labels`, numbered by the sorted values of that column in all lines, so that a number means the
    same class in each split.

    Raises:
        InputError: the table is missing, one of several, or a line of it has another form; a picture is missing or
            broken; the split does not exist; a line lacks the label, or there are fewer than two classes.
    """
    folder = Path(folder).resolve()
    table = _table_of(folder)
    rows = read_table(folder)
    splits = sorted({row.split for row in rows})
    name = split if split in splits else _OTHER_NAME.get(split, split)
    here = [row for row in rows if row.split == name]
    if not here:
        raise InputError(f"{table} has no split {split!r}; its splits are {', '.join(splits)}. Choose one of them")
    features, pictures = describe_files(folder, tuple(row.image for row in here))
    labels: IntArray | None = None
    class_names: tuple[str, ...] = ()
    if label is not None:
        class_names = _class_names(table, rows, label)
        number = {class_name: k for k, class_name in enumerate(class_names)}
        labelled = [k for k, row in enumerate(here) if row.columns[label] is not None]
        if len(labelled) < len(here):
            features, pictures = features[labelled], None if pictures is None else pictures[labelled]
            here = [here[k] for k in labelled]
        if not here:
            raise InputError(f"{table}: no line of split {name!r} has a {label!r}, all are null; choose another column")
        labels = np.array([number[str(row.columns[label])] for row in here], dtype=np.int64)
    ids = tuple(row.image for row in here)
    index = np.arange(len(here), dtype=np.int64)
    return Pairs(
        images=Images(features, ids, pictures),
        texts=Texts(tuple(row.caption for row in here), ids),
        image_index=index,
        text_index=index,
        labels=labels,
        class_names=class_names,
        name=f"{folder.name}/{name}",
    )


def table_splits(folder: Path | str) -> tuple[str, ...]:
    """The names of the splits of the table, in alphabetical order."""
    return tuple(sorted({row.split for row in read_table(Path(folder).resolve())}))


def label_columns(rows: Sequence[PictureRow]) -> dict[str, int]:
    """The columns that can serve as label -> number of classes; null is none."""
    names = dict.fromkeys(name for row in rows for name in row.columns)
    found = {name: [row.columns.get(name, "") for row in rows] for name in names}
    usable = {name: values for name, values in found.items() if all(map(_is_label, values))}
    return {name: len({str(value) for value in values if value is not None}) for name, values in usable.items()}


def read_table(folder: Path) -> list[PictureRow]:
    """All lines of the folder's table, checked; the pictures are not looked at."""
    table = _table_of(folder)
    status = table.stat()
    return _read_table(table, (status.st_mtime_ns, status.st_size))


@lru_cache(maxsize=4)
def _read_table(table: Path, _version: tuple[int, int]) -> list[PictureRow]:
    try:
        lines = read_file(table).decode("utf-8-sig").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{table} cannot be read ({error}); expected UTF-8 text, one JSON object a line") from error
    rows = [_row(table, number, line) for number, line in enumerate(lines, start=1) if line.strip()]
    if not rows:
        raise InputError(f"{table} is empty; expected one JSON object a line")
    without = next((row for row in rows if not row.split), None)
    if without is None or not any(row.split for row in rows):
        return [PictureRow(row.line, row.image, row.caption, row.split or "train", row.columns) for row in rows]
    raise InputError(f"{table}, line {without.line}: no split, though other lines have one; name the split of each")


def _row(table: Path, number: int, line: str) -> PictureRow:
    place = f"{table}, line {number}"
    try:
        entry = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise InputError(f"{place} is not JSON ({error}); expected one object a line") from error
    if not isinstance(entry, dict):
        raise InputError(f"{place} holds {type(entry).__name__}; expected an object with image and captions")
    image, split = entry.get("image"), entry.get("split", "")
    captions = entry.get("captions", [entry.get("caption")])
    caption = captions[0] if isinstance(captions, list) and captions else None
    if not isinstance(image, str) or not image or Path(image).is_absolute() or ".." in Path(image).parts:
        raise InputError(f"{place}: image is {image!r}; expected the path of a picture inside {table.parent}")
    if not isinstance(caption, str) or not caption.strip():
        raise InputError(f"{place}: the first caption is {caption!r}; expected captions (a list) or caption, in words")
    if not isinstance(split, str) or ("split" in entry and not split):
        raise InputError(f"{place}: split is {split!r}; expected a name such as train, dev or test")
    others = {name: value for name, value in entry.items() if name not in _OWN_COLUMNS}
    return PictureRow(number, image, " ".join(caption.split()), split, others)


def _table_of(folder: Path) -> Path:
    tables = sorted(folder.glob("*.jsonl"))
    if len(tables) != 1:
        found = ", ".join(table.name for table in tables) or "none"
        raise InputError(
            f"{folder}: found the tables {found}; expected one .jsonl file, a line a picture. Keep one of them there"
        )
    return tables[0]


def _class_names(table: Path, rows: list[PictureRow], label: str) -> tuple[str, ...]:
    """The different values of the column as text, in order; every line must have a value, if only null."""
    for row in rows:
        if label not in row.columns or not _is_label(row.columns[label]):
            found = f"is {row.columns[label]!r}" if label in row.columns else "is missing"
            offered = ", ".join(f"{name} ({count})" for name, count in label_columns(rows).items()) or "none"
            raise InputError(
                f"{table}, line {row.line}: the column {label!r} {found}; expected text or a whole number, or null for "
                f"none. Columns usable as label, with their numbers of classes: {offered}"
            )
    names = sorted({str(row.columns[label]) for row in rows if row.columns[label] is not None}, key=_natural)
    if len(names) < 2:
        raise InputError(f"{table}: the column {label!r} holds {len(names)} classes; expected two or more")
    return tuple(names)


def _is_label(value: Any) -> bool:
    return value is None or isinstance(value, bool | int) or (isinstance(value, str) and bool(value.strip()))


def _natural(name: str) -> tuple[bool, int, str]:
    """Whole numbers by size before everything else by letters."""
    digits = name.removeprefix("-")
    whole = digits.isascii() and digits.isdigit() and len(digits) < 20
    return (not whole, int(name) if whole else 0, name)
