"""Embeddings in an object store: the numbers of local files, few requests, and what is said when a store fails."""

import itertools
import json
import os
import pickle
import sys
import time
import tracemalloc
from pathlib import Path

import fsspec
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image

from tests.audit.array_collection import random_pairs
from tests.data.formats.slow_store import slow_store
from tests.data.formats.test_embedding_files import clip_folder
from truepair.audit.audit import audit
from truepair.audit.early_checks import check_request
from truepair.audit.export import export
from truepair.audit.options import AuditOptions, CrossFitting
from truepair.audit.scoring.by_embeddings import score_collection
from truepair.audit.scoring.row_ranges import row_ranges
from truepair.data.formats.embeddings.files import is_embeddings, open_embeddings
from truepair.data.open import open as open_source
from truepair.data.storage.object_store import ReadAhead, is_url
from truepair.errors import InputError, TruepairError

SCORING = {"bank_size": 64, "chunk_rows": 300}


@pytest.fixture
def store(tmp_path):
    return slow_store(tmp_path)


@pytest.fixture
def bucket(tmp_path):
    """Copies a local folder to memory://, and empties it in the end."""
    memory = fsspec.filesystem("memory")

    def fill(folder):
        memory.put(str(folder), "/bucket", recursive=True)
        return "memory://bucket"

    yield fill
    memory.store.clear()
    memory.pseudo_dirs[:] = [""]


def files_of(folder):
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def wait_for(condition, seconds=20):
    until = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < until
        time.sleep(0.001)


def aligned(folder, rows=1500, width=16):
    images, texts = random_pairs(rows, width, noise=0.2)
    images[33], texts[1234 % rows, 2] = 0, np.nan
    folder.mkdir(parents=True, exist_ok=True)
    np.save(folder / "images.npy", images.astype(np.float16))
    np.save(folder / "texts.npy", texts)
    (folder / "captions.txt").write_text("".join(f"caption {row}\n" for row in range(rows)))
    return folder


# ---- the same as local files ----


def told(collection):
    """All that a collection tells."""
    return {
        "ids": collection.ids(0, 99),
        "captions": [collection.captions(row, 99) for row in range(14)],
        "names": collection.image_names(3, 9),
        "places": [collection.place(row) for row in range(len(collection))],
        "problems": list(collection.problems),
    }


@pytest.mark.parametrize("url", ["memory://bucket", "slow://clip", "file://{root}/clip/"])
@pytest.mark.parametrize("dtype", ["<f2", "<f4", ">f4", "<f8"])
def test_a_folder_in_a_store_is_that_folder(tmp_path, bucket, store, url, dtype):
    folder = clip_folder(tmp_path / "clip", dtype=dtype, digits=2)
    (folder / "img_emb" / "notes.txt").write_text("not ours")
    bucket(folder)
    url = url.format(root=tmp_path)
    assert is_embeddings(url)
    local, stored = open_embeddings(folder), open_source(url)
    assert stored.name == url.rstrip("/").rpartition("/")[2]
    for start, stop in itertools.product(range(14), range(16)):
        for ours, theirs in zip(stored.read(start, stop), local.read(start, stop), strict=True):
            assert ours.dtype == theirs.dtype and np.array_equal(ours, theirs) and ours.flags.writeable
        for side in range(2):
            assert np.array_equal(stored.read_side(side, start, stop), local.read(start, stop)[side])
            assert np.array_equal(local.read_side(side, start, stop), local.read(start, stop)[side])
    assert told(stored) == told(local)


def test_one_side_alone_is_fetched_alone(tmp_path, bucket, store):
    bucket(aligned(tmp_path / "two", rows=4000))
    collection = open_embeddings("slow://two")
    before = len(store.asked)
    collection.read_side(1, 100, 900)
    asked = store.asked[before:]
    assert len(asked) == 1 and "texts.npy" in str(asked[0])


