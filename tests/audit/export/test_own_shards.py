import io
import json
import tarfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from truepair.audit.export import export
from truepair.audit.result import AuditResult
from truepair.data.formats.shards.shards import ShardCollection
from truepair.data.open import open as open_source
from truepair.errors import InputError

Audited = Callable[..., AuditResult]
Members = list[tuple[str, bytes]]
LONG = "folder " * 20 + "é/long"


def picture(seed: int) -> bytes:
    buffer = io.BytesIO()
    pixels = np.random.default_rng(seed).integers(256, size=(16, 16, 3), dtype=np.uint8)
    Image.fromarray(pixels).save(buffer, "png")
    return buffer.getvalue()


def write(path: Path, members: Members, layout: int = tarfile.GNU_FORMAT) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with tarfile.open(path, "w", format=layout) as tar:
        for number, (name, data) in enumerate(members):
            member = tarfile.TarInfo(name)
            member.size, member.mtime, member.uname = len(data), 1000 + number, "someone"
            if name == "list.json":
                member.pax_headers = {"size": str(len(data)), "comment": "mine"}
            tar.addfile(member, io.BytesIO(data))


def read(path: Path) -> dict[str, tuple[bytes, float, str]]:
    with tarfile.open(path, "r:") as tar:
        members = [(member, tar.extractfile(member)) for member in tar]
        return {member.name: (file.read() if file else b"", member.mtime, member.uname) for member, file in members}


