import os
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image

from tests.data.formats.made_embeddings import COUNTS, Vectors, clip_folder, expected, vectors, write_parquet
from truepair.data.formats.embeddings import shards as embedding_shards
from truepair.data.formats.embeddings.files import EmbeddingFiles, is_embeddings, open_embeddings
from truepair.data.formats.embeddings.metadata import RowGroups
from truepair.errors import InputError


@pytest.mark.parametrize("digits", [1, 2, 4])
@pytest.mark.parametrize("dtype", ["<f2", "<f4", ">f4", "<f8", ">f2"])
def test_all_ranges_across_the_borders_of_shards(tmp_path: Path, dtype: str, digits: int) -> None:
    folder = clip_folder(tmp_path / "clip", digits=digits, dtype=dtype)
    assert is_embeddings(folder)
    collection = open_embeddings(folder)
    images, texts = expected(1, dtype), expected(2, dtype)
    captions = [f"caption {number} {row}" for number, rows in enumerate(COUNTS) for row in range(rows)]
    paths = [f"pictures/{number}-{row}.png" for number, rows in enumerate(COUNTS) for row in range(rows)]
    assert (len(collection), collection.width, collection.name, list(collection.problems)) == (13, 4, "clip", [])
    for start in range(14):
        for stop in range(start, 16):
            found = collection.read(start, stop)
            assert all(side.dtype == np.float32 and side.dtype.isnative for side in found)
            assert np.array_equal(found[0], images[start:stop])
            assert np.array_equal(found[1], texts[start:stop])
            assert found[0].shape == (max(0, min(stop, 13) - start), 4)
            assert collection.captions(start, stop) == captions[start:stop]
            assert collection.ids(start, stop) == collection.image_names(start, stop) == paths[start:stop]
    last = "2".zfill(digits)
    assert collection.place(0) == (f"img_emb/img_emb_{'0'.zfill(digits)}.npy", 0)
    assert collection.place(12) == (f"img_emb/img_emb_{last}.npy", 6)


def test_ten_comes_after_nine(tmp_path: Path) -> None:
    for number in range(11):
        for part in ("img_emb", "text_emb"):
            (tmp_path / part).mkdir(exist_ok=True)
            np.save(tmp_path / part / f"{part}_{number}.npy", np.full((1, 2), number, dtype=np.float32))
    collection = open_embeddings(tmp_path)
    assert collection.read(0, 11)[0][:, 0].tolist() == list(range(11))
    assert collection.ids(9, 11) == ["9:0", "10:0"]
    assert collection.captions(9, 11) == ["", ""]


def test_two_arrays_in_a_folder_and_by_name(tmp_path: Path) -> None:
    images, texts = vectors(2500).astype(np.float32), vectors(2500, seed=1).astype(np.float16)
    np.save(tmp_path / "images.npy", images)
    np.save(tmp_path / "texts.npy", texts)
    lines = [f"words {row}" for row in range(2500)]
    (tmp_path / "captions.txt").write_bytes("\ufeff".encode() + "\r\n".join(lines).encode())
    named = f"{tmp_path / 'images.npy'}, {tmp_path / 'texts.npy'}"
    assert is_embeddings(tmp_path) and is_embeddings(named) and not is_embeddings(tmp_path / "images.npy")
    collection, by_name = open_embeddings(tmp_path), open_embeddings(named)
    for start, stop in [(0, 2500), (1023, 1026), (2047, 2049), (2499, 2600), (7, 7), (3000, 3001)]:
        assert collection.captions(start, stop) == lines[start:stop]
        assert collection.ids(start, stop) == [str(row) for row in range(start, min(stop, 2500))]
        for opened in (collection, by_name):
            assert np.array_equal(opened.read(start, stop)[0], images[start:stop])
            assert np.array_equal(opened.read(start, stop)[1], texts[start:stop].astype(np.float32))
    assert by_name.captions(3, 5) == ["", ""]
    assert by_name.name == "images.npy,texts.npy"
    assert by_name.place(3) == ("images.npy", 3)


