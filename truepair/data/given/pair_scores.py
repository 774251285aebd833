"""Scores of the pairs by somebody else's model, made once: what a method may learn from beside the pairs themselves."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from truepair.data.pairs import Pairs
from truepair.errors import InputError
from truepair.phrases import printable

Scores = NDArray[np.float32]

COLUMN = "p_match"
REMEDY = "score the pairs that are trained on, or leave --pair-scores out"


def with_pair_scores(pairs: Pairs, path: Path, column: str | None = None) -> Pairs:
    """The pairs with the score that a file has for each (`Pairs.scores`).

    Args:
        path: a `.parquet` or `.csv` table with `pair_id` and the scores, as every audit and every run leaves one
            (pairs.parquet): rows in any order, and more of them than there are pairs; where it says what image or
            caption a pair has, it has to be that of the pair. Or a `.npy` of one number for each row of the source.
        column: the one of the table that holds the scores; None: p_match.

    Raises:
        InputError: the file cannot be read, lacks a column or a pair, has a pair twice, or scores that are no finite
            numbers; or its pairs are others.
    """
    if path.suffix == ".npy":
        if column is not None:
            raise InputError(f"--score-column is {column}, and {path} is an array without columns; leave it out")
        return replace(pairs, scores=finite(path, of_rows(pairs, path), pairs.ids()))
    return replace(pairs, scores=finite(path, of_table(pairs, path, column or COLUMN), pairs.ids()))


def of_rows(pairs: Pairs, path: Path) -> Any:
    """(N,) the entries of an array at the rows that the pairs have in their source."""
    try:
        scores = np.load(path, allow_pickle=False)
    except (OSError, ValueError, EOFError) as error:
        raise InputError(
            f"{path} cannot be read as an array of scores ({error}); give another --pair-scores"
        ) from error
    refuse_unchecked(pairs, path, "an array does not say which image and caption it scored")
    last = int(pairs.source_rows.max()) if len(pairs) else -1
    if scores.ndim != 1 or scores.dtype.kind not in "fiu" or len(scores) <= last:
        raise InputError(
            f"{path} holds {scores.dtype} of shape {scores.shape}; expected one number for each row of the source of "
            f"{pairs.name}, which has at least {last + 1:,}; {REMEDY}"
        )
    return scores[pairs.source_rows]


def of_table(pairs: Pairs, path: Path, column: str) -> Any:
    """(N,) the scores of a table, looked up by pair id."""
    table = read(path)
    for name in ("pair_id", column):
        if name not in table.column_names:
            raise InputError(
                f"{path} has no column {name!r}; it has {', '.join(table.column_names)}. Name the one with the scores: "
                "--score-column"
            )
    if not is_number(table.schema.field(column).type):
        raise InputError(f"{path}: column {column!r} holds {table.schema.field(column).type}; expected numbers")
    if "image" not in table.column_names:
        refuse_unchecked(pairs, path, "it has no column 'image', which would say what it scored")
    names = [str(name) for name in table.column("pair_id").to_pylist()]
    rows = {name: row for row, name in enumerate(names)}
    if len(rows) < len(names):
        twice = next(name for row, name in enumerate(names) if rows[name] != row)
        raise InputError(f"{path}: pair {twice} stands there twice; leave one row for each pair")
    ids = pairs.ids()
    missing = next((name for name in ids if name not in rows), None)
    if missing is not None:
        raise InputError(f"{path} has no score for pair {missing} of {pairs.name}; {REMEDY}")
    places = np.array([rows[name] for name in ids], dtype=np.int64)
    check_same(pairs, path, table, places)
    return table.column(column).to_numpy(zero_copy_only=False)[places]


def refuse_unchecked(pairs: Pairs, path: Path, why: str) -> None:
    """Noise gives a pair another image under the same id: scores have to say that they are of this one."""
    if pairs.mismatch_rate:
        raise InputError(
            f"{path}: pairs of {pairs.name} were mismatched by noise, and {why}; give a table with pair_id, image and "
            "the scores of the pairs that are trained on"
        )


def is_number(kind: Any) -> bool:
    import pyarrow

    return bool(pyarrow.types.is_floating(kind) or pyarrow.types.is_integer(kind))


def read(path: Path) -> Any:
    """The table as arrow has it."""
    import pyarrow
    from pyarrow import csv, parquet

    if path.suffix not in (".parquet", ".csv"):
        raise InputError(f"--pair-scores is {path}; expected a .parquet or .csv table, or a .npy array")
    try:
        if path.suffix == ".parquet":
            return parquet.read_table(path)
        names = {name: pyarrow.string() for name in ("pair_id", "image", "caption")}  # 007 is no number
        return csv.read_csv(path, convert_options=csv.ConvertOptions(column_types=names, strings_can_be_null=False))
    except (OSError, pyarrow.ArrowException) as error:
        raise InputError(f"{path} cannot be read ({error}); give another --pair-scores") from error


def check_same(pairs: Pairs, path: Path, table: Any, places: NDArray[np.int64]) -> None:
    """Refuse scores of other pairs: noise that was injected since gives a pair another image."""
    sides = {"image": (pairs.images.ids, pairs.image_index), "caption": (pairs.texts.captions, pairs.text_index)}
    for name, (of_side, index) in sides.items():
        if name not in table.column_names:
            continue
        scored = table.column(name).to_pylist()
        for pair, (place, item) in enumerate(zip(places.tolist(), index.tolist(), strict=True)):
            if len(of_side) and str(scored[place]) not in (str(of_side[item]), printable(str(of_side[item]))):
                raise InputError(
                    f"{path}: pair {pairs.ids(pair, pair + 1)[0]} has another {name} there ({scored[place]!r}) than in "
                    f"{pairs.name} ({of_side[item]!r}), so these are scores of other pairs; {REMEDY}"
                )


def finite(path: Path, scores: Any, ids: Sequence[str]) -> Scores:
    """(N,) float32."""
    found: Scores = np.asarray(scores, dtype=np.float32)
    odd = np.flatnonzero(~np.isfinite(found))
    if len(odd):
        raise InputError(f"{path}: the score of pair {ids[odd[0]]} is no finite number; {REMEDY}")
    return found
