"""Ids, and tables of kept pairs and of weights, written a few ten thousand rows at a time."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from truepair.data.collection import Collection
from truepair.data.selection import Selection
from truepair.errors import InputError

Columns = dict[str, list[Any]]


def write_ids(collection: Collection, selection: Selection, folder: Path) -> None:
    """`kept_ids.txt` and `flagged_ids.txt`, one id a line.

    Raises:
        InputError: an id has a line break in it.
    """
    names = (("kept_ids.txt", selection.kept), ("flagged_ids.txt", selection.flagged))
    for name, chosen in names:
        with (folder / name).open("w", encoding="utf-8", errors="backslashreplace", newline="\n") as file:
            for start, stop in selection.ranges():
                for row, pair_id in enumerate(collection.ids(start, stop), start=start):
                    if not chosen[row]:
                        continue
                    if "\n" in pair_id or "\r" in pair_id:
                        raise InputError(
                            f"{collection.name}, pair {row}: the id {pair_id!r} has a line break in it and cannot "
                            "stand in a list of one id a line. Export csv, jsonl or parquet instead"
                        )
                    file.write(f"{pair_id}\n")


def write_kept(collection: Collection, selection: Selection, path: Path) -> None:
    """The kept pairs: pair_id, image, caption, p_match, weight; the ending of the path says which format."""

    def columns() -> Iterator[Columns]:
        for start, stop in selection.ranges():
            rows = [row for row in range(start, stop) if selection.kept[row]]
            weights = _shortest(selection.weights[rows])
            ids, images = collection.ids(start, stop), collection.image_names(start, stop)
            captions = collection.captions(start, stop)
            yield {
                "pair_id": [_writable(ids[row - start]) for row in rows],
                "image": [_writable(images[row - start]) for row in rows],
                "caption": [_writable(captions[row - start]) for row in rows],
                "p_match": weights,
                "weight": weights,
            }

    _WRITERS[path.suffix](path, columns())


def write_weights(collection: Collection, selection: Selection, path: Path) -> None:
    """All pairs: pair_id, weight; the ending of the path says which format."""

    def columns() -> Iterator[Columns]:
        for start, stop in selection.ranges():
            ids = [_writable(pair_id) for pair_id in collection.ids(start, stop)]
            yield {"pair_id": ids, "weight": _shortest(selection.weights[start:stop])}

    _WRITERS[path.suffix](path, columns())


def _write_csv(path: Path, parts: Iterator[Columns]) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        for number, part in enumerate(parts):
            if number == 0:
                writer.writerow(part)
            writer.writerows(zip(*part.values(), strict=True))


def _write_jsonl(path: Path, parts: Iterator[Columns]) -> None:
    with path.open("w", encoding="utf-8", newline="\n") as file:
        for part in parts:
            for row in zip(*part.values(), strict=True):
                file.write(json.dumps(dict(zip(part, row, strict=True)), ensure_ascii=False, allow_nan=False) + "\n")


def _write_parquet(path: Path, parts: Iterator[Columns]) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    kinds = {"p_match": pa.float32(), "weight": pa.float32()}
    writer = None
    try:
        for part in parts:
            arrays = {name: pa.array(values, type=kinds.get(name, pa.string())) for name, values in part.items()}
            table = pa.table(arrays)
            writer = writer or pq.ParquetWriter(path, table.schema)
            writer.write_table(table)
    finally:
        if writer is not None:
            writer.close()


_WRITERS: dict[str, Callable[[Path, Iterator[Columns]], None]] = {
    ".csv": _write_csv,
    ".jsonl": _write_jsonl,
    ".parquet": _write_parquet,
}


def _shortest(values: Any) -> list[float]:
    """float32 values as the shortest decimals that mean them: 0.1, not 0.10000000149."""
    return [float(str(value)) for value in values]


def _writable(text: str) -> str:
    """The text, with lone surrogates (bytes that were no UTF-8) as backslash escapes."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8")