def test_faults_in_a_store_are_listed_as_those_of_files(tmp_path, bucket, store):
    folder = clip_folder(tmp_path / "clip")
    cut = folder / "img_emb/img_emb_2.npy"
    cut.write_bytes(cut.read_bytes()[:-3])
    (folder / "text_emb/text_emb_1.npy").write_bytes(b"\x93NUMPY\x01\x00 no array")
    (folder / "metadata/metadata_0.parquet").write_bytes(b"PAR1 nothing PAR1")
    np.save(folder / "img_emb/img_emb_7.npy", np.array([{}], dtype=object))  # a pickle
    np.save(folder / "text_emb/text_emb_7.npy", np.zeros((1, 4)))
    np.save(folder / "img_emb/img_emb_8.npy", np.zeros((1, 4)))
    bucket(folder)
    local = open_embeddings(folder)
    for url in ("memory://bucket", "slow://clip"):
        stored = open_embeddings(url)
        assert told(stored)["ids"] == told(local)["ids"]
        found = [(p.entry, p.file, p.row, p.reason, p.used) for p in stored.problems]
        assert found == [(p.entry, p.file, p.row, p.reason, p.used) for p in local.problems] and len(found) == 5
    assert any("slow://clip/img_emb/img_emb_2.npy is cut short" in p.detail for p in stored.problems)


def test_two_arrays_by_name_and_lines_of_captions(tmp_path, bucket, store):
    folder = aligned(tmp_path / "two", rows=5000)
    bucket(folder)
    for url in ("memory://bucket", "slow://two"):
        whole, named = open_embeddings(url), open_embeddings(f"{url}/images.npy, {url}/texts.npy")
        mixed = open_embeddings(f"{folder}/images.npy,{url}/texts.npy")
        assert whole.captions(1020, 3000) == [f"caption {row}" for row in range(1020, 3000)]
        assert whole.captions(4999, 6000) == ["caption 4999"] and named.captions(0, 2) == ["", ""]
        for collection in (whole, named, mixed):
            assert np.array_equal(collection.read(4000, 9999)[1], np.load(folder / "texts.npy")[4000:])
            assert collection.place(7) == ("images.npy", 7)


@pytest.mark.parametrize("url", ["memory://bucket", "slow://two"])
def test_chunks_have_the_very_bytes_of_local_ones(tmp_path, bucket, store, url):
    bucket(aligned(tmp_path / "two"))
    local, stored = open_embeddings(tmp_path / "two"), open_embeddings(url)
    score_collection(local, tmp_path / "a", **SCORING)
    score_collection(pickle.loads(pickle.dumps(stored)), tmp_path / "b", **SCORING)
    ours, theirs = files_of(tmp_path / "b"), files_of(tmp_path / "a")
    headers = json.loads(ours.pop("scoring.json")), json.loads(theirs.pop("scoring.json"))
    assert ours == theirs and len(ours) == 6
    assert [headers[0].pop("fingerprint"), headers[1].pop("fingerprint")] == [
        stored.fingerprint(), local.fingerprint(),
    ] and headers[0] == headers[1]  # fmt: skip


def test_a_changed_object_is_noticed(tmp_path, store, bucket):
    folder = clip_folder(tmp_path / "clip")
    before = open_embeddings("slow://clip").fingerprint()
    assert open_embeddings("slow://clip").fingerprint() == before
    os.utime(folder / "text_emb/text_emb_1.npy", (1, 1))  # the tag
    after = open_embeddings("slow://clip").fingerprint()
    (folder / "metadata/metadata_1.parquet").unlink()
    assert len({before, after, open_embeddings("slow://clip").fingerprint()}) == 3
    first = open_embeddings(bucket(folder)).fingerprint()
    fsspec.filesystem("memory").pipe("/bucket/img_emb/img_emb_0.npy", (folder / "img_emb/img_emb_0.npy").read_bytes())
    assert open_embeddings("memory://bucket").fingerprint() != first  # its time


