"""Tar shards in the webdataset layout: a picture and a caption a sample.

The caption is that of `.txt`, else of `.caption`, else a field of `.json` that `data/columns.py` knows; a list there
gives one pair an item. Shards are read where they lie: their pictures are found again by their offsets.
"""

from __future__ import annotations

import os
from array import array
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np

from truepair.data.collection import PairsCollection, Problem
from truepair.data.columns import ALL, find_captions, most_captions
from truepair.data.config import Reading
from truepair.data.formats.format import Format
from truepair.data.formats.shards.downloads import failed_downloads
from truepair.data.formats.shards.shard_names import find_shards, of_split, splits_of
from truepair.data.formats.shards.shard_samples import OBJECT, TEXTS, Sample, read_samples
from truepair.data.formats.tables.drafts import Draft, Finished, class_names_of, finish, label_of, read_caption
from truepair.data.formats.tables.json_tables import parsed
from truepair.data.formats.tables.text_decoding import decode
from truepair.data.pairs import IntArray
from truepair.data.pictures.known_features import DIGEST, Digests
from truepair.data.pictures.pictures import Place
from truepair.data.selection import Selection
from truepair.phrases import printable


@dataclass
class _Entries:
    """Samples that give pairs, in order: the images of the draft. `member` is the place of their first member."""

    shards: Sequence[Path]
    shard: array[int] = field(default_factory=lambda: array("q"))
    member: array[int] = field(default_factory=lambda: array("q"))
    offset: array[int] = field(default_factory=lambda: array("q"))
    size: array[int] = field(default_factory=lambda: array("q"))
    names: list[str] = field(default_factory=list)

    def append(self, sample: Sample, shard: int) -> None:
        assert sample.picture is not None
        self.shard.append(shard)
        self.member.append(sample.member)
        self.offset.append(sample.picture.offset)
        self.size.append(sample.picture.size)
        self.names.append(sample.key)

    def place(self, number: int) -> Place:
        return Place(str(self.shards[self.shard[number]]), self.offset[number], self.size[number])

    def origin(self, number: int) -> tuple[str, int]:
        return self.shards[self.shard[number]].name, self.member[number]

    def digests(self) -> Digests:
        """Hashes of the paths, sizes and times of the shards, and of the places of the pictures in them."""
        return self._places_in(lambda shard, _status: str(shard.resolve()))

    def files(self) -> Digests:
        """The same of the files themselves in place of their paths."""
        return self._places_in(lambda _shard, status: f"{status.st_dev}\0{status.st_ino}")

    def _places_in(self, called: Callable[[Path, os.stat_result], str]) -> Digests:
        of_shard = []
        for shard in self.shards:
            status = shard.stat() if shard.is_file() else None
            known = "" if status is None else f"{called(shard, status)}\0{status.st_size}\0{status.st_mtime_ns}"
            of_shard.append(blake2b(os.fsencode(known)))
        found = bytearray()
        for number, offset, size in zip(self.shard, self.offset, self.size, strict=True):
            digest = of_shard[number].copy()
            digest.update(f"\0{offset}\0{size}".encode())
            found += digest.digest()[:16]
        return np.frombuffer(bytes(found), dtype=DIGEST)


class ShardCollection(PairsCollection):
    """Pairs from tar shards. Their source rows count all samples of all shards, the unusable ones too.

    Attributes:
        shards: all of them, in order.
        shard_of_pair: (N,) which one a pair stands in.
        key_of_pair: the key of each pair's sample: the name of its members up to the first dot.
        caption_of_pair: (N,) which caption of its sample a pair has, from 0.
        caption: where the captions stand, if it was said.
    """

    writable = True

    def __init__(self, finished: Finished, entries: _Entries, caption: str | None) -> None:
        self.shards, self.caption = entries.shards, caption
        self._entries, self._entry_of_pair = entries, finished.images
        self.shard_of_pair: IntArray = np.array(entries.shard, dtype=np.int64)[finished.images]
        self.key_of_pair: Sequence[str] = [entries.names[entry] for entry in finished.images]
        self.caption_of_pair = finished.numbers
        super().__init__(finished.pairs, problems=finished.problems)

    def place(self, row: int) -> tuple[str, int]:
        """The shard a pair stands in, and the place there of its sample's first member, from 0."""
        return self._entries.origin(int(self._entry_of_pair[row]))

    def write(self, selection: Selection, folder: Path) -> None:
        from truepair.data.formats.shards.write import write_shards

        write_shards(self, selection, folder)


class Shards(Format):
    """Tar files in the webdataset layout."""

    holds = "shards"
    understood = 'tar shards in the webdataset layout: a .tar, a folder of them, or a pattern such as "{000..003}.tar"'
    options = frozenset({"caption", "label", "dev_share", "test_share", "split_seed", "encoder"})
    collection = ShardCollection

    def recognises(self, source: str | Path, reading: Reading) -> bool:
        return find_shards(source) is not None

    def splits(self, source: str | Path, reading: Reading) -> tuple[str, ...]:
        return splits_of(find_shards(source) or [])

    def open(self, source: str | Path, split: str | None, reading: Reading) -> ShardCollection:
        path, shards = Path(source), find_shards(source) or []
        name = "/".join(filter(None, (path.name if path.is_dir() else path.parent.resolve().name, split)))
        return _read(shards if split is None else of_split(shards, split), reading, name, shards)