@pytest.fixture
def shards(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TRUEPAIR_CACHE", str(tmp_path / "cache"))
    folder = tmp_path / "in"
    many = {"captions": ["x", "y", "", "z"], "other": "é"}
    write(folder / "a.tar", [(f"{k}.{end}", data) for k in range(3) for end, data in sample(k)])
    write(folder / "b.tar", [(f"5.{end}", data) for end, data in sample(5)], tarfile.PAX_FORMAT)
    listed = [("list.json", json.dumps(many).encode()), ("list.png", picture(7)), ("list.cls", b"3")]
    late = [(f"{LONG}.{end}", data) for end, data in sample(9)]
    write(folder / "c.tar", [*listed[:1], *late[:1], *listed[1:], *late[1:], ("none.txt", b"t")], tarfile.PAX_FORMAT)
    return folder


def sample(k: int) -> Members:
    return [
        ("png", picture(k)),
        ("txt", f"caption {k}".encode()),
        ("json", b'{"caption": "no"}'),
        ("seg.bin", b"\1" * k),
    ]


def run(audited: Audited, folder: Path, out: Path, flagged: set[str]) -> tuple[Path, AuditResult]:
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    collection = open_source(folder, progress=False)
    assert isinstance(collection, ShardCollection)
    captions = collection.captions(0, 99)
    assert flagged <= set(captions)
    result = audited(collection, [row for row, caption in enumerate(captions) if caption in flagged], source=folder)
    (own,) = export(result, out, ["own"])
    again = open_source(own, progress=False)
    assert isinstance(again, ShardCollection)
    kept = [row for row, caption in enumerate(captions) if caption not in flagged]
    assert again.captions(0, 99) == [captions[row] for row in kept]
    assert list(again.key_of_pair) == [collection.key_of_pair[row] for row in kept]
    lines = [json.loads(line) for line in (own / "weights.jsonl").read_text().splitlines()]
    assert [line["key"] for line in lines] == list(again.key_of_pair)
    assert [np.float32(line["weight"]) for line in lines] == result.verdict.p_match[kept].tolist()
    assert [line["shard"] for line in lines] == [again.shards[shard].name for shard in again.shard_of_pair]
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before
    return own, result


def test_kept_samples_are_copied(shards: Path, tmp_path: Path, audited: Audited) -> None:
    own, _ = run(audited, shards, tmp_path / "out", {"caption 1", "caption 5"})
    assert sorted(path.name for path in own.iterdir()) == ["a.tar", "c.tar", "weights.jsonl"]
    kept, source = read(own / "a.tar"), read(shards / "a.tar")
    assert kept == {name: member for name, member in source.items() if not name.startswith("1.")}
    assert read(own / "c.tar") == {name: m for name, m in read(shards / "c.tar").items() if name != "none.txt"}


def test_all_kept_is_a_copy(shards: Path, tmp_path: Path, audited: Audited) -> None:
    own, _ = run(audited, shards, tmp_path / "out", set())
    for name in ("a.tar", "b.tar"):
        data = (shards / name).read_bytes()
        assert (own / name).read_bytes() == data[: len((own / name).read_bytes())]
        assert data.strip(b"\0") == (own / name).read_bytes().strip(b"\0")


def test_some_captions_of_a_list(shards: Path, tmp_path: Path, audited: Audited) -> None:
    own, _ = run(audited, shards, tmp_path / "out", {"x", "caption 9"})
    kept = read(own / "c.tar")
    assert list(kept) == ["list.json", "list.png", "list.cls"]
    assert json.loads(kept["list.json"][0]) == {"captions": ["y", "z"], "other": "é"}
    assert kept["list.json"][1:] == (1000, "someone")
    with tarfile.open(own / "c.tar") as tar:
        assert tar.getmembers()[0].pax_headers == {"comment": "mine"}


def test_a_field_that_was_named(tmp_path: Path, audited: Audited, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRUEPAIR_CACHE", str(tmp_path / "cache"))
    fields = {"caption": ["no", "no"], "alt": ["a", "b"]}
    write(tmp_path / "in" / "a.tar", [("0.json", json.dumps(fields).encode()), ("0.png", picture(0))])
    collection = open_source(tmp_path / "in", caption="alt", progress=False)
    (own,) = export(audited(collection, [0], caption="alt"), tmp_path / "out", ["own"])
    assert json.loads(read(own / "a.tar")["0.json"][0]) == {"caption": ["no", "no"], "alt": ["b"]}


def test_captions_that_were_not_asked_for_do_not_come_back(
    tmp_path: Path, audited: Audited, monkeypatch: pytest.MonkeyPatch
) -> None:
    """None of them was audited; a caption in a text, or alone, is copied as it is."""
    monkeypatch.setenv("TRUEPAIR_CACHE", str(tmp_path / "cache"))
    write(
        tmp_path / "in" / "a.tar",
        [
            *[("0.json", json.dumps({"captions": ["good", "unread"], "other": 1}).encode()), ("0.png", picture(0))],
            *[("1.json", json.dumps({"captions": ["of the list", "unread"]}).encode()), ("1.png", picture(1))],
            *[("1.txt", b"of the text"), ("2.json", json.dumps({"caption": "alone"}).encode()), ("2.png", picture(2))],
        ],
    )
    collection = open_source(tmp_path / "in", caption="first", progress=False)
    assert collection.captions(0, 9) == ["good", "of the text", "alone"]
    (own,) = export(audited(collection, []), tmp_path / "out", ["own"])
    found = {name: json.loads(data) for name, (data, *_) in read(own / "a.tar").items() if name.endswith(".json")}
    assert found == {
        "0.json": {"captions": ["good"], "other": 1},
        "1.json": {"captions": ["of the list", "unread"]},
        "2.json": {"caption": "alone"},
    }
    assert open_source(own, progress=False).captions(0, 9) == ["good", "of the text", "alone"]


def test_a_shard_cut_short(shards: Path, tmp_path: Path, audited: Audited) -> None:
    path = shards / "a.tar"
    with tarfile.open(path) as tar:
        last = tar.getmembers()[-1]
    path.write_bytes(path.read_bytes()[: last.offset_data + 1])
    collection = open_source(shards, progress=False)
    assert isinstance(collection, ShardCollection)
    whole = [key for key, shard in zip(collection.key_of_pair, collection.shard_of_pair, strict=True) if shard == 0]
    (own,) = export(audited(collection, []), tmp_path / "out", ["own"])
    names = set(read(own / "a.tar"))
    assert {name.partition(".")[0] for name in names} == set(whole) == {"0", "1", "2"}
    assert "2.json" in names and "2.seg.bin" not in names
    path.unlink()
    write(path, [("0.png", picture(0))])
    with pytest.raises(InputError, match="a.tar: the sample '1' is not there any more"):
        export(audited(collection, []), tmp_path / "other", ["own"])


def test_shards_of_several_folders(tmp_path: Path, audited: Audited, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRUEPAIR_CACHE", str(tmp_path / "cache"))
    for name in ("one", "two"):
        write(tmp_path / "in" / name / "a.tar", [(f"{name}.{end}", data) for end, data in sample(len(name))])
    collection = open_source(f"{tmp_path}/in/{{one,two}}/a.tar", progress=False)
    (own,) = export(audited(collection, []), tmp_path / "out", ["own"])
    assert sorted(str(path.relative_to(own)) for path in own.rglob("*.tar")) == ["one/a.tar", "two/a.tar"]
    assert json.loads((own / "weights.jsonl").read_text().splitlines()[1])["shard"] == "two/a.tar"


def test_half_a_letter_in_a_list_stays_utf8(tmp_path: Path, audited: Audited, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRUEPAIR_CACHE", str(tmp_path / "cache"))
    said = {"captions": ["grün", "cut \ud83d", "gone"]}
    write(tmp_path / "in" / "a.tar", [("k.json", json.dumps(said).encode()), ("k.png", picture(0))])
    collection = open_source(tmp_path / "in", progress=False)
    (own,) = export(audited(collection, [2], source=tmp_path / "in"), tmp_path / "out", ["own"])
    found, _, _ = read(own / "a.tar")["k.json"]
    assert json.loads(found.decode("utf-8")) == {"captions": ["grün", "cut \ud83d"]}
    assert open_source(own, progress=False).captions(0, 9) == collection.captions(0, 2)


def test_shards_of_several_folders_open_as_they_stand(
    tmp_path: Path, audited: Audited, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRUEPAIR_CACHE", str(tmp_path / "cache"))
    for number, folder in enumerate(("b", "a")):
        write(tmp_path / "in" / folder / "0.tar", [(f"{folder}.{end}", data) for end, data in sample(number)])
    collection = open_source(f"{tmp_path / 'in'}/{{b,a}}/0.tar", progress=False)
    (own,) = export(audited(collection, [], source=tmp_path / "in"), tmp_path / "out", ["own"])
    again = open_source(own, progress=False)
    assert isinstance(again, ShardCollection)
    count = len(collection)
    assert (again.captions(0, 9), again.ids(0, 9)) == (collection.captions(0, count), collection.ids(0, count))
    (own / "weights.jsonl").write_text('{"image": "a.png", "caption": "words"}\n')
    with pytest.raises(InputError):
        open_source(own, progress=False)
