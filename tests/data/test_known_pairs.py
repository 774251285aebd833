"""Pairs known to match: drawn among the matched ones, or listed in a file; what is refused."""

from dataclasses import replace

import numpy as np
import pytest

import truepair
from truepair.data.config import DataConfig
from truepair.data.given.known_pairs import with_known_pairs
from truepair.data.open import load_splits
from truepair.errors import InputError


def test_drawn_pairs_match_and_follow_the_seed(tiny):
    options = {"noise": 0.5, "clean_pairs": "20"}
    train = load_splits(DataConfig(str(tiny), **options), seed=1).train
    assert train.trusted.sum() == 20 and not train.mismatched[train.trusted].any()
    again, other = (load_splits(DataConfig(str(tiny), **options), seed=seed).train for seed in (1, 2))
    assert np.array_equal(again.trusted, train.trusted) and not np.array_equal(other.trusted, train.trusted)
    # They stay with their pairs, and are no part of the truth.
    rows = np.flatnonzero(train.trusted)
    assert train.take(rows).trusted.all() and np.array_equal(train.without_truth().trusted, train.trusted)
    assert load_splits(DataConfig(str(tiny), noise=0.5), seed=1).train.trusted is None


def test_listed_pairs_are_looked_up_by_id(tiny, tmp_path):
    pairs, file = truepair.load(tiny), tmp_path / "known.txt"
    file.write_text("3\n\n 17\n")
    assert np.flatnonzero(with_known_pairs(pairs, str(file), seed=0).trusted).tolist() == [3, 17]


@pytest.mark.parametrize(("mark", "space"), [("\ufeff", ""), ("", ""), ("", " "), ("\ufeff", " ")])
def test_a_mark_before_the_first_line_and_ids_with_spaces(tiny, tmp_path, mark, space):
    """A table whose fields stand behind ", " has ids that begin with a space; they may be listed without it."""
    pairs, file = truepair.load(tiny), tmp_path / "known.txt"
    named = replace(pairs, pair_ids=[f" {row}.png#0 " if row % 2 else f"{row}.png#0" for row in range(len(pairs))])
    file.write_text(f"{mark}{space}3.png#0\n4.png#0\n{space}7.png#0{space}\n", encoding="utf-8")
    assert np.flatnonzero(with_known_pairs(named, str(file), seed=0).trusted).tolist() == [3, 4, 7]


def test_what_cannot_be_known_is_refused(tiny, tmp_path):
    pairs, file = truepair.load(tiny), tmp_path / "known.txt"
    noisy = truepair.inject_noise(pairs, 0.5, seed=0)
    wrong = int(np.flatnonzero(noisy.mismatched)[0])
    for given, content, said in (
        (pairs, None, "which pairs match is unknown here"),
        (noisy, None, "expected 1 to"),
        (noisy, "0\nx\n", r"known.txt, line 2: 'x' is no training pair"),
        (noisy, f"{wrong}\n", f"line 1: pair {wrong} is mismatched by the noise"),
    ):
        if content is not None:
            file.write_text(content)
        with pytest.raises(InputError, match=said):
            with_known_pairs(given, "96" if content is None else str(file), seed=0)
    with pytest.raises(InputError, match="which cannot be read"):
        with_known_pairs(pairs, str(tmp_path / "none"), seed=0)


def test_a_run_keeps_where_the_list_lies():
    saved = DataConfig("x", clean_pairs="known.txt").saved()
    assert saved["clean_pairs"].endswith("/known.txt") and saved["clean_pairs"].startswith("/")
    assert DataConfig("x", clean_pairs="240").saved()["clean_pairs"] == "240"
    assert "clean_pairs" not in DataConfig("x").saved()
