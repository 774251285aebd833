"""What img2dataset tells of its downloads: `00000.parquet` beside `00000.tar` has a row for each, failed ones too."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from truepair.data.collection import Problem
from truepair.phrases import printable

SUCCESS = "success"


def failed_downloads(shard: Path) -> Problem | None:
    """How many samples of a shard were never downloaded, and why; None where none failed or nothing is told."""
    import pyarrow
    from pyarrow import parquet

    table = shard.with_suffix(".parquet")
    try:
        if not {"key", "status"} <= set(parquet.read_schema(table).names):
            return None
        status = Counter(map(str, parquet.read_table(table, columns=["status"])["status"].to_pylist()))
    except (OSError, pyarrow.ArrowException):  # the shard itself says what it holds
        return None
    failed = {why: count for why, count in status.most_common() if why != SUCCESS}
    if not failed:
        return None
    reasons = ", ".join(f"{printable(why)} {count:,}" for why, count in failed.items())
    detail = (
        f"{table.name}: {sum(failed.values()):,} of {status.total():,} downloads failed ({reasons}) and are not in "
        f"{shard.name}; what is in it was read"
    )
    return Problem(shard.name, shard.name, -1, "failed-downloads", detail, used=True)
