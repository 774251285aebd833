"""The parquet files that img2dataset leaves beside its shards: `00000.tar`, `00000.parquet`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from truepair.data.formats.shards.shards import ShardCollection
from truepair.errors import InputError


def parquet_beside(shard: Path) -> Path:
    return shard.with_suffix(".parquet")


def table_beside(shard: Path) -> Any:
    """The arrow table beside a shard; raises InputError where there is none, or none with a column of keys."""
    import pyarrow
    from pyarrow import parquet

    path = parquet_beside(shard)
    try:
        table = parquet.read_table(path)
    except FileNotFoundError as error:
        raise InputError(
            f"there is no {path.name} beside {shard.name}; expected the parquet that img2dataset leaves there. Copy it "
            "there, or export own or ids instead"
        ) from error
    except (OSError, pyarrow.ArrowException) as error:
        raise InputError(f"{path} cannot be read as parquet ({str(error).splitlines()[0]}); copy it again") from error
    if "key" not in table.column_names:
        raise InputError(f"{path} has no column key; expected the parquet that img2dataset leaves beside its shards")
    return table


def columns_beside(collection: ShardCollection, column: str) -> list[dict[str, Any]]:
    """Key → value of a column, for each shard; {} where it has no such column."""
    found = []
    for shard in collection.shards:
        table = table_beside(shard)
        values = table[column].to_pylist() if column in table.column_names else []
        found.append(dict(zip(map(str, table["key"].to_pylist()), values, strict=False)))
    return found
