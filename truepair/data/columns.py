"""What the columns of tables, metadata and JSON objects are called: the one search by name."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache

IMAGES = (
    "image", "image_path", "image_name", "img", "img_path", "picture", "file_name", "filename", "filepath", "file",
    "path",
)  # fmt: skip
CAPTIONS = ("captions", "caption", "texts", "text", "titles", "title", "sentences", "sentence", "description")
IDS = ("image_path", "key", "pair_id", "id", "image", "filename")
SPLITS = ("split",)

FIRST = "first"
"""In place of the name of a caption column: only the first caption of each row or sample; `first:5` the first five."""
ALL = "all"
"""In place of the name of a caption column: every caption, as without a name."""


def most_captions(caption: str | None) -> int | None:
    """How many captions of a row are read, the first ones: 1 for `first`, 5 for `first:5`; None for a column's name."""
    found = re.fullmatch(rf"{FIRST}(?::([1-9]\d{{0,8}}))?", caption or "")
    return None if found is None else int(found[1] or 1)


def find(names: Iterable[str], wanted: Iterable[str]) -> str | None:
    """The first of `wanted` that is among the names; capitals and spaces around do not matter."""
    found = {_plain(name): name for name in reversed(list(names))}
    return next((found[name] for name in wanted if name in found), None)


def find_captions(names: Iterable[str]) -> tuple[str, ...]:
    """All names of the first of `CAPTIONS` that there is: `caption` alone, or `caption_1`, `caption_2`, … in order."""
    return _find_captions(tuple(names))


@lru_cache(maxsize=64)  # the samples of shards ask once each, with the same names
def _find_captions(names: tuple[str, ...]) -> tuple[str, ...]:
    for family in CAPTIONS:
        members = [(match, name) for name in names if (match := re.fullmatch(rf"{family}[ _-]?(\d*)", _plain(name)))]
        if members:
            return tuple(name for _, name in sorted(members, key=lambda member: int(member[0][1] or -1)))
    return ()


def _plain(name: str) -> str:
    return name.strip().lower()
