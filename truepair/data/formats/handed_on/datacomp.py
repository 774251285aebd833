"""DataComp's subset files: which samples of a pool are trained on.

A .npy file of the structured dtype `u8,u8`: of each kept sample the two halves of its uid, 32 hexadecimal digits, as
unsigned integers, sorted. Source: the resharder of mlfoundations/datacomp.
"""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np

from truepair.data.collection import Collection
from truepair.data.formats.handed_on.beside_shards import columns_beside
from truepair.data.formats.handed_on.layout import Layout
from truepair.data.formats.shards.shards import ShardCollection
from truepair.data.selection import Selection
from truepair.errors import InputError

UID = re.compile(r"[0-9a-fA-F]{32}")
DTYPE = np.dtype("u8,u8")


class DataComp(Layout):
    """`subset.npy`, the uids of the kept pairs: their ids, or the column `uid` of the parquet beside each shard."""

    holds = "subset.npy"

    def check(self, collection: Collection) -> None:
        if len(collection):
            uids_of(collection, [0])

    def write(self, collection: Collection, selection: Selection, folder: Path) -> None:
        write_subset(folder / self.holds, uids_of(collection, selection.kept_rows.tolist()))


def uids_of(collection: Collection, rows: list[int]) -> list[str]:
    """The uids of some pairs. Raises InputError where one has none."""
    found = [collection.ids(row, row + 1)[0].split("#")[0] for row in rows]
    if isinstance(collection, ShardCollection) and not all(map(UID.fullmatch, found)):
        beside = columns_beside(collection, "uid")
        found = [
            str(beside[int(collection.shard_of_pair[row])].get(collection.key_of_pair[row], key))
            for row, key in zip(rows, found, strict=True)
        ]
    odd = next((uid for uid in found if not UID.fullmatch(uid)), None)
    if odd is not None:
        raise InputError(
            f"{collection.name}: DataComp names samples by uids of 32 hexadecimal digits, a pair is called {odd!r}; "
            "give them as ids or keys, or as the column uid of the parquet beside each shard. Or export ids instead"
        )
    return found


def write_subset(path: Path, uids: list[str]) -> None:
    """Write the file; each uid once."""
    halves = {(int(uid[:16], 16), int(uid[16:], 16)) for uid in uids}
    np.save(path, np.sort(np.array(list(halves), DTYPE)), allow_pickle=False)


def read_subset(path: Path) -> list[str]:
    """The uids of a subset file, in its order, in lower case.

    Raises:
        InputError: it is no such file.
    """
    try:
        found = np.load(path, allow_pickle=False)
    except (OSError, ValueError, EOFError) as error:
        raise InputError(f"{path} cannot be read as .npy ({error}); expected a subset file of DataComp") from error
    if found.ndim != 1 or found.dtype != DTYPE:
        raise InputError(f"{path} holds {found.dtype} of shape {found.shape}; expected (N,) of the dtype u8,u8")
    return [f"{high:016x}{low:016x}" for high, low in found.tolist()]
