"""Data sets of pictures with Karpathy's JSON beside their folders: whether one is there, whole, as it is published."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

from truepair.data.collection import Problem
from truepair.data.formats.tables.drafts import read_caption
from truepair.data.formats.tables.json_tables import KarpathyTable, json_table
from truepair.data.formats.tables.picture_folder import PictureFolder
from truepair.data.formats.tables.table_columns import caption_places
from truepair.data.pictures.pictures import Failure
from truepair.data.splits import named
from truepair.errors import InputError

if TYPE_CHECKING:
    from truepair.reproduce.published.data_sets import DataSet

OTHER_PROTOCOL = "Take the file as it was distributed: other counts are another protocol"


def check_pictures(data: DataSet, folder: Path) -> None:
    """Refuse a folder whose JSON has other counts than published, or that lacks pictures it names.

    Of each image the first captions are counted, as many as the field takes.

    Raises:
        InputError: with the file, what was expected and what was found.
    """
    table, each = folder / data.table, data.captions // data.images
    if not table.is_file():
        raise InputError(f"{table} is missing; expected Karpathy's splits. {data.where}")
    reader = json_table(table)
    if not isinstance(reader, KarpathyTable):
        raise InputError(f"{table} holds a list; expected Karpathy's splits, an object with images. {OTHER_PROTOCOL}")
    images, captions = Counter[str](), Counter[str]()
    pictures, missing = PictureFolder(folder), list[str]()
    for row in reader.rows(()):
        if isinstance(row, Problem):
            raise InputError(f"{table}: {row.detail}. {OTHER_PROTOCOL}")
        split, name = str(row.fields.get("split")), str(row.fields.get("filename"))
        images[split] += 1
        captions[split] += sum(
            bool(read_caption(value).text) for *_, value in caption_places(row.fields, ("sentences",))[:each]
        )
        if isinstance(pictures.find(name), Failure):
            missing.append(name)
    for split, expected in data.splits.items():
        parts = named(split, images)
        found = sum(images[part] for part in parts), sum(captions[part] for part in parts)
        if found != expected:
            raise InputError(
                f"{table} has {found[0]:,} {split} images with {found[1]:,} captions, {each} of each at most; expected "
                f"{expected[0]:,} with {expected[1]:,}, as in the published {data.table}. {OTHER_PROTOCOL}"
            )
    if missing:
        raise InputError(
            f"{folder} lacks {len(missing):,} of the {images.total():,} pictures that {data.table} names, the first is "
            f"{missing[0]}; expected all of them. {data.where}"
        )