def test_metadata_of_two_arrays(tmp_path: Path) -> None:
    for name in ("images.npy", "texts.npy"):
        np.save(tmp_path / name, vectors(4).astype(np.float32))
    keys = pa.array([7, 8, 9, 10])
    texts = pa.array(["a", None, "b", "é"]).dictionary_encode()
    write_parquet(tmp_path / "pairs.parquet", {"text": texts, "id": keys, "image_path": ["x", "x", "y", "z"]})
    collection = open_embeddings(tmp_path)
    assert collection.captions(0, 4) == ["a", "", "b", "é"]
    assert collection.ids(0, 4) == ["7", "8", "9", "10"]
    assert collection.image_names(0, 4) == ["x", "x", "y", "z"]


def test_names_that_come_twice_carry_their_shard(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = clip_folder(tmp_path)
    for number, rows in enumerate(COUNTS):
        keys = [f"k{row}" for row in range(rows)]
        write_parquet(folder / f"metadata/metadata_{number}.parquet", {"key": keys, "caption": keys})
    assert open_embeddings(folder).ids(4, 7) == ["0:k4", "1:k0", "2:k0"]
    names = ["k2", "k2", "k3", "k4", "k5", "k6", "k7"]
    write_parquet(folder / "metadata/metadata_2.parquet", {"key": names, "caption": names})
    assert open_embeddings(folder).ids(4, 8) == ["0:k4", "1:k0", "2:0", "2:1"]
    collection = open_embeddings(clip_folder(tmp_path / "other"))
    assert collection.ids(5, 6) == ["pictures/1-0.png"]
    monkeypatch.setattr(embedding_shards, "MOST_COMPARED", 12)
    assert open_embeddings(tmp_path / "other").ids(5, 6) == ["1:pictures/1-0.png"]


def test_a_key_that_looks_like_a_row_of_another_shard(tmp_path: Path) -> None:
    folder = clip_folder(tmp_path)
    (folder / "metadata/metadata_2.parquet").unlink()
    write_parquet(folder / "metadata/metadata_1.parquet", {"key": ["2:3"], "caption": [""]})
    ids = open_embeddings(folder).ids(0, 13)
    assert len(set(ids)) == 13


def broken(collection: EmbeddingFiles) -> dict[str, tuple[str, bool]]:
    return {problem.file: (problem.reason, problem.used) for problem in collection.problems}


def test_a_bad_shard_is_left_out(tmp_path: Path) -> None:
    cases: dict[str, tuple[str, Any]] = {
        "broken-array": ("img_emb/img_emb_1.npy", b"no array at all"),
        "different-length": ("img_emb/img_emb_1.npy", vectors(2)),
        "different-width": ("img_emb/img_emb_1.npy", vectors(1, 3)),
    }
    for reason, (file, content) in cases.items():
        folder = clip_folder(tmp_path / reason)
        if isinstance(content, bytes):
            (folder / file).write_bytes(content)
        else:
            np.save(folder / file, content)
        collection = open_embeddings(folder)
        assert broken(collection) == {file: (reason, False)}
        assert len(collection) == 12
        assert np.array_equal(collection.read(3, 7)[1], np.delete(expected(2), 5, axis=0)[3:7])
        assert collection.ids(4, 6) == ["pictures/0-4.png", "pictures/2-0.png"]
        assert collection.place(5) == ("img_emb/img_emb_2.npy", 0)


@pytest.mark.parametrize("part", ["img_emb", "text_emb"])
def test_a_missing_file_and_a_file_cut_short(tmp_path: Path, part: str) -> None:
    folder = clip_folder(tmp_path)
    other = {"img_emb": "text_emb", "text_emb": "img_emb"}[part]
    (folder / part / f"{part}_0.npy").unlink()
    cut = folder / part / f"{part}_2.npy"
    cut.write_bytes(cut.read_bytes()[:-1])
    collection = open_embeddings(folder)
    assert broken(collection) == {
        f"{other}/{other}_0.npy": ("missing-file", False),
        f"{part}/{part}_2.npy": ("broken-array", False),
    }
    assert "cut short" in collection.problems[1].detail and "hold 6" in collection.problems[1].detail
    assert len(collection) == 1


def test_a_shard_of_another_model(tmp_path: Path) -> None:
    folder = clip_folder(tmp_path)
    for part in ("img_emb", "text_emb"):
        np.save(folder / part / f"{part}_0.npy", vectors(5, 6))
    collection = open_embeddings(folder)
    assert broken(collection) == {"img_emb/img_emb_0.npy": ("different-width", False)}
    assert (len(collection), collection.width) == (8, 4)


def test_metadata_that_cannot_be_used(tmp_path: Path) -> None:
    folder = clip_folder(tmp_path)
    (folder / "metadata/metadata_0.parquet").write_bytes(b"PAR1 nothing PAR1")
    write_parquet(folder / "metadata/metadata_1.parquet", {"url": ["u"]})
    write_parquet(folder / "metadata/metadata_2.parquet", {"caption": ["a"] * 6})
    collection = open_embeddings(folder)
    assert len(collection) == 13
    assert broken(collection) == {
        "metadata/metadata_0.parquet": ("broken-metadata", True),
        "metadata/metadata_1.parquet": ("no-captions", True),
        "metadata/metadata_2.parquet": ("different-length", True),
    }
    assert "url" in collection.problems[1].detail
    assert collection.captions(0, 13) == [""] * 13
    assert collection.ids(4, 7) == ["0:4", "1:0", "2:0"]


def test_damage_within_a_parquet_file_is_seen_when_it_is_opened(tmp_path: Path) -> None:
    folder = clip_folder(tmp_path)
    path = folder / "metadata/metadata_2.parquet"
    table = pa.table({"caption": [f"caption {row} " * 50 for row in range(7)]})
    pq.write_table(table, path, compression="gzip")
    data = bytearray(path.read_bytes())
    data[40:60] = bytes(255 - byte for byte in data[40:60])
    path.write_bytes(data)
    collection = open_embeddings(folder)
    assert broken(collection) == {"metadata/metadata_2.parquet": ("broken-metadata", True)}
    assert collection.captions(6, 7) == [""]


def test_lines_that_are_not_utf8(tmp_path: Path) -> None:
    for name in ("images.npy", "texts.npy"):
        np.save(tmp_path / name, vectors(3).astype(np.float32))
    (tmp_path / "captions.txt").write_bytes("ein\ngrün\nété\n".encode("latin-1"))
    collection = open_embeddings(tmp_path)
    assert collection.captions(0, 3) == ["ein", "grün", "été"]
    assert [(problem.reason, problem.row, problem.used) for problem in collection.problems] == [("encoding", 1, True)]
    assert "2 lines" in collection.problems[0].detail


def test_text_in_parquet_that_is_not_utf8(tmp_path: Path) -> None:
    for name in ("images.npy", "texts.npy"):
        np.save(tmp_path / name, vectors(2).astype(np.float32))
    write_parquet(tmp_path / "metadata.parquet", {"caption": pa.array([b"gr\xfcn", b"rot"], type=pa.binary())})
    assert open_embeddings(tmp_path).captions(0, 2) == ["gr\ufffdn", "rot"]


@pytest.mark.parametrize(
    ("images", "said"),
    [
        (np.zeros((3, 4), dtype=np.int64), "holds int64"),
        (np.zeros((3, 4, 2), dtype=np.float32), r"shape \(3, 4, 2\).* vectors\.mean\(axis=1\).* precomp folder"),
        (np.zeros(12, dtype=np.float32), r"shape \(12,\).* vectors\.reshape\(-1, width\)"),
        (np.zeros((0, 4), dtype=np.float32), r"shape \(0, 4\).* look at what wrote the file"),
        (np.asfortranarray(vectors(3)), "column by column"),
        (np.array([["a"], ["b"], ["c"]], dtype=object), "holds object"),
        (vectors(5), "5 rows, texts.npy has 3"),
        (vectors(3, 7), "7 numbers a row, texts.npy has 4"),
    ],
)
def test_nothing_usable(tmp_path: Path, images: Vectors, said: str) -> None:
    np.save(tmp_path / "images.npy", images)
    np.save(tmp_path / "texts.npy", vectors(3))
    with pytest.raises(InputError, match=f"images.npy.*{said}"):
        open_embeddings(tmp_path)


def test_what_is_no_source_of_embeddings(tmp_path: Path) -> None:
    assert not is_embeddings(tmp_path) and not is_embeddings(tmp_path / "none")
    with pytest.raises(InputError, match="holds no embeddings"):
        open_embeddings(tmp_path)
    with pytest.raises(InputError, match="a.npy.*cannot be read"):
        open_embeddings(f"{tmp_path}/a.npy,{tmp_path}/b.npy")
    (tmp_path / "img_emb").mkdir()
    assert is_embeddings(tmp_path)
    with pytest.raises(InputError, match="no files of vectors"):
        open_embeddings(tmp_path)


def test_rows_that_vanish_meanwhile(tmp_path: Path) -> None:
    collection = open_embeddings(clip_folder(tmp_path))
    path = tmp_path / "img_emb/img_emb_2.npy"
    path.write_bytes(path.read_bytes()[:-8])
    with pytest.raises(InputError, match="changed meanwhile"):
        collection.read(6, 13)
    assert len(collection.read(6, 12)[0]) == 6


def test_fingerprint_and_copies_in_other_processes(tmp_path: Path) -> None:
    collection = open_embeddings(clip_folder(tmp_path))
    before, size = collection.fingerprint(), len(pickle.dumps(collection))
    assert collection.captions(0, 13)
    assert len(pickle.dumps(collection)) == size
    copy = pickle.loads(pickle.dumps(collection))
    assert copy.captions(4, 6) == collection.captions(4, 6)
    assert copy.fingerprint() == before == open_embeddings(tmp_path).fingerprint()
    path = tmp_path / "text_emb/text_emb_1.npy"
    os.utime(path, (1, 1))
    after = open_embeddings(tmp_path).fingerprint()
    np.save(path, np.zeros((1, 4), dtype=np.float32))
    os.utime(path, (1, 1))
    assert len({before, after, open_embeddings(tmp_path).fingerprint()}) == 3


def test_pictures_inside_the_folder_only(tmp_path: Path) -> None:
    folder = clip_folder(tmp_path / "clip")
    (folder / "pictures").mkdir()
    for path in (folder / "pictures/1-0.png", tmp_path / "outside.png"):
        Image.new("RGB", (300, 30), "red").save(path)
    (folder / "pictures/0-1.png").write_text("no picture")
    paths = ["../outside.png", str(tmp_path / "outside.png"), str(folder / "pictures/1-0.png"), "a\0b", "x" * 9000]
    write_parquet(folder / "metadata/metadata_2.parquet", {"image_path": [*paths, "", "pictures"], "caption": [""] * 7})
    collection = open_embeddings(folder)
    shown = collection.picture(5)
    assert shown is not None and shown.shape == (19, 192, 3)
    seen = [row for row in range(13) if collection.picture(row) is not None]
    assert seen == [5, 8]


def test_row_groups_are_kept_up_to_a_number_of_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.parquet"
    write_parquet(path, {"caption": ["x" * 1000] * 12})
    cache = RowGroups(most_bytes=7000)
    for group in (0, 1, 0, 2):
        cache.get(path, group, "caption")
    assert [key[1] for key in cache.kept] == [0, 2]
    assert len(RowGroups(most_bytes=1).get(path, 3, "caption")) == 3
    monkeypatch.setattr(embedding_shards, "RowGroups", lambda: RowGroups(most_bytes=1))
    collection = open_embeddings(clip_folder(tmp_path / "clip"))
    assert [collection.captions(row, row + 1)[0][8:] for row in (12, 0, 6, 5)] == ["2 6", "0 0", "2 0", "1 0"]


def test_values_that_float32_cannot_hold(tmp_path: Path) -> None:
    np.save(tmp_path / "images.npy", np.array([[1e300, np.nan]]))
    np.save(tmp_path / "texts.npy", np.array([[1.0, 2.0]]))
    images, _ = open_embeddings(tmp_path).read(0, 1)
    assert np.isinf(images[0, 0]) and np.isnan(images[0, 1])


def test_threads_share_the_row_groups_that_were_read(tmp_path: Path) -> None:
    """A cache that holds one column at a time, asked by eight threads: each gets its own rows."""
    from concurrent.futures import ThreadPoolExecutor

    folder = clip_folder(tmp_path / "clip")
    collection = open_embeddings(folder)
    for shard in collection.shards:
        assert shard.metadata is not None
        shard.metadata.cache.most_bytes = 1  # type: ignore[attr-defined]
    expected_names = collection.image_names(0, 13)

    def ask(row: int) -> tuple[str, str]:
        return collection.image_names(row % 13, row % 13 + 1)[0], collection.captions(row % 13, row % 13 + 1)[0]

    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(ask, range(3000)))
    assert [name for name, _ in found] == [expected_names[row % 13] for row in range(3000)]
    assert pickle.loads(pickle.dumps(collection)).captions(0, 13) == collection.captions(0, 13)
