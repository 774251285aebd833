"""Embeddings in an object store: the numbers of local files, few requests, and what is said when a store fails."""

import itertools
import json
import os
import pickle
import tracemalloc

import fsspec
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image

from tests.audit.array_collection import random_pairs
from tests.data.formats.stored import SCORING, aligned, files_of, wait_for
from tests.data.formats.test_embedding_files import clip_folder
from truepair.audit.audit import audit
from truepair.audit.export import export
from truepair.audit.options import AuditOptions
from truepair.audit.scoring.by_embeddings import score_collection
from truepair.audit.scoring.row_ranges import row_ranges
from truepair.data.formats.embeddings.files import is_embeddings, open_embeddings
from truepair.data.open import open as open_source
from truepair.data.storage.object_store import ReadAhead
from truepair.errors import InputError

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
