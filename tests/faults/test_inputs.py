"""Inputs that would take all memory or time, or from which nothing can be learned."""

import json
import os
import threading
import time
import warnings
from dataclasses import replace

import numpy as np
import pytest
from pyarrow import parquet

import truepair
from tests.faults.damage import OPTIONS, train
from truepair.cli.main import main, one_line
from truepair.data.statistics import nothing_to_learn
from truepair.data.text import MOST_WORDS, Vocabulary
from truepair.encoders.decode import Budget, read_picture
from truepair.training.held_out import copies_in_training

BIG = 3000  # pixels a side


def test_a_budget_is_never_overdrawn():
    budget, now, most, lock = Budget(10), [0], [0], threading.Lock()

    def work(amount):
        with budget.taken(amount):
            with lock:
                now[0] += amount
                most[0] = max(most[0], now[0])
            time.sleep(0.002)
            with lock:
                now[0] -= amount

    threads = [threading.Thread(target=work, args=(amount,)) for amount in (1, 10, 3, 7, 4, 6, 9, 2) * 4]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10)
        assert not thread.is_alive()
    assert now == [0] and 1 < most[0] <= 10


def test_large_pictures_wait_for_each_other(tmp_path, monkeypatch):
    """Six threads, each with a picture that takes the whole budget: never two are decoded at once."""
    from PIL import Image

    from truepair.encoders import decode

    Image.new("RGB", (BIG, BIG), "red").save(tmp_path / "a.png")
    monkeypatch.setattr(decode, "_AT_ONCE", Budget(BIG * BIG))
    shrunk, inside, most = decode._shrunk, [0], [0]

    def counting(*arguments, **options):
        inside[0] += 1
        most[0] = max(most[0], inside[0])
        try:
            return shrunk(*arguments, **options)
        finally:
            inside[0] -= 1

    monkeypatch.setattr(decode, "_shrunk", counting)
    threads = [threading.Thread(target=read_picture, args=(tmp_path / "a.png",)) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert most == [1]


@pytest.fixture
def precomp(tmp_path):
    """Writes a small precomp folder."""

    def write(features, captions, split="train"):
        np.save(tmp_path / f"{split}_ims.npy", features)
        (tmp_path / f"{split}_caps.txt").write_text("\n".join(captions) + "\n")
        return tmp_path

    return write


def test_a_caption_of_a_whole_book_is_refused_and_described(precomp, refused, capsys):
    captions = ["a red cat", "a blue dog", "word " * 200_000, "a green bird"] * 4
    folder = precomp(np.random.default_rng(0).normal(size=(16, 3, 4)).astype(np.float32), captions)
    told = refused("train", folder, "--out", folder / "run", *OPTIONS)
    assert "train_caps.txt, line 3: the caption has 999,999 characters; expected at most 10,000" in told
    assert main(["describe", str(folder)]) == 0
    assert "999,999 characters" in capsys.readouterr().out


def test_a_model_reads_so_many_words_of_a_caption():
    vocabulary = Vocabulary.build(["cat"], minimum_count=1)
    assert len(vocabulary.encode("cat " * 5000)) == MOST_WORDS + 2
    assert len(vocabulary.encode("cat " * MOST_WORDS)) == MOST_WORDS + 2
    assert len(vocabulary.encode("cat cat")) == 4


def test_an_audit_tells_of_captions_that_are_not_read_to_the_end(tmp_path):
    from truepair.data.caption_checks import caption_problems
    from truepair.data.collection import PairsCollection

    captions = ("a red cat", "cat " * (MOST_WORDS + 1), "cat " * MOST_WORDS)
    pairs = truepair.Pairs(
        truepair.Images(np.ones((3, 1, 2), dtype=np.float32), ("a", "b", "c")),
        truepair.Texts(captions, ("a", "b", "c")),
        np.arange(3),
        np.arange(3),
    )
    found = caption_problems(PairsCollection(pairs))
    assert [(problem.row, problem.reason, problem.used) for problem in found] == [(1, "long-caption", True)]


def test_a_parquet_table_of_very_many_rows(tmp_path, refused, monkeypatch):
    import pyarrow

    from truepair.data.formats.tables import parquet_table

    monkeypatch.setattr(parquet_table, "MOST_ROWS", 100_000)
    rows = pyarrow.table({"image": ["a.jpg"] * 100_001, "caption": ["a cat"] * 100_001})
    parquet.write_table(rows, tmp_path / "pairs.parquet")
    assert (tmp_path / "pairs.parquet").stat().st_size < 3000
    assert "pairs.parquet has 100,001 rows" in refused("audit", tmp_path, "--out", tmp_path / "audit")


def test_a_compressed_array_of_labels_that_is_far_too_large(tmp_path, refused):
    h5py = pytest.importorskip("h5py")
    path = tmp_path / "features.h5"
    with h5py.File(path, "w") as file:
        for split in ("train", "test"):
            for side in ("images", "texts"):
                file[f"{split}_{side}"] = np.random.default_rng(0).normal(size=(8, 4)).astype(np.float32)
            file.create_dataset(f"{split}_labels", shape=(2**34,), dtype="i8", chunks=(2**20,), compression="gzip")
    assert path.stat().st_size < 10_000
    assert "expected one label for each pair" in refused("describe", path)


def test_an_array_that_no_memory_can_hold(tmp_path, refused):
    h5py = pytest.importorskip("h5py")
    path = tmp_path / "features.h5"
    with h5py.File(path, "w") as file:
        for split in ("train", "test"):
            for side in ("images", "texts"):
                shape = (8, 2**40)
                file.create_dataset(f"{split}_{side}", shape=shape, dtype="f4", chunks=(1, 2**20), compression="gzip")
            file[f"{split}_labels"] = np.arange(8) % 2
    assert "GB of memory" in refused("describe", path)


@pytest.mark.parametrize(
    "name", ["pipe", "pairs.csv", "pairs.jsonl", "pairs.parquet", "pairs.json", "data.h5", "a.tar"]
)
def test_a_named_pipe_is_not_waited_for(tmp_path, refused, name):
    os.mkfifo(tmp_path / name)
    for command in (["describe"], ["audit", "--out", tmp_path / "audit"], ["train", "--out", tmp_path / "run"]):
        assert str(tmp_path) in refused(*command, tmp_path / name)


def test_a_named_pipe_among_the_files(tmp_path, refused):
    (tmp_path / "pairs.csv").write_text("image,caption\na.png,a cat\n")
    os.mkfifo(tmp_path / "a.png")
    assert "pipe" in refused("audit", tmp_path, "--out", tmp_path / "audit")
    os.mkfifo(tmp_path / "words.json")
    told = refused("train", "scenes:50", "--vocabulary", tmp_path / "words.json", "--out", tmp_path / "run")
    assert "words.json cannot be read (It is a pipe, a socket or a device, not a file)" in told


def test_a_named_pipe_beside_embeddings(tmp_path):
    vectors = np.random.default_rng(0).normal(size=(20, 4)).astype(np.float32)
    for side in ("img_emb", "text_emb"):
        (tmp_path / side).mkdir()
        np.save(tmp_path / side / f"{side}_0.npy", vectors)
    (tmp_path / "metadata").mkdir()
    os.mkfifo(tmp_path / "metadata" / "metadata_0.parquet")
    assert main(["audit", str(tmp_path), "--out", str(tmp_path / "audit"), "--bank", "4"]) == 0
    problems = parquet.read_table(tmp_path / "audit" / "problems.parquet").to_pylist()
    assert any("metadata_0.parquet" in problem["file"] and "pipe" in problem["detail"] for problem in problems)


def test_features_of_width_0_are_described(precomp, capsys):
    folder = precomp(np.empty((64, 36, 0), dtype=np.float32), ["a cat"] * 64)
    assert main(["describe", str(folder)]) == 0
    assert "its shape is (64, 36, 0)" in capsys.readouterr().out


DIFFERENT = np.random.default_rng(0).normal(size=(16, 3, 4)).astype(np.float32)
CAPTIONS = [f"the word {k % 4} and {k % 3}" for k in range(16)]


@pytest.mark.parametrize(
    ("features", "captions", "told"),
    [
        (DIFFERENT, ["a cat"] * 16, "all captions have the same words ('a cat')"),
        (np.ones((16, 3, 4), dtype=np.float32), CAPTIONS, "all images are described by the same numbers"),
        (np.zeros((16, 3, 4), dtype=np.float32), CAPTIONS, "all images are described by zeros"),
        (DIFFERENT[:, :1, :1], CAPTIONS, "all images are described by a single number"),
    ],
)
def test_where_nothing_can_be_learned_it_is_said(precomp, features, captions, told):
    folder = precomp(features, captions)
    with pytest.warns(UserWarning, match="nothing can be learned") as given:
        assert train(folder, folder / "run") == 0
    assert told in str(given[0].message)
    assert one_line(given[0].message, UserWarning, "", 0).startswith(f"truepair: warning: {folder.name}/train: all ")
    (warning,) = json.loads((folder / "run" / "result.json").read_text())["warnings"]
    assert told in warning


def test_usual_pairs_are_no_cause_for_words(tiny, trained):
    assert nothing_to_learn(truepair.load(tiny)) == []
    assert "warnings" not in json.loads((trained / "result.json").read_text())


def test_pictures_that_are_trained_on_and_scored_on_are_told(tiny, tmp_path):
    """From one in a hundred on: products share a photograph now and then."""
    train, dev = truepair.load(tiny), truepair.load(tiny, "dev")
    features = np.array(dev.images.features)
    features[3] = train.images.features[5]
    copied = replace(dev, images=replace(dev.images, features=features))
    with pytest.warns(UserWarning, match="1 of 16 images of the split 'dev' have the features of images that are"):
        run = truepair.fit(train, dev=copied, out=tmp_path / "run", epochs=1, minimum_count=1, progress=False)
    (warning,) = run.result["warnings"]
    assert repr(dev.images.ids[3]) in warning and "keep copies of a picture in one split" in warning
    assert copies_in_training(train, {"dev": dev, "test": None}) == []
    many = replace(dev.images, features=np.concatenate([features, *[features[6:] + 1 + k for k in range(9)]]))
    few = replace(copied, images=replace(many, ids=tuple(f"i{k}" for k in range(len(many.features)))))
    assert len(few.images) > 100 and copies_in_training(train, {"dev": few}) == []


def test_python_is_warned_too(precomp):
    pairs = truepair.load(precomp(DIFFERENT, ["a cat"] * 16))
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        truepair.fit(pairs, epochs=1, minimum_count=1, progress=False)
    assert any("same words" in str(one.message) for one in found)
