"""Scores of the pairs by another model: found by id or by row, and those of other pairs are refused."""

from dataclasses import replace

import numpy as np
import pyarrow
import pytest
from pyarrow import csv, parquet

import truepair
from truepair.data.config import DataConfig
from truepair.data.given.pair_scores import with_pair_scores
from truepair.data.open import load_splits
from truepair.errors import InputError


@pytest.fixture
def pairs(tiny):
    return truepair.load(tiny)


def columns(pairs, **more):
    count = len(pairs)
    return {"pair_id": pairs.ids(), "p_match": np.linspace(0, 1, count, dtype=np.float32), **more}


def written(tmp_path, columns, name="pairs.parquet"):
    table = pyarrow.table(columns)
    (csv.write_csv if name.endswith(".csv") else parquet.write_table)(table, tmp_path / name)
    return tmp_path / name


@pytest.mark.parametrize("name", ["pairs.parquet", "pairs.csv"])
def test_scores_are_found_by_id_whatever_their_order(pairs, tmp_path, name):
    found = columns(pairs)
    order = np.random.default_rng(0).permutation(len(pairs))
    shuffled = {key: [values[row] for row in order] for key, values in found.items()}
    some = pairs.take(np.array([5, 2, 9]))
    scored = with_pair_scores(some, written(tmp_path, shuffled, name))
    assert scored.scores.dtype == np.float32
    assert scored.scores.tolist() == pytest.approx([float(found["p_match"][row]) for row in (5, 2, 9)])
    assert with_pair_scores(pairs, tmp_path / name).take(np.array([5, 2, 9])).scores.tolist() == scored.scores.tolist()


def test_ids_of_a_csv_are_words(pairs, tmp_path):
    """As img2dataset's keys: 000000007 is no number, NA is no missing value."""
    named = replace(pairs.take(np.arange(3)), pair_ids=("000000007", "NA", "1e3"))
    (tmp_path / "s.csv").write_text(
        "pair_id,caption,p_match\n"
        + "".join(
            f"{name},{caption},{score}\n"
            for name, caption, score in zip(named.ids(), named.captions(), (0.5, 0.1, 0.9), strict=True)
        )
    )
    assert with_pair_scores(named, tmp_path / "s.csv").scores.tolist() == pytest.approx([0.5, 0.1, 0.9])


def test_another_column_and_an_array_by_row(pairs, tmp_path):
    similarity = np.linspace(-1, 1, len(pairs), dtype=np.float32)
    table = written(tmp_path, columns(pairs, similarity=similarity))
    assert with_pair_scores(pairs, table, "similarity").scores.tolist() == similarity.tolist()
    np.save(tmp_path / "rows.npy", similarity.astype(np.float64))
    some = pairs.take(np.array([7, 0]))
    assert with_pair_scores(some, tmp_path / "rows.npy").scores.tolist() == similarity[[7, 0]].tolist()


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"p_match": None}, "no column 'p_match'; it has pair_id"),
        ({"pair_id": None}, "no column 'pair_id'"),
        ({"p_match": "x"}, "holds string; expected numbers"),
        ({"pair_id": "0"}, "pair 0 stands there twice"),
        ({"caption": "other words"}, "pair 0 has another caption there ('other words')"),
        ({"p_match": float("nan")}, "the score of pair 0 is no finite number"),
    ],
)
def test_what_is_wrong_with_a_table_is_said(pairs, tmp_path, change, said):
    found = columns(pairs)
    for name, value in change.items():
        found[name] = [value] * len(pairs)
        if value is None:
            del found[name]
    with pytest.raises(InputError, match=said.replace("(", r"\(").replace(")", r"\)")):
        with_pair_scores(pairs, written(tmp_path, found))


def test_a_pair_without_a_score_is_named(pairs, tmp_path):
    found = {name: values[:-1] for name, values in columns(pairs).items()}
    with pytest.raises(InputError, match=f"no score for pair {pairs.ids()[-1]} of tiny/train"):
        with_pair_scores(pairs, written(tmp_path, found))


def test_files_that_cannot_be_read(pairs, tmp_path):
    for name in ("none.parquet", "none.csv", "none.npy", "scores.txt"):
        with pytest.raises(InputError, match=name):
            with_pair_scores(pairs, tmp_path / name)
    np.save(tmp_path / "few.npy", np.zeros(3))
    with pytest.raises(InputError, match=r"few.npy holds float64 of shape \(3,\); expected one number for each row"):
        with_pair_scores(pairs, tmp_path / "few.npy")
    with pytest.raises(InputError, match="an array without columns"):
        with_pair_scores(pairs, tmp_path / "few.npy", "p_match")


def test_scores_of_before_the_noise_are_those_of_other_pairs(pairs, tmp_path):
    image = [pairs.images.ids[row] for row in pairs.image_index]
    table = written(tmp_path, columns(pairs, image=[str(name) for name in image]))
    assert with_pair_scores(pairs, table).scores is not None
    with pytest.raises(InputError, match="has another image there"):
        with_pair_scores(truepair.inject_noise(pairs, 0.5, seed=0), table)


def test_of_noisy_pairs_scores_have_to_say_what_they_scored(pairs, tmp_path):
    """By row or by id alone they may be those of before the noise, which nobody would see."""
    noisy = truepair.inject_noise(pairs, 0.5, seed=0)
    np.save(tmp_path / "rows.npy", np.ones(len(pairs)))
    with pytest.raises(InputError, match="mismatched by noise, and an array does not say"):
        with_pair_scores(noisy, tmp_path / "rows.npy")
    with pytest.raises(InputError, match="mismatched by noise, and it has no column 'image'"):
        with_pair_scores(noisy, written(tmp_path, columns(noisy)))
    image = [str(noisy.images.ids[row]) for row in noisy.image_index]
    assert with_pair_scores(noisy, written(tmp_path, columns(noisy, image=image))).scores is not None


def test_as_options_of_the_data(tiny, pairs, tmp_path):
    table = written(tmp_path, columns(pairs))
    config = DataConfig(str(tiny), pair_scores=str(table), train_pairs=9)
    assert load_splits(config, seed=0).train.scores.tolist() == pytest.approx(columns(pairs)["p_match"][:9].tolist())
    assert replace(config, pair_scores="x.npy").saved()["pair_scores"].startswith("/")
    assert not {"pair_scores", "score_column"} & DataConfig("x").saved().keys()
