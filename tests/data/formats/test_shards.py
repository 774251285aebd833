import io
import json
import tarfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.data.formats.made_pictures import bomb, noise, picture_bytes
from truepair.data.formats.shards.shard_names import find_shards
from truepair.data.formats.shards.shards import ShardCollection
from truepair.data.formats.tables.drafts import NO_LABEL
from truepair.data.open import open as open_source
from truepair.encoders.descriptor import grid_descriptor
from truepair.errors import InputError

Members = list[tuple[str, bytes | str]]


def open_shards(source: str | Path, **options: Any) -> ShardCollection:
    collection = open_source(source, progress=False, **options)
    assert isinstance(collection, ShardCollection)
    return collection


def write_tar(path: Path, members: Members) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    with tarfile.open(path, "w") as tar:
        for name, content in members:
            data = content.encode() if isinstance(content, str) else content
            info = tarfile.TarInfo(name)
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))
    return path


def sample(k: int, *, key: str | None = None, caption: str | None = None) -> Members:
    key = f"{k:04d}" if key is None else key
    return [(f"{key}.png", picture_bytes(noise(k))), (f"{key}.txt", caption or f"picture  {k}\n")]


def samples(first: int, stop: int) -> Members:
    return [member for k in range(first, stop) for member in sample(k)]


def problems(collection: ShardCollection) -> list[tuple[str, str, str, bool]]:
    return [(problem.file, problem.entry, problem.reason, problem.used) for problem in collection.problems]


def test_a_folder_of_shards(tmp_path: Path) -> None:
    folder = tmp_path / "made"
    write_tar(folder / "train-0.tar", samples(0, 3))
    write_tar(folder / "train-1.tar", samples(3, 5))
    write_tar(folder / "dev-0.tar", samples(5, 6))
    collection = open_shards(folder)
    order = [5, 0, 1, 2, 3, 4]
    assert collection.name == "made" and collection.problems == []
    assert collection.captions(0, 9) == [f"picture {k}" for k in order]
    assert list(collection.key_of_pair) == collection.ids(0, 9) == [f"{k:04d}" for k in order]
    assert collection.shard_of_pair.tolist() == [0, 1, 1, 1, 2, 2]
    assert collection.pairs.source_rows.tolist() == list(range(6))
    assert collection.place(2) == ("train-0.tar", 2)
    for row, k in enumerate(order):
        assert np.array_equal(collection.picture(row), noise(k))
        assert np.array_equal(collection.pairs.images.features[row], grid_descriptor(noise(k)).astype(np.float16))
    train = open_shards(folder, split="train")
    assert train.ids(0, 9) == [f"{k:04d}" for k in range(5)] and train.name == "made/train"
    assert len(open_shards(folder, split="val")) == 1
    with pytest.raises(InputError, match="begins with the split 'test'; they are dev-0.tar, train-0.tar"):
        open_shards(folder, split="test")


def test_patterns(tmp_path: Path) -> None:
    names = ["train-000.tar", "train-001.tar", "train-002.tar", "dev-0.tar", "other.txt"]
    for name in names:
        (tmp_path / name).write_bytes(b"")

    def found(pattern: str) -> list[str]:
        return [path.name for path in find_shards(f"{tmp_path}/{pattern}") or []]

    assert found("train-{000..003}.tar") == ["train-000.tar", "train-001.tar", "train-002.tar", "train-003.tar"]
    assert found("{train-001,dev-0}.tar") == ["train-001.tar", "dev-0.tar"]
    assert found("{dev-{0..0},train-00*}.tar") == ["dev-0.tar", *names[:3]]
    assert found("train-00[12].tar") == ["train-001.tar", "train-002.tar"]
    assert found("*.tar") == ["dev-0.tar", *names[:3]]
    assert found("dev-0.tar") == ["dev-0.tar"]
    assert find_shards(tmp_path / "other.txt") is None
    for nothing in ("none.tar", "none-*.tar", "none-{0..3}.tar"):
        with pytest.raises(InputError, match="no such file"):
            found(nothing)
    with pytest.raises(InputError, match="more than 100,000 files"):
        found("{0..99999999999}.tar")


