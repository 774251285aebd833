"""The pairs that decisions are about: what an audit believed of them before anybody decided anything."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from truepair.data.pairs import Array
from truepair.decisions.store import NAME, DecisionStore
from truepair.errors import InputError
from truepair.files import open_file

TABLE = "pairs.parquet"
UNDECIDED = "p_match_undecided"
"""Column of the table of an audit that took decisions into account: what it believes without them."""


@dataclass(frozen=True)
class Population:
    """All pairs of an audit, in the order of its table.

    Attributes:
        ids: N pair ids, unique.
        p_match: (N,) float64 in [0, 1], what the audit believes without any decision. Draws and estimates stand on it,
            so it must not depend on decisions.
        digest: of ids, images and captions; decisions keep it, so that those of other pairs are refused.
    """

    ids: Sequence[str]
    p_match: Array
    digest: str | None = None

    def __post_init__(self) -> None:
        if len(self.ids) != len(self.p_match) or not len(self.ids):
            raise InputError(f"{len(self.ids)} pair ids and {len(self.p_match)} probabilities; expected as many, not 0")
        odd = np.flatnonzero(~((self.p_match >= 0) & (self.p_match <= 1)))
        if len(odd):
            raise InputError(f"p_match of pair {self.ids[odd[0]]!r} is {self.p_match[odd[0]]}; expected 0 to 1")

    def __len__(self) -> int:
        return len(self.ids)

    @cached_property
    def rows(self) -> dict[str, int]:
        """Pair id → place in the table."""
        found = dict(zip(self.ids, range(len(self.ids)), strict=True))
        if len(found) != len(self.ids):
            seen: set[str] = set()
            twice = next(name for name in self.ids if name in seen or seen.add(name))  # type: ignore[func-returns-value]
            raise InputError(f"pair id {twice!r} occurs twice; decisions need ids that tell pairs apart")
        return found

    @classmethod
    def of_audit(cls, folder: Path | str) -> Population:
        """Of the folder of a finished audit; an InputError where it holds none."""
        path = Path(folder) / TABLE
        columns = read_columns(path, ("pair_id", "image", "caption", "p_match", UNDECIDED))
        believed = columns.get(UNDECIDED, columns["p_match"])
        return cls(
            columns["pair_id"].to_pylist(),
            believed.to_numpy().astype(np.float64),
            digest_of_pairs(columns),
        )


def decisions_of(folder: Path | str, *, read_only: bool = False) -> tuple[DecisionStore, Population]:
    """The database of an audit's decisions (`decisions.sqlite` in its folder), and the pairs they are about.

    Raises:
        InputError: the folder holds no finished audit, or the database is refused (see `DecisionStore.open`).
    """
    pairs = Population.of_audit(folder)
    return DecisionStore.open(Path(folder) / NAME, read_only, audit=pairs.digest), pairs


def read_columns(path: Path, names: Sequence[str]) -> dict[str, Any]:
    """Columns of the table of an audit, as arrow has them; `UNDECIDED` may be missing.

    Raises:
        InputError: there is no such table.
    """
    from pyarrow import ArrowException, parquet

    try:
        open_file(path).close()
        with parquet.ParquetFile(path) as file:
            there = [name for name in names if name in file.schema_arrow.names]
            table = file.read(columns=there)
    except (OSError, ArrowException) as error:
        said = getattr(error, "strerror", None) or str(error)
        raise InputError(f"{path} cannot be read ({said}); expected the folder of a finished audit") from error
    lacking = [name for name in names if name not in there and name != UNDECIDED]
    if lacking:
        raise InputError(f"{path} lacks the column {lacking[0]}; expected the table of an audit of this version")
    return {name: table.column(name) for name in there}


def digest_of_pairs(columns: Any) -> str:
    """Of the ids, images and captions of a table: a table of arrow, or its columns by name."""
    return _digest([columns[name] for name in ("pair_id", "image", "caption")])


def _digest(columns: Sequence[Any]) -> str:
    """Of texts, however they are cut into chunks: of their lengths and of their bytes."""
    import pyarrow
    from pyarrow import compute

    whole = hashlib.blake2b(digest_size=16)
    for column in columns:
        lengths, texts = (hashlib.blake2b(digest_size=16) for _ in range(2))
        for chunk in column.chunks:
            binary = compute.fill_null(chunk, "").cast(pyarrow.large_binary())
            lengths.update(np.asarray(compute.binary_length(binary)).astype("<i8").tobytes())
            _, offsets, data = binary.buffers()
            if data is not None:
                ends = np.frombuffer(offsets, dtype="<i8")[binary.offset : binary.offset + len(binary) + 1]
                texts.update(memoryview(data)[ends[0] : ends[-1]])
        whole.update(lengths.digest() + texts.digest())
    return whole.hexdigest()
