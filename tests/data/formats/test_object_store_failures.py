"""Object stores that fail in the middle, and what of them is refused."""

import sys
from pathlib import Path

import pytest

from tests.data.formats.stored import SCORING, aligned, files_of
from tests.data.formats.test_embedding_files import clip_folder
from truepair.audit.early_checks import check_request
from truepair.audit.options import AuditOptions, CrossFitting
from truepair.audit.scoring.by_embeddings import score_collection
from truepair.data.formats.embeddings.files import open_embeddings
from truepair.data.open import open as open_source
from truepair.data.storage.object_store import is_url
from truepair.errors import InputError, TruepairError

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
