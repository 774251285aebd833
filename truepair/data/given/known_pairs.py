"""Pairs that are known to match, because somebody looked at them: what methods with a clean meta set learn from."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

from truepair.data.pairs import BoolArray, Pairs
from truepair.errors import InputError
from truepair.files import read_file
from truepair.seeding import generator


def with_known_pairs(pairs: Pairs, clean_pairs: str, *, seed: int) -> Pairs:
    """The pairs with some marked as known to match (`Pairs.trusted`).

    Args:
        clean_pairs: how many to draw among the matched ones, where the truth is known; or a file with the id of one
            pair a line, which are looked up among the given ones.

    Raises:
        InputError: the truth is unknown, fewer pairs match than are asked for, or an id of the file is of no pair, or
            of one that is mismatched.
    """
    if clean_pairs.isdecimal():
        return replace(pairs, trusted=drawn(pairs, int(clean_pairs), seed))
    return replace(pairs, trusted=listed(pairs, Path(clean_pairs)))


def drawn(pairs: Pairs, count: int, seed: int) -> BoolArray:
    """(N,) bool: `count` of the pairs that match, by the seed."""
    mismatched = pairs.mismatched
    if mismatched is None:
        raise InputError(
            f"{pairs.name}: which pairs match is unknown here, so none can be drawn; give --clean-pairs a file with "
            "the ids of pairs that somebody looked at, one a line"
        )
    matched = np.flatnonzero(~mismatched)
    if count < 1 or count > len(matched):
        raise InputError(f"--clean-pairs is {count}; expected 1 to {len(matched)}, as many pairs as match")
    chosen = np.zeros(len(pairs), dtype=np.bool_)
    chosen[generator(seed, "clean pairs").choice(matched, size=count, replace=False)] = True
    return chosen


def listed(pairs: Pairs, path: Path) -> BoolArray:
    """(N,) bool: the pairs whose ids a file holds, with or without spaces around them: ids may begin with one."""
    try:
        lines = read_file(path).decode("utf-8-sig", errors="replace").splitlines()
    except OSError as error:
        raise InputError(
            f"--clean-pairs is {path}, which cannot be read ({error.strerror}); expected a file with the id of a pair "
            "that is known to match a line, or how many to draw"
        ) from error
    ids = pairs.ids()
    rows = {name.strip(): row for row, name in enumerate(ids)} | {name: row for row, name in enumerate(ids)}
    chosen = np.zeros(len(pairs), dtype=np.bool_)
    for number, line in enumerate(lines, 1):
        name = next((name for name in (line, line.rstrip(), line.strip()) if name in rows), line.strip())
        if not name:
            continue
        if name not in rows:
            raise InputError(f"{path}, line {number}: {name!r} is no training pair of {pairs.name}; correct the line")
        if pairs.mismatched is not None and bool(pairs.mismatched[rows[name]]):
            raise InputError(
                f"{path}, line {number}: pair {name} is mismatched by the noise; list pairs that still match, or draw "
                "them with --clean-pairs N"
            )
        chosen[rows[name]] = True
    return chosen
