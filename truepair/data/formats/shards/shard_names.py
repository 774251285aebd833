"""Which tar files a source means: one, those of a folder, or those of a pattern."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from itertools import chain, islice
from pathlib import Path

from truepair.data.splits import NAMES, named
from truepair.errors import InputError
from truepair.files import open_file

WEIGHTS = "weights.jsonl"
"""Beside exported shards: a line for each kept pair, with its shard."""
_MOST_SHARDS = 100_000
_BRACES = re.compile(r"\{([^{}]*)\}")
_RANGE = re.compile(r"(\d+)\.\.(\d+)")
_PREFIX = re.compile(r"([A-Za-z]+)($|[^A-Za-z])")


def find_shards(source: str | Path) -> list[Path] | None:
    """The tar files of a source, in order; None where it means none.

    A .tar file; a folder with .tar files in it, by name; an own export of shards that lay in several folders, in their
    order; or a pattern that ends in .tar, with `*`, `?`, `[…]`, and
    webdataset's braces: `train-{000000..000003}.tar`, `{train,dev}-0.tar`. Files that braces name need not be there.
    """
    path, text = Path(source), str(source)
    if path.is_dir():
        return sorted(found for found in path.glob("*.tar") if found.is_file()) or _of_export(path) or None
    if not text.endswith(".tar"):
        return None
    if path.is_file():
        return [path]
    names = list(islice(_expand(text), _MOST_SHARDS + 1))
    if len(names) > _MOST_SHARDS:
        raise InputError(f"{source} names more than {_MOST_SHARDS:,} files; correct the pattern")
    patterns = (_glob(Path(name)) if re.search(r"[*?\[]", name) else [Path(name)] for name in names)
    shards = list(dict.fromkeys(chain.from_iterable(patterns)))
    if not any(shard.is_file() for shard in shards):
        raise InputError(f"{source}: no such file; expected a .tar file, or a pattern that finds some. Check the path")
    return shards


def _of_export(folder: Path) -> list[Path]:
    """The shards in the folders of an own export, as its `weights.jsonl` lists them; none where there is no such file,
    or it is something else.
    """
    try:
        with open_file(folder / WEIGHTS) as file:
            names = dict.fromkeys(json.loads(line)["shard"] for line in file)
        found = [folder / name for name in names if name.endswith(".tar") and ".." not in Path(name).parts]
    except (OSError, ValueError, LookupError, TypeError, AttributeError):
        return []
    return [shard for shard in found if shard.is_relative_to(folder) and shard.is_file()]


def splits_of(shards: list[Path]) -> tuple[str, ...]:
    """The splits that the names of shards begin with: `train-000000.tar`, `train_3.tar`, `train.tar`.

    None, where all names begin alike and with nothing the field calls a split.
    """
    prefixes = {found[1] for shard in shards if (found := _PREFIX.match(shard.stem))}
    known = {name for names in NAMES.values() for name in names}
    return tuple(sorted(prefixes)) if len(prefixes) > 1 or prefixes & known else ()


def of_split(shards: list[Path], split: str) -> list[Path]:
    """The shards whose names begin with the split, under any of its names."""
    wanted = named(split, splits_of(shards))
    found = [shard for shard in shards if (prefix := _PREFIX.match(shard.stem)) and prefix[1] in wanted]
    if found:
        return found
    names = ", ".join(shard.name for shard in shards[:5])
    raise InputError(f"no shard's name begins with the split {split!r}; they are {names}. Leave out the split for all")


def _glob(path: Path) -> list[Path]:
    """The files that match; only the last parts of a path may be patterns, as folders above them are no matter."""
    parts = path.parts
    first = next(number for number, part in enumerate(parts) if re.search(r"[*?\[]", part))
    return sorted(found for found in Path(*parts[:first]).glob(str(Path(*parts[first:]))) if found.is_file())


def _expand(text: str) -> Iterator[str]:
    """The names that braces stand for; from left to right, numbers with their leading zeros."""
    braces = next((found for found in _BRACES.finditer(text) if ".." in found[1] or "," in found[1]), None)
    if braces is None:
        yield text
        return
    for item in _items(braces[1]):
        yield from _expand(text[: braces.start()] + item + text[braces.end() :])


def _items(inside: str) -> Iterator[str]:
    numbers = _RANGE.fullmatch(inside)
    if numbers is None:
        yield from inside.split(",")
        return
    first, last = numbers.groups()
    for number in range(int(first), int(last) + 1):
        yield f"{number:0{len(first)}d}"
