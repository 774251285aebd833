"""Ids, and tables of kept pairs and of weights, written a few ten thousand rows at a time."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Iterator
from itertools import compress
from pathlib import Path
from typing import Any

from truepair.data.collection import Collection
from truepair.data.selection import Selection
from truepair.errors import InputError

Columns = dict[str, list[Any]]


def write_ids(collection: Collection, selection: Selection, folder: Path) -> None:
    """`kept_ids.txt` and `flagged_ids.txt`, one id a line; an InputError where an id has a line break in it."""
    for name, chosen in (("kept_ids.txt", selection.kept), ("flagged_ids.txt", selection.flagged)):
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
            kept = selection.kept[start:stop]
            weights = _shortest(selection.weights[start:stop][kept])
            read = {"pair_id": collection.ids, "image": collection.image_names, "caption": collection.captions}
            words = {name: list(compress(of(start, stop), kept)) for name, of in read.items()}
            yield {**{name: _writable(texts) for name, texts in words.items()}, "p_match": weights, "weight": weights}

    WRITERS[path.suffix[1:]](path, columns())


def write_weights(collection: Collection, selection: Selection, path: Path) -> None:
    """All pairs: pair_id, weight; the ending of the path says which format."""

    def columns() -> Iterator[Columns]:
        for start, stop in selection.ranges():
            yield {
                "pair_id": _writable(collection.ids(start, stop)),
                "weight": _shortest(selection.weights[start:stop]),
            }

    WRITERS[path.suffix[1:]](path, columns())


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


WRITERS: dict[str, Callable[[Path, Iterator[Columns]], None]] = {
    "csv": _write_csv,
    "jsonl": _write_jsonl,
    "parquet": _write_parquet,
}


def _shortest(values: Any) -> list[float]:
    """float32 values as the shortest decimals that mean them: 0.1, not 0.10000000149."""
    return [float(str(value)) for value in values]


def _writable(texts: list[str]) -> list[str]:
    """The texts, with lone surrogates (bytes that were no UTF-8) as backslash escapes."""
    return [text.encode("utf-8", "backslashreplace").decode("utf-8") for text in texts]