def test_own_export_is_written_here(tmp_path, store, bucket, monkeypatch):
    rows = 600
    images, texts = random_pairs(rows, 8)
    for part, vectors in (("img_emb", images), ("text_emb", texts)):
        (tmp_path / "in" / part).mkdir(parents=True)
        for number, half in enumerate(np.split(vectors, 2)):
            np.save(tmp_path / "in" / part / f"{part}_{number}.npy", half)
    (tmp_path / "in/metadata").mkdir()
    for number in range(2):
        table = pa.table({"caption": [f"{number} {row}" for row in range(rows // 2)], "n": list(range(rows // 2))})
        pq.write_table(table, tmp_path / f"in/metadata/metadata_{number}.parquet", row_group_size=100)
    monkeypatch.chdir(tmp_path)
    results = {}
    for name, source in (("local", str(tmp_path / "in")), ("stored", "slow://in")):
        options = AuditOptions(bank=64, keep=0.0)
        result = audit(source, tmp_path / name, options=options, export=("own",), progress=False)
        assert (tmp_path / name / "export/own/img_emb/img_emb_0.npy").is_file()
        results[name] = result.verdict.p_match
    assert np.array_equal(results["local"], results["stored"])
    ours, theirs = (files_of(tmp_path / name / "export/own") for name in results)
    assert ours == theirs
    with pytest.raises(InputError, match="exists already"):
        export(result, tmp_path / "stored/export", ("own",))
    assert {path.name for path in tmp_path.iterdir()} == {"in", "local", "stored"}


def test_pictures_within_the_folder_only(tmp_path, store):
    folder = clip_folder(tmp_path / "clip")
    (folder / "pictures").mkdir()
    for path in (folder / "pictures/1-0.png", tmp_path / "outside.png"):
        Image.new("RGB", (300, 30), "red").save(path)
    (folder / "pictures/0-1.png").write_text("no picture")
    paths = ["../outside.png", str(tmp_path / "outside.png"), "slow://outside.png", "a\0b", "", "pictures", "none.png"]
    pq.write_table(pa.table({"image_path": paths, "caption": [""] * 7}), folder / "metadata/metadata_2.parquet")
    collection = open_embeddings("slow://clip")
    assert [row for row in range(13) if collection.picture(row) is not None] == [5]
    assert collection.picture(5).shape == (19, 192, 3)


# ---- requests ----


def test_a_scan_asks_little_and_only_for_rows(tmp_path, store):
    folder = aligned(tmp_path / "two", rows=70_000)
    collection = open_embeddings("slow://two")
    opened = [size for name, start, stop in store.asked if name.endswith(".npy") for size in [stop - start]]
    assert opened == [2**14, 2**14]  # headers
    store.asked.clear()
    for start in range(0, 65_536, 8192):
        collection.read(start, start + 8192)
    wait_for(lambda: len(store.asked) == 18)  # what would come next is under way
    of_images = sorted(asked[1:] for asked in store.asked if asked[0] == "two/images.npy")
    header = (folder / "images.npy").stat().st_size - 70_000 * 32
    steps = [header + 32 * row for row in [*range(0, 65_537, 8192), 70_000]]
    assert of_images == list(itertools.pairwise(steps))
    assert sorted({asked[0] for asked in store.asked}) == ["two/images.npy", "two/texts.npy"]


def test_what_follows_is_fetched_meanwhile(tmp_path, store):
    aligned(tmp_path / "two", rows=9000)
    collection, local = open_embeddings("slow://two"), open_embeddings(tmp_path / "two")
    store.asked.clear()
    rows = np.arange(50, 9000, 300)
    for piece, start, stop in collection.coming(row_ranges(rows)):
        if start == rows[0]:
            wait_for(lambda: len(store.asked) == 2 * 16)  # they come although nobody has read any
        images, _ = collection.read(start, stop)
        assert np.array_equal(images, local.read(*[rows[piece][0], rows[piece][0] + 1])[0], equal_nan=True)
    assert len(store.asked) == 2 * len(rows)
    ranges = list(row_ranges(np.array([3, 4, 500])))
    assert list(local.coming(ranges)) == ranges


def test_read_ahead_holds_no_more_than_it_may():
    fetched = []

    def fetch(name, start, stop):
        fetched.append((name, start, stop))
        return bytes(range(start, stop))

    ahead = ReadAhead(fetch, most_bytes=10)
    ahead.expect("a", 0, 11)  # too much
    ahead.expect("a", 0, 0)
    assert ahead._bytes == 0 and not ahead._coming
    for start in (0, 4, 8):
        ahead.expect("a", start, start + 4)
        ahead.expect("a", start, start + 4)
    assert ahead._bytes == 8 and list(ahead._coming) == [("a", 4, 8), ("a", 8, 12)]
    assert ahead.read("a", 4, 8) == bytes([4, 5, 6, 7]) and ahead._bytes == 4
    assert ahead.read("a", 8, 12) == bytes([8, 9, 10, 11]) and ahead._bytes == 0
    assert ahead.read("a", 0, 2) == b"\0\1"
    assert fetched.count(("a", 4, 8)) == 1


def test_memory_does_not_grow_with_the_objects(tmp_path, store):
    aligned(tmp_path / "two", rows=200_000, width=64)  # 25 and 50 MB
    collection = open_embeddings("slow://two")
    tracemalloc.start()
    for start in range(0, 200_000, 4096):
        collection.read(start, min(start + 4096, 200_000))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 12 * 2**20


# ---- when it fails ----


def test_a_failed_chunk_says_what_and_that_it_goes_on(tmp_path, store):
    aligned(tmp_path / "two")
    collection = open_embeddings("slow://two")
    store.fails = staticmethod(
        lambda name, start: ConnectionError("5 tries") if name == "two/texts.npy" and start > 64 * 900 else None
    )
    with pytest.raises(
        TruepairError, match=r"slow://two/texts.npy could not be read.*ConnectionError: 5 tries.*goes on"
    ):
        score_collection(collection, tmp_path / "out", **SCORING)
    store.fails = staticmethod(lambda name, start: None)
    score_collection(open_embeddings("slow://two"), tmp_path / "out", **SCORING)
    score_collection(open_embeddings(tmp_path / "two"), tmp_path / "local", **SCORING)
    ours, theirs = files_of(tmp_path / "out"), files_of(tmp_path / "local")
    assert all(ours[name] == theirs[name] for name in theirs if name != "scoring.json")


@pytest.mark.parametrize("part", ["img_emb", "metadata"])
def test_a_store_that_fails_leaves_no_shard_out(tmp_path, store, part):
    clip_folder(tmp_path / "clip")
    store.fails = staticmethod(lambda name, start: ConnectionError("down") if part in name else None)
    with pytest.raises(TruepairError, match=f"slow://clip/{part}/.* could not be read, its store fails") as caught:
        open_embeddings("slow://clip")
    assert not isinstance(caught.value, InputError)
    store.fails = staticmethod(lambda name, start: PermissionError("no") if f"{part}_1" in name else None)
    problems = open_embeddings("slow://clip").problems
    assert [p.entry.partition(".")[0] for p in problems] == [f"{part}_1"] and "access denied" in problems[0].detail


def test_objects_that_vanish_or_shrink_meanwhile(tmp_path, store):
    folder = clip_folder(tmp_path / "clip")
    collection = open_embeddings("slow://clip")
    cut = folder / "img_emb/img_emb_2.npy"
    cut.write_bytes(cut.read_bytes()[:-8])
    with pytest.raises(InputError, match=r"the rows 0 to 6 are not there any more.*changed meanwhile"):
        collection.read(6, 13)
    cut.unlink()
    with pytest.raises(InputError, match=r"img_emb_2.npy cannot be read any more \(no such object\)"):
        collection.read(6, 13)
    (folder / "metadata/metadata_2.parquet").unlink()
    with pytest.raises(InputError, match=r"metadata_2.parquet cannot be read any more"):
        collection.captions(6, 13)


def test_a_server_without_ranges(tmp_path, store):
    aligned(tmp_path / "two")
    store.whole = True
    with pytest.raises(InputError, match="does not give parts of files"):
        open_embeddings("slow://two")


# ---- what is refused ----


def test_which_names_are_urls(tmp_path):
    for text in ("s3://b/x", "gs://b", "memory://a/b", "file:///x", "simplecache::s3://b/x", Path("s3://b/x")):
        assert is_url(text), text
    for text in (
        "C:\\x",
        "C:/x",
        "C://x",
        "data",
        "scenes:500:7",
        "a/b:/c",
        "/s3://x",
        "s3:",
        Path("scenes:8"),
        "s3:/b",
    ):
        assert not is_url(text), text


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("nothing-such://b/x", "nothing-such:// is no kind of store that fsspec knows"),
        ("simplecache::s3://b/x", r"a chain of URLs \(simplecache::s3://\)"),
        ("https://me:SECRET@host/x", "password or a query"),
        ("sftp://me:SECRET@host/x", "password or a query"),
        ("https://host/x?token=SECRET", "password or a query"),
        ("https://host/images.npy?SECRET,https://host/texts.npy", "password or a query"),
        ("https://me:SECRET@host/images.npy,https://host/texts.npy", "password or a query"),
        ("memory://empty/x", "memory://empty/x holds no embeddings.*From a store only embeddings are read"),
        ("memory://empty/a.csv", "copy other inputs to this machine"),
        ("memory://empty/a-{0..3}.tar", "copy other inputs to this machine"),
        ("memory://empty/images.npy,memory://empty/texts.npy", "no embeddings can be used.*no such object"),
    ],
)
def test_urls_that_are_not_read(url, said):
    with pytest.raises(InputError, match=said) as caught:
        open_source(url)
    assert "SECRET" not in str(caught.value)


def test_a_driver_that_is_not_there(monkeypatch):
    monkeypatch.setitem(sys.modules, "s3fs", None)
    from fsspec.registry import _registry

    monkeypatch.delitem(_registry, "s3", raising=False)
    with pytest.raises(InputError, match=r"s3:// cannot be read here \(Install s3fs.*pip install s3fs"):
        open_source("s3://bucket/laion")


def test_options_that_do_not_go_with_urls(tmp_path, bucket):
    url = bucket(clip_folder(tmp_path / "clip"))
    with pytest.raises(InputError, match="has no split 'dev', nor any other; ask for a share"):
        open_source(url, split="dev")
    rest = {"options": AuditOptions(), "crossfit": CrossFitting()}
    for out in (Path("s3://b/out"), Path("file:///tmp/out")):
        with pytest.raises(InputError, match="--out is a URL; .*Give a folder of this machine"):
            check_request(url, out, run=None, **rest)
    with pytest.raises(InputError, match="--run is a URL"):
        check_request(url, tmp_path / "out", run=Path("s3://b/run"), **rest)
    with pytest.raises(InputError, match="--table is a URL"):
        check_request(str(tmp_path), tmp_path / "out", run=None, table="s3://b/t.csv", **rest)
    with pytest.raises(InputError, match="From a store only embeddings are read"):
        check_request("memory://empty", tmp_path / "out", run=None, **rest)
    with pytest.raises(InputError, match="as text, not as a Path"):
        check_request(Path("memory://bucket"), tmp_path / "out", run=None, **rest)
    check_request(url, tmp_path / "out", run=None, export=("own", "ids"), embeddings=True, **rest)