def test_captions_of_every_kind(tmp_path: Path) -> None:
    def with_json(k: int, fields: object) -> Members:
        text = fields if isinstance(fields, str | bytes) else json.dumps(fields)
        return [(f"{k}.jpg", picture_bytes(noise(k), "JPEG")), (f"{k}.json", text)]

    members = [
        *with_json(0, {"caption": "c", "text": "t", "kind": "x"}), *with_json(1, {"text": "t", "kind": 3}),
        *with_json(2, {"captions": ["one", " ", "two"]}), *with_json(3, {"caption": None}), *with_json(4, "{"),
        *with_json(5, [1]), *with_json(6, {"kind": "x"}), *with_json(7, {"caption": "j", "kind": "x"}), ("7.txt", "t7"),
        ("8.caption", "c8"), ("8.PNG", picture_bytes(noise(8))), ("9.webp", picture_bytes(noise(9), "WEBP")),
        ("9.txt", "café".encode("cp1252")), ("9.cls", "3"), ("a/b.c/10.seg.png", b""), ("a/b.c/10.png", b""),
    ]  # fmt: skip
    shard = write_tar(tmp_path / "made.tar", members)
    collection = open_shards(shard, label="kind")
    assert dict(zip(collection.ids(0, 99), collection.captions(0, 99), strict=True)) == {
        "0": "c", "1": "t", "2#0": "one", "2#2": "two", "7": "t7", "8": "c8", "9": "café",
    }  # fmt: skip
    assert collection.caption_of_pair.tolist() == [0, 0, 0, 2, 0, 0, 0]
    assert collection.pairs.image_index.tolist() == [0, 1, 2, 2, 3, 4, 5]
    assert collection.pairs.class_names == ("3", "x", NO_LABEL)
    assert collection.pairs.labels is not None and collection.pairs.labels.tolist() == [1, 0, 2, 2, 1, 2, 2]
    assert problems(collection) == [
        ("made.tar", "2", "empty-caption", False), ("made.tar", "3", "caption-not-text", False),
        ("made.tar", "4", "not-json", False), ("made.tar", "5", "not-json", False),
        ("made.tar", "6", "no-caption", False), ("made.tar", "9", "encoding", True),
        ("made.tar", "a/b.c/10", "no-caption", False),
    ]  # fmt: skip
    assert open_shards(shard, caption="text").captions(0, 9) == ["t", "t"]
    assert open_shards(shard, caption="first").captions(2, 4) == ["one", "t7"]
    assert open_shards(shard, caption="first:2").captions(2, 4) == ["one", "t7"]  # the second is empty
    assert open_shards(shard, caption="first:3").captions(2, 5) == ["one", "two", "t7"]


def test_bad_samples_are_listed_and_the_others_audited(tmp_path: Path) -> None:
    link = tarfile.TarInfo("6.png")
    link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
    shard = tmp_path / "made.tar"
    members = [
        *sample(0), ("1.png", b"text"), ("1.txt", "a"), ("2.png", bomb(30_000, 30_000)), ("2.txt", "a"),
        ("3.png", picture_bytes(noise(3))), ("4.txt", "a"), ("5.png", picture_bytes(noise(5))[:100]), ("5.txt", "a"),
        ("6.txt", "a"), ("7.png", picture_bytes(noise(7))), ("7.txt", "x" * 100_000), ("8.png", b""), ("8.txt", " "),
        *sample(0, caption="again"), *sample(9, key="../../9"),
    ]  # fmt: skip
    write_tar(shard, members)
    with tarfile.open(shard, "a") as tar:
        tar.addfile(link)
        tar.addfile(tarfile.TarInfo("10"))
    collection = open_shards(shard)
    assert collection.ids(0, 9) == ["0000", "7", "../../9"]
    assert collection.captions(0, 1) == ["picture 0"] and len(collection.captions(1, 2)[0]) == 10_000
    assert np.array_equal(collection.picture(2), noise(9))
    assert problems(collection) == [
        ("made.tar", "1", "not-a-picture", False), ("made.tar", "2", "huge-picture", False),
        ("made.tar", "3", "no-caption", False), ("made.tar", "4", "no-picture", False),
        ("made.tar", "5", "broken-picture", False), ("made.tar", "6", "no-picture", False),
        ("made.tar", "7", "long-caption", True), ("made.tar", "8", "empty-caption", False),
        ("made.tar", "0000", "duplicate-key", False), ("made.tar", "0000", "duplicate-key", False),
        ("made.tar", "6", "not-a-file", False),
    ]  # fmt: skip


def test_one_key_in_two_shards(tmp_path: Path) -> None:
    for name in ("a.tar", "b.tar"):
        write_tar(tmp_path / name, sample(1))
    collection = open_shards(tmp_path)
    assert collection.ids(0, 9) == ["0001", "0001@b.tar"]
    assert list(collection.key_of_pair) == ["0001", "0001"]


@pytest.mark.parametrize("share", [0.05, 0.3, 0.55, 0.8, 0.97])
def test_a_shard_cut_short_anywhere(tmp_path: Path, share: float) -> None:
    write_tar(tmp_path / "a.tar", samples(0, 1))
    whole = write_tar(tmp_path / "b.tar", samples(1, 8))
    with tarfile.open(whole) as tar:
        ends = [member.offset_data + member.size for member in tar]
    data = whole.read_bytes()
    # As much of the members as `share`: what tar pads the file with does not count.
    cut = int(share * ends[-1])
    whole.write_bytes(data[:cut])
    collection = open_shards(tmp_path)
    complete = sum(end <= cut for end in ends[1::2])
    assert collection.ids(0, 99) == [f"{k:04d}" for k in range(1 + complete)]
    assert ("b.tar", "b.tar", "cut-short", True) in problems(collection)
    assert {file for file, _, _, _ in problems(collection)} == {"b.tar"}