def _read(shards: Sequence[Path], reading: Reading, name: str, all_shards: Sequence[Path]) -> ShardCollection:
    """The usable pairs of some shards; bad samples, and shards that are missing or cut short, are problems.

    Args:
        reading: `caption` says where captions stand instead: "txt", "caption" or a field of `.json`; `first`
            or `first:5` for the first of a list. `label` is a field of `.json`; samples without one are of class
            `NO_LABEL`.
        all_shards: those of all splits, whose classes are numbered together.
    """
    caption, label = None if reading.caption == ALL else reading.caption, reading.label
    entries, draft, problems = _Entries(shards), Draft(), list[Problem]()
    sample_number = 0
    for number, shard in enumerate(shards):
        failed = failed_downloads(shard)
        problems += [] if failed is None else [failed]
        for sample in read_samples(shard):
            if isinstance(sample, Problem):
                problems.append(sample)
                continue
            problems += _add(draft, entries, sample, number, sample_number, caption, label)
            sample_number += 1
    names = None
    if label is not None:
        others = [shard for shard in all_shards if shard not in shards]
        names = class_names_of([*draft.labels, *_labels_in(others, label)])
    place_of_shard = {shard.name: number for number, shard in enumerate(shards)}
    finished = finish(
        draft,
        entries,
        reading,
        problems,
        source=name,
        name=name,
        place_of=lambda pair: entries.origin(draft.image[pair]),
        order=lambda problem: (place_of_shard[problem.file], problem.row),
        class_names=names,
    )
    return ShardCollection(finished, entries, caption)


def _labels_in(shards: Sequence[Path], label: str) -> Iterator[str | None]:
    for shard in shards:
        for sample in read_samples(shard):
            fields = None if isinstance(sample, Problem) else _object(sample)
            yield label_of(fields.get(label)) if isinstance(fields, dict) else None


def _add(
    draft: Draft, entries: _Entries, sample: Sample, shard: int, number: int, wanted: str | None, label: str | None
) -> list[Problem]:
    """Add the pairs of one sample to the draft; what keeps them out is returned."""
    file, entry = entries.shards[shard].name, printable(sample.key)

    def problem(reason: str, detail: str, *, used: bool = False) -> Problem:
        return Problem(entry, file, sample.member, reason, f"{entry}: {detail}", used=used)

    if sample.picture is None:
        return [problem("no-picture", "the sample has no .jpg, .jpeg, .png or .webp; pack one, or remove the sample")]
    fields = _object(sample)
    captions = _captions(sample, fields, wanted)
    if not captions and isinstance(fields, str):
        return [problem("not-json", f"its .json {fields}; pack it again")]
    if not captions:
        return [problem("no-caption", "the sample has no .txt, .caption or caption in .json; pack one, or remove it")]
    of_sample = fields.get(label) if isinstance(fields, dict) and label is not None else None
    read = [(place, read_caption(value), encoding) for place, (value, encoding) in enumerate(captions)]
    problems = [problem(caption.reason, caption.detail) for _, caption, _ in read if not caption.text]
    if len(problems) < len(read):
        entries.append(sample, shard)
    for place, caption, encoding in read:
        if not caption.text:
            continue
        if caption.reason:
            draft.note(problem(caption.reason, caption.detail, used=True))
        if encoding == "windows-1252":
            detail = "the caption is not UTF-8 and was read as Windows-1252; look whether its accents are right"
            draft.note(problem("encoding", detail, used=True))
        draft.add(
            image=len(entries.names) - 1, caption=caption.text, name=f"{entry}#{place}" if len(read) > 1 else entry,
            again=f"@{file}", row=number, number=place, label=of_sample,
        )  # fmt: skip
    return problems


def _captions(sample: Sample, fields: dict[str, Any] | str | None, wanted: str | None) -> list[tuple[object, str]]:
    """The captions of a sample, each with the encoding it was in."""
    most = most_captions(wanted)
    known = wanted is None or most is not None
    for extension in TEXTS if known else (wanted,):
        if extension in TEXTS and extension in sample.texts:
            return [decode(sample.texts[extension])]
    if not isinstance(fields, dict):
        return []
    name = find_captions(fields)[:1] if known else (wanted,)
    if not name or name[0] not in fields:
        return []
    values = fields[name[0]] if isinstance(fields[name[0]], list) else [fields[name[0]]]
    return [(value, "utf-8") for value in values[:most]]


def _object(sample: Sample) -> dict[str, Any] | str | None:
    """The fields of the sample's .json, what it holds instead, or None without one."""
    return parsed(decode(sample.texts[OBJECT])[0]) if OBJECT in sample.texts else None
