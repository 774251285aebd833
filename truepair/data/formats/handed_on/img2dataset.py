"""img2dataset's parquet with score columns: what is known of each sample of `00000.tar` stands in `00000.parquet`."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np

from truepair.data.collection import Collection
from truepair.data.formats.handed_on.beside_shards import parquet_beside, table_beside
from truepair.data.formats.handed_on.layout import Layout, rounded, scores_of
from truepair.data.formats.shards.shards import ShardCollection
from truepair.data.selection import Selection
from truepair.errors import InputError

ADDED = ("p_match", "flagged", "kept")


class Img2Dataset(Layout):
    """`img2dataset/`: the parquet of every shard, with all its rows and columns and `p_match` (float32), `flagged` and
    `kept` (bool) added; null for samples that were not audited. Of several captions of a sample the least probable one
    speaks.
    """

    holds = "img2dataset"

    def check(self, collection: Collection) -> None:
        if not isinstance(collection, ShardCollection):
            raise InputError(
                f"{collection.name} is no set of tar shards with a parquet beside each, as img2dataset writes them. "
                "Export own, ids, csv, jsonl or parquet instead"
            )
        for shard in collection.shards:
            odd = [name for name in ADDED if name in table_beside(shard).column_names]
            if odd:
                raise InputError(f"{parquet_beside(shard)} has a column {odd[0]} already; rename it")

    def write(self, collection: Collection, selection: Selection, folder: Path) -> None:
        assert isinstance(collection, ShardCollection)
        root = Path(os.path.commonpath([shard.absolute().parent for shard in collection.shards]))
        scores = scores_of(selection)
        for number, shard in enumerate(collection.shards):
            path = folder / self.holds / parquet_beside(shard).absolute().relative_to(root)
            path.parent.mkdir(parents=True, exist_ok=True)
            write_scored(table_beside(shard), of_samples(collection, selection, scores, number), path)


def of_samples(
    collection: ShardCollection, selection: Selection, scores: Any, number: int
) -> dict[str, tuple[float | None, bool, bool]]:
    """Key → p_match, flagged, kept of each audited sample of a shard."""
    found: dict[str, tuple[float | None, bool, bool]] = {}
    for row in np.flatnonzero(collection.shard_of_pair == number).tolist():
        key = collection.key_of_pair[row]
        here = rounded(scores[row]), bool(selection.flagged[row]), bool(selection.kept[row])
        before = found.get(key)
        if before is None or before[0] is None or (here[0] is not None and here[0] < before[0]):
            found[key] = here
    return found


def write_scored(table: Any, samples: dict[str, tuple[float | None, bool, bool]], path: Path) -> None:
    """Write a table of img2dataset with what was found of its samples."""
    import pyarrow
    from pyarrow import parquet

    each = [samples.get(str(key), (None, None, None)) for key in table["key"].to_pylist()]
    for place, (name, kind) in enumerate(
        zip(ADDED, (pyarrow.float32(), pyarrow.bool_(), pyarrow.bool_()), strict=True)
    ):
        table = table.append_column(name, pyarrow.array([values[place] for values in each], kind))
    parquet.write_table(table, path)


def read_scored(path: Path) -> dict[str, tuple[float | None, bool | None, bool | None]]:
    """Key → p_match, flagged and kept, as `Img2Dataset` wrote them. Raises InputError: it is no such file."""
    import pyarrow
    from pyarrow import parquet

    try:
        table = parquet.read_table(path, columns=["key", *ADDED])
    except (OSError, pyarrow.ArrowException) as error:
        raise InputError(f"{path} cannot be read as a scored parquet of img2dataset ({error})") from error
    columns = [table[name].to_pylist() for name in ("key", *ADDED)]
    return {str(key): (score, flagged, kept) for key, score, flagged, kept in zip(*columns, strict=True)}
