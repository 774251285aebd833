"""What the rows of embeddings are called: names from the metadata where these tell them apart, else numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import blake2b

import numpy as np

from truepair.data.formats.embeddings.metadata import Metadata
from truepair.data.formats.embeddings.shards import Shard
from truepair.data.pairs import Array

# Eight bytes a row are kept while names are compared across shards; beyond this every name carries its shard.
MOST_COMPARED = 20_000_000


@dataclass(frozen=True)
class RowNames:
    """How rows are named.

    Attributes:
        columns: for each shard the column of the metadata whose values differ from each other; None for the row.
        with_shard: whether "<shard>:" stands before the names of a column; it always does before rows, unless there is
            one shard.
    """

    columns: tuple[str | None, ...]
    with_shard: bool

    def read(self, shard: Shard, number: int, start: int, stop: int) -> list[str]:
        """The names of the rows [start, stop) of the shard with this number."""
        column = self.columns[number]
        if column is None or shard.metadata is None:
            before = f"{shard.name}:" if len(self.columns) > 1 else ""
            return [f"{before}{row}" for row in range(start, stop)]
        before = f"{shard.name}:" if self.with_shard else ""
        return [before + name for name in shard.metadata.read(column, start, stop)]


def name_rows(shards: Sequence[Shard]) -> RowNames:
    """The naming that makes all names unique, from one pass over the columns that could serve."""
    columns: list[str | None] = []
    seen: list[Array] = []
    compared = sum(shard.rows for shard in shards) <= MOST_COMPARED
    clash = False
    for shard in shards:
        column, hashes, looks_numbered = _unique_column(shard.metadata)
        columns.append(column)
        clash |= looks_numbered
        if column is not None and compared:
            seen.append(hashes)
    if len(shards) == 1:
        return RowNames(tuple(columns), with_shard=False)
    clash = clash and None in columns  # "3:17" as a key could be row 17 of shard 3
    unique = compared and not clash and (not seen or _all_differ(np.concatenate(seen)))
    return RowNames(tuple(columns), with_shard=not unique)


def _unique_column(metadata: Metadata | None) -> tuple[str | None, Array, bool]:
    """The first column with a value in each row and no value twice, hashes of its values, and if any has a colon."""
    if metadata is not None:
        for column in metadata.ids:
            hashes, complete, colon = _hashes(metadata, column)
            if complete and _all_differ(hashes):
                return column, hashes, colon
    return None, np.empty(0, dtype=np.uint64), False


def _hashes(metadata: Metadata, column: str) -> tuple[Array, bool, bool]:
    """A hash of each value, whether all rows have one, and whether any has a colon."""
    hashes, place, complete, colon = np.empty(metadata.rows, dtype=np.uint64), 0, True, False
    for values in metadata.batches(column):
        complete = complete and all(values)
        colon = colon or any(":" in value for value in values)
        digests = b"".join(blake2b(value.encode(), digest_size=8).digest() for value in values)
        hashes[place : place + len(values)] = np.frombuffer(digests, dtype=np.uint64)
        place += len(values)
    return hashes, complete, colon


def _all_differ(hashes: Array) -> bool:
    ordered = np.sort(hashes)
    return not bool((ordered[1:] == ordered[:-1]).any())
