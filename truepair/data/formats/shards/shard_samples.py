"""The samples of one tar shard in the webdataset layout, read member by member; nothing is unpacked.

Members of one sample share their name up to the first dot of its last part: `a/0001.jpg`, `a/0001.txt`, `a/0001.json`.
Names are keys and nothing else: no file is opened or written by them.
"""

from __future__ import annotations

import tarfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

from truepair.data.collection import Problem
from truepair.data.pictures.pictures import Place
from truepair.files import open_file
from truepair.phrases import printable

PICTURES = ("jpg", "jpeg", "png", "webp")
TEXTS = ("txt", "caption")
OBJECT = "json"
_LONGEST_TEXT = 2**20
_BLOCK = 512


@dataclass
class Sample:
    """The members of a sample that an audit reads.

    Attributes:
        member: place in the shard of its first member, from 0.
        picture: where its picture lies in the shard; None without one.
        texts: extension ("txt", "caption", "json") → bytes, at most 1 MiB.
    """

    key: str
    member: int
    picture: Place | None = None
    texts: dict[str, bytes] = field(default_factory=dict)


def read_samples(shard: Path) -> Iterator[Sample | Problem]:
    """The samples of a shard in the order of their first members, then what is wrong with the shard as a whole.

    The memory this takes is that of the shard's texts. Members of one sample need not follow each other. A second
    member of one name is left out, and so is a sample whose members the end of the file cuts off.
    """
    samples: dict[str, Sample] = {}
    problems: list[Problem] = []
    try:
        size = shard.stat().st_size
        with open_file(shard) as file, tarfile.open(fileobj=file, mode="r:") as tar:
            cut = _read_members(shard, file, tar, size, samples, problems)
    except OSError as error:
        reason = "missing-shard" if isinstance(error, FileNotFoundError) else "broken-shard"
        cut = _problem(shard, reason, f"it cannot be read ({error.strerror or error})")
    except tarfile.TarError as error:
        # Raised on opening: later ones are met where the members are read.
        cut = _problem(shard, "broken-shard", f"it is no plain tar file ({error}); unpacked shards only, no .gz")
    yield from samples.values()
    yield from problems
    if cut is not None:
        yield cut


def _read_members(
    shard: Path, file: BinaryIO, tar: tarfile.TarFile, size: int, samples: dict[str, Sample], problems: list[Problem]
) -> Problem | None:
    """Fill the samples; the problem that ended the reading too early, if any did."""
    number, before = -1, -1
    while True:
        number += 1
        try:
            member = tar.next()
        except (tarfile.TarError, OSError, ValueError) as error:
            return _cut(shard, f"after {number} members ({error})", len(samples))
        if member is None:
            # The archive takes damage for its end; its own end is marked by a block of zeros.
            file.seek(tar.offset)
            return None if file.read(_BLOCK) == bytes(_BLOCK) else _cut(shard, f"after {number} members", len(samples))
        if tar.offset <= before or member.size < 0:  # sizes below zero would lead in circles
            return _cut(shard, f"after {number} members (the next one has a negative size)", len(samples))
        before = tar.offset
        vars(tar)["members"] = []  # else the archive remembers all of them
        key, extension = key_of(member.name)
        if extension not in (*PICTURES, *TEXTS, OBJECT) or member.isdir():
            continue
        if member.offset_data + member.size > size:
            samples.pop(key, None)
            return _cut(shard, f"in the middle of {printable(member.name)}", len(samples))
        if not member.isreg() or member.issparse():
            detail = f"{printable(member.name)} is a link or device, not a file; pack the file itself"
            problems.append(Problem(printable(key), shard.name, number, "not-a-file", detail))
            continue
        sample = samples.setdefault(key, Sample(key, number))
        if extension in sample.texts or (extension in PICTURES and sample.picture is not None):
            what = "picture" if extension in PICTURES else f".{extension}"
            detail = (
                f"{printable(member.name)}: the sample has another {what} already, which was read instead of this; "
                "give each sample a key of its own"
            )
            problems.append(Problem(printable(key), shard.name, number, "duplicate-key", detail))
        elif extension in PICTURES:
            sample.picture = Place(str(shard), member.offset_data, member.size)
        else:
            file.seek(member.offset_data)
            sample.texts[extension] = file.read(min(member.size, _LONGEST_TEXT))


def key_of(name: str) -> tuple[str, str]:
    """The key of the sample that a member of this name belongs to, and the member's extension without the dot."""
    folder, slash, base = name.rpartition("/")
    stem, _, extension = base.partition(".")
    return folder + slash + stem, extension.lower()


def _cut(shard: Path, where: str, whole: int) -> Problem:
    detail = f"it is cut short {where}; the {whole} samples before were read"
    return _problem(shard, "cut-short", detail, used=True)


def _problem(shard: Path, reason: str, detail: str, *, used: bool = False) -> Problem:
    return Problem(shard.name, shard.name, -1, reason, f"{shard.name}: {detail}. Copy or download it again", used=used)
