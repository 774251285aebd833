"""Word vectors: GloVe files and the wheel's files, made small; what is broken is told."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

from truepair.cli.main import main
from truepair.data import word_vectors
from truepair.data.text import SPECIALS, Vocabulary
from truepair.data.word_vectors import read_word_vectors
from truepair.errors import InputError
from truepair.training import fit

WORDS = Vocabulary((*SPECIALS, "red", "green", "müll", "odd"))


def test_a_glove_file(tmp_path):
    path = tmp_path / "glove.txt"
    path.write_text("the 1 2 3\ngreen 4 5 -6e-1\n. . . 7 8 9\nmüll 1 1 1\ngreen 0 0 0\n<unk> 9 9 9\n", encoding="utf-8")
    read = read_word_vectors(str(path), WORDS)
    assert read.found.tolist() == [False] * 6 + [True, True, False]
    assert np.allclose(read.values[6:8], [[4, 5, -0.6], [1, 1, 1]]) and not read.values[:6].any()
    path.write_text("3 3\nred 1 2 3\n")
    assert read_word_vectors(str(path), WORDS).values.shape == (9, 3)


@pytest.mark.parametrize("header", ["", "6 2\n"])
def test_words_that_hold_spaces(tmp_path, header):
    """GloVe 840B has "at name@domain.com" and ". . ." beside its words."""
    path = tmp_path / "glove.txt"
    path.write_text(header + ", 1 2\nred name@domain.com 3 4\n. . . 5 6\nodd odd 7 8\ngreen 9 1\nred 2 3\n")
    read = read_word_vectors(str(path), WORDS)
    assert read.found.tolist() == [False] * 5 + [True, True, False, False]
    assert read.values[5:7].tolist() == [[2, 3], [9, 1]]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("red\n", "line 1: found"),
        ("3 2\nred 1 2 3\n", "line 2: found"),
        (", 1 2 3\nred 1 2\n", "line 2: found"),
        (", 1 2\nred name@domain.com 1 2\nodd 1 nothing\n", "line 3: found"),
        ("blue 1 2\n", "no vector for any of the 4 words"),
        ("red 1 2\ngreen 1 2 3\n", "line 2: found"),
        ("red 1 x\n", "line 1: found"),
        ("red 1 nan\n", "finite numbers"),
        ("", "no vector for any"),
    ],
)
def test_broken_files(tmp_path, text, said):
    (tmp_path / "glove.txt").write_text(text)
    with pytest.raises(InputError, match=said):
        read_word_vectors(str(tmp_path / "glove.txt"), WORDS)
    with pytest.raises(InputError, match="cannot be read"):
        read_word_vectors(str(tmp_path / "none.txt"), WORDS)


def test_the_wheel(tmp_path, monkeypatch):
    monkeypatch.setattr(word_vectors, "PACKAGE", "a_small_glove")
    with pytest.raises(InputError, match=r"pip install 'truepair\[glove\]'"):
        read_word_vectors("glove-6b-50d", WORDS)
    data = tmp_path / "a_small_glove" / "data"
    data.mkdir(parents=True)
    (data.parent / "__init__.py").write_text("raise AssertionError('it was run')")
    np.save(data / "glove_6B_50d_emb.npy", np.arange(6, dtype=np.float32).reshape(3, 2))
    pyarrow.parquet.write_table(pa.table({"index": ["the", "red", "odd"]}), data / "glove_6B_index.parquet")
    monkeypatch.syspath_prepend(tmp_path)
    read = read_word_vectors("glove-6b-50d", WORDS)
    assert read.values[[5, 8]].tolist() == [[2, 3], [4, 5]] and read.found.sum() == 2
    (data / "glove_6B_50d_emb.npy").write_bytes(b"no array")
    with pytest.raises(InputError, match="does not hold word vectors"):
        read_word_vectors("glove-6b-50d", WORDS)


def test_training_starts_from_them(tiny, tmp_path, monkeypatch, capsys):
    path, started = tmp_path / "glove.txt", []
    path.write_text("red 1 2 3 4\nround 5 6 7 8\n")
    start = fit.start_words

    def noted(engine, vectors):
        start(engine, vectors)
        started.append(engine.words.embed.weight.detach().clone())

    monkeypatch.setattr(fit, "start_words", noted)
    options = ["--method", "infonce", "--epochs", "1", "--width", "8", "--minimum-count", "1", "--quiet"]
    run = tmp_path / "run"
    command = ["train", str(tiny), "--word-vectors", str(path), *options]
    assert main([*command, "--word-width", "4", "--out", str(run)]) == 0
    vocabulary = Vocabulary.read(run / "vocabulary.json")
    (weight,) = started
    assert weight[vocabulary.index["red"]].tolist() == [1, 2, 3, 4]
    assert weight[vocabulary.index["round"]].tolist() == [5, 6, 7, 8]
    assert float(weight[vocabulary.index["blue"]].abs().max()) <= 0.1
    assert main([*command, "--out", str(tmp_path / "other")]) == 2
    assert "the word vectors have 4 numbers, the word embedding 300; add --word-width 4" in capsys.readouterr().err
    assert main([*command, "--model", "mlp", "--out", str(tmp_path / "mlp")]) == 2
