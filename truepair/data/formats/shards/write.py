"""Tar shards in, tar shards out: the kept samples, their members copied byte by byte, headers included.

Shards keep their names; one without a kept sample is left out. A sample with a list of captions of which some are kept
loses the others, and those that were not asked for: its `.json` is written anew, all else is copied. `weights.jsonl`
has a line for each kept pair: shard, key, caption (its number among the kept ones of its sample) and weight.
"""

from __future__ import annotations

import json
import os
import tarfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np

from truepair.data.columns import find_captions, most_captions
from truepair.data.formats.json_text import json_text
from truepair.data.formats.shards.shard_names import WEIGHTS
from truepair.data.formats.shards.shard_samples import OBJECT, TEXTS, key_of
from truepair.data.formats.tables.text_decoding import decode
from truepair.data.selection import Selection
from truepair.errors import InputError

if TYPE_CHECKING:
    from truepair.data.formats.shards.shards import ShardCollection

_BLOCK = 512
_CHUNK_BYTES = 2**20


@dataclass
class _Sample:
    """The captions of a sample: those that were audited, and the weights of those that are kept."""

    audited: set[int] = field(default_factory=set)
    kept: dict[int, float] = field(default_factory=dict)


def write_shards(collection: ShardCollection, selection: Selection, folder: Path) -> None:
    """Writes the shards and the weights into the folder."""
    collection.check_pairs_are_of_files()
    folders = [shard.absolute().parent for shard in collection.shards]
    root = Path(os.path.commonpath(folders))
    with (folder / WEIGHTS).open("w", encoding="utf-8", newline="\n") as weights:
        for number, shard in enumerate(collection.shards):
            samples = _samples(collection, selection, number)
            name = (folders[number] / shard.name).relative_to(root)
            if samples:
                (folder / name).parent.mkdir(parents=True, exist_ok=True)
                _copy_shard(shard, folder / name, samples, collection.caption)
            for key, sample in samples.items():
                for place, kept in enumerate(sorted(sample.kept)):
                    line = {"shard": name.as_posix(), "key": key, "caption": place, "weight": sample.kept[kept]}
                    weights.write(json.dumps(line) + "\n")


def _samples(collection: ShardCollection, selection: Selection, number: int) -> dict[str, _Sample]:
    """The samples of a shard that have a kept caption, by their keys, in the order of the shard."""
    start, stop = np.searchsorted(collection.shard_of_pair, [number, number + 1])
    found: dict[str, _Sample] = {}
    for row in range(start, stop):
        sample = found.setdefault(collection.key_of_pair[row], _Sample())
        sample.audited.add(int(collection.caption_of_pair[row]))
        if selection.kept[row]:
            sample.kept[int(collection.caption_of_pair[row])] = float(str(selection.weights[row]))
    return {key: sample for key, sample in found.items() if sample.kept}


def _copy_shard(shard: Path, target: Path, samples: dict[str, _Sample], caption: str | None) -> None:
    found = set()
    with shard.open("rb") as source, target.open("xb") as file:
        unread = _with_unread_captions(source, samples) if most_captions(caption) is not None else set()
        for member, stop in _members(source):
            key, extension = key_of(member.name)
            sample = samples.get(key)
            if sample is None:
                continue
            found.add(key)
            if extension == OBJECT and (sample.audited > set(sample.kept) or key in unread):
                _write_object(source, member, file, set(sample.kept), caption)
            else:
                source.seek(member.offset)
                for place in range(member.offset, stop, _CHUNK_BYTES):
                    file.write(source.read(min(_CHUNK_BYTES, stop - place)))
            file.write(bytes(-file.tell() % _BLOCK))
        file.write(bytes(2 * _BLOCK))
    missing = next((key for key in samples if key not in found), None)
    if missing is not None:
        raise InputError(f"{shard}: the sample {missing!r} is not there any more; expected it as audited. Audit again")


def _with_unread_captions(source: BinaryIO, samples: dict[str, _Sample]) -> set[str]:
    """The keys of samples whose first captions alone were asked for, of a list that may hold more."""
    texts, objects = set(), {}
    for member, _ in _members(source):
        key, extension = key_of(member.name)
        if extension in TEXTS:
            texts.add(key)
        elif extension == OBJECT and key in samples:
            objects[key] = member
    found = set()
    for key in objects.keys() - texts:  # else the caption is that of the text
        fields = _fields(source, objects[key])
        if isinstance(fields[find_captions(fields)[0]], list):
            found.add(key)
    return found


def _members(source: BinaryIO) -> Iterator[tuple[tarfile.TarInfo, int]]:
    """The members of a shard that are there in whole, with the places where their last blocks end."""
    size = source.seek(0, os.SEEK_END)
    source.seek(0)
    with tarfile.open(fileobj=source, mode="r:") as tar:
        while True:
            try:
                member = tar.next()
            except (tarfile.TarError, OSError, ValueError):  # cut short: what lies behind was not audited
                return
            if member is None or (member.isreg() and member.offset_data + member.size > size):
                return
            tar.members = []  # type: ignore[attr-defined]  # else the archive remembers all of them
            yield member, tar.offset


def _write_object(
    source: BinaryIO, member: tarfile.TarInfo, file: BinaryIO, kept: set[int], caption: str | None
) -> None:
    """The sample's `.json` with the kept captions of its list."""
    fields = _fields(source, member)
    name = caption if caption in fields else find_captions(fields)[0]
    fields[name] = [value for place, value in enumerate(fields[name]) if place in kept]
    data = json_text(fields).encode("utf-8")
    member.size = len(data)
    member.pax_headers = {name: value for name, value in member.pax_headers.items() if name != "size"}
    file.write(member.tobuf(tarfile.PAX_FORMAT, "utf-8", "surrogateescape"))
    file.write(data)


def _fields(source: BinaryIO, member: tarfile.TarInfo) -> dict[str, Any]:
    source.seek(member.offset_data)
    fields: dict[str, Any] = json.loads(decode(source.read(member.size))[0])
    return fields