def test_a_sample_that_is_cut_off_is_told_once(tmp_path: Path) -> None:
    shard = write_tar(tmp_path / "a.tar", samples(0, 3))
    with tarfile.open(shard) as tar:
        last = tar.getmembers()[-1]
    shard.write_bytes(shard.read_bytes()[: last.offset_data + 3])
    collection = open_shards(shard)
    assert len(collection) == 2
    assert problems(collection) == [("a.tar", "a.tar", "cut-short", True)]


def test_every_place_of_a_cut_is_noticed(tmp_path: Path) -> None:
    from truepair.data.formats.shards.shard_samples import Sample, read_samples

    shard = write_tar(tmp_path / "a.tar", samples(0, 3))
    with tarfile.open(shard) as tar:
        members = tar.getmembers()
    end = members[-1].offset_data + 512
    data = shard.read_bytes()
    for cut in (*range(1, end + 1, 101), *(member.offset_data + 3 for member in members)):
        shard.write_bytes(data[:cut])
        found = list(read_samples(shard))
        assert [item.reason for item in found if not isinstance(item, Sample)] in (["cut-short"], ["broken-shard"])
        for item in found:
            if isinstance(item, Sample) and item.texts:
                assert item.texts["txt"].endswith(b"\n")
                assert item.picture is not None and item.picture.offset + item.picture.size <= cut
    shard.write_bytes(data[: end + 512])
    assert all(isinstance(item, Sample) for item in read_samples(shard))


def test_damage_in_the_middle_and_no_tar_at_all(tmp_path: Path) -> None:
    write_tar(tmp_path / "a.tar", samples(0, 1))
    damaged = write_tar(tmp_path / "b.tar", samples(1, 4))
    with tarfile.open(damaged) as tar:
        header = tar.getmembers()[2].offset
    data = bytearray(damaged.read_bytes())
    data[header : header + 512] = b"\xff" * 512
    damaged.write_bytes(data)
    (tmp_path / "c.tar").write_bytes(b"no tar" * 500)
    (tmp_path / "d.tar").write_bytes(b"")
    with tarfile.open(tmp_path / "e.tar", "w:gz") as tar:
        tar.addfile(tarfile.TarInfo("x"))
    collection = open_shards(tmp_path)
    assert collection.ids(0, 9) == ["0000", "0001"]
    assert [(file, reason) for file, _, reason, _ in problems(collection)] == [
        ("b.tar", "cut-short"), ("c.tar", "broken-shard"), ("d.tar", "broken-shard"), ("e.tar", "broken-shard"),
    ]  # fmt: skip


def test_a_size_below_zero_does_not_lead_in_circles(tmp_path: Path) -> None:
    shard = write_tar(tmp_path / "a.tar", samples(0, 2))
    data = bytearray(shard.read_bytes())
    with tarfile.open(shard) as tar:
        header = tar.getmembers()[2].offset
    data[header + 124 : header + 136] = (-1024).to_bytes(12, "big", signed=True)
    data[header + 148 : header + 156] = b" " * 8
    data[header + 148 : header + 156] = b"%06o\0 " % sum(data[header : header + 512])
    shard.write_bytes(data)
    collection = open_shards(shard)
    assert collection.ids(0, 9) == ["0000"]
    assert [reason for _, _, reason, _ in problems(collection)] == ["cut-short"]


def test_a_missing_shard_is_listed(tmp_path: Path) -> None:
    write_tar(tmp_path / "train-1.tar", samples(0, 1))
    collection = open_shards(f"{tmp_path}/train-{{0..1}}.tar")
    assert len(collection) == 1
    assert problems(collection) == [("train-0.tar", "train-0.tar", "missing-shard", False)]


def test_nothing_usable(tmp_path: Path) -> None:
    shard = write_tar(tmp_path / "a.tar", [("1.txt", "a"), ("2.png", picture_bytes(noise(0)))])
    with pytest.raises(InputError, match="no pair that can be used.*first of 2 problems: a.tar: 1: the sample has"):
        open_shards(shard)
    with pytest.raises(InputError, match="holds shards, for which there is no option image"):
        open_shards(shard, image="png")


def test_a_shard_that_vanishes_meanwhile(tmp_path: Path) -> None:
    collection = open_shards(write_tar(tmp_path / "a.tar", samples(0, 1)))
    (tmp_path / "a.tar").unlink()
    assert collection.picture(0) is None
