"""Retrieval figures against plain loops, and the k-fold protocol against one evaluation per fold."""

from __future__ import annotations

import statistics
import warnings
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from truepair.errors import InputError
from truepair.evaluation import Fold, fold_recall, folds_of, mean_over_folds, recall, recall_from_ranks


def problem(seed: int, images: int = 20, texts: int = 60) -> tuple[np.ndarray, np.ndarray]:
    """Every image has a text or more, in mixed order."""
    draw = np.random.default_rng(seed)
    image_of_text = np.concatenate([np.arange(images), draw.integers(0, images, texts - images)])
    draw.shuffle(image_of_text)
    similarity = draw.integers(0, 40, (images, texts)).astype(np.float32)
    similarity[image_of_text, np.arange(texts)] += 15
    return similarity, image_of_text


def naive_recall(
    similarity: np.ndarray, image_of_text: np.ndarray, ks: tuple[int, ...] = (1, 5, 10)
) -> dict[str, float]:
    images, texts = similarity.shape
    image_places, text_places = [], []
    for i in range(images):
        own = [j for j in range(texts) if image_of_text[j] == i]
        if own:
            best = max(similarity[i, j] for j in own)
            image_places.append(1 + sum(similarity[i, j] >= best for j in range(texts) if j not in own))
    for j in range(texts):
        right = image_of_text[j]
        text_places.append(1 + sum(similarity[i, j] >= similarity[right, j] for i in range(images) if i != right))
    figures: dict[str, float] = {}
    for name, places in (("i2t", image_places), ("t2i", text_places)):
        for k in ks:
            figures[f"{name}_r{k}"] = 100 * sum(place <= k for place in places) / len(places)
    figures["rsum"] = sum(figures.values())
    for name, places in (("i2t", image_places), ("t2i", text_places)):
        figures[f"{name}_median_rank"] = float(int(statistics.median(places)))
        figures[f"{name}_mean_rank"] = sum(places) / len(places)
    return figures


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("ks", [(1, 5, 10), (3,), (2, 1)])
def test_recall_follows_the_definition(seed: int, ks: tuple[int, ...]) -> None:
    similarity, image_of_text = problem(seed)
    expected = naive_recall(similarity, image_of_text, ks)
    found = recall(similarity, image_of_text, ks=ks)
    assert found == pytest.approx(expected, abs=1e-9)
    assert list(found) == list(expected)
    assert 0 < found[f"i2t_r{ks[0]}"] < 100, "the problem is too easy or too hard to tell anything"


def test_image_without_text_is_no_query() -> None:
    similarity, image_of_text = problem(5)
    similarity = np.concatenate([similarity, similarity[:3]])
    assert recall(similarity, image_of_text) == pytest.approx(naive_recall(similarity, image_of_text), abs=1e-9)


def test_a_constant_model_recalls_nothing() -> None:
    found = recall(torch.zeros(50, 250), torch.arange(50).repeat_interleave(5))
    assert found["rsum"] == 0
    assert found["i2t_median_rank"] == found["i2t_mean_rank"] == 246
    assert found["t2i_median_rank"] == found["t2i_mean_rank"] == 50


def test_a_perfect_model_recalls_everything() -> None:
    found = recall(np.eye(12), np.arange(12))
    assert found["rsum"] == 600
    assert found["i2t_median_rank"] == found["t2i_mean_rank"] == 1


@pytest.mark.parametrize("float_type", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize("index_type", [np.int16, np.int32, np.int64, np.uint8])
def test_arrays_and_tensors_agree(float_type: Any, index_type: Any) -> None:
    similarity, image_of_text = problem(6)
    expected = recall(torch.from_numpy(similarity), torch.from_numpy(image_of_text))
    assert recall(similarity.astype(float_type), image_of_text.astype(index_type)) == expected
    assert recall(torch.from_numpy(similarity).bfloat16(), image_of_text) == expected


def test_read_only_and_reversed_arrays_are_taken_without_warning() -> None:
    similarity, image_of_text = problem(7)
    expected = recall(similarity, image_of_text)
    backwards = similarity[:, ::-1]
    similarity.setflags(write=False)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert recall(similarity, image_of_text) == expected
        assert recall(backwards, image_of_text[::-1]) == expected


def test_median_between_two_ranks_is_rounded_down() -> None:
    found = recall_from_ranks(np.array([0, 3]), np.array([4, 1, 2, 9]))
    assert found["i2t_median_rank"] == 2
    assert found["t2i_median_rank"] == 4
    assert found["t2i_mean_rank"] == 5
    assert found["t2i_r5"] == 75


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.integers(0, 30), min_size=1), st.lists(st.integers(-1, 30), min_size=1).filter(lambda r: max(r) >= 0)
)
def test_figures_stay_in_range(text_ranks: list[int], image_ranks: list[int]) -> None:
    found = recall_from_ranks(torch.tensor(image_ranks), torch.tensor(text_ranks), ks=(1, 2, 31))
    for side in ("i2t", "t2i"):
        assert 0 <= found[f"{side}_r1"] <= found[f"{side}_r2"] <= found[f"{side}_r31"] == 100
        assert found[f"{side}_median_rank"] >= 1
        assert found[f"{side}_mean_rank"] >= 1


@pytest.mark.parametrize("folds", [1, 2, 5])
@pytest.mark.parametrize("as_tensor", [False, True])
def test_folds_are_evaluated_one_by_one_and_averaged(folds: int, as_tensor: bool) -> None:
    similarity, image_of_text = problem(8)
    size = len(similarity) // folds
    rows = []
    for fold in range(folds):
        texts = [j for j, image in enumerate(image_of_text) if fold * size <= image < (fold + 1) * size]
        inside = similarity[fold * size : (fold + 1) * size][:, texts]
        rows.append(naive_recall(inside, image_of_text[texts] - fold * size))
    expected = {name: statistics.fmean(row[name] for row in rows) for name in rows[0]}
    arguments = (
        (torch.from_numpy(similarity), torch.from_numpy(image_of_text)) if as_tensor else (similarity, image_of_text)
    )
    assert fold_recall(*arguments, folds=folds) == pytest.approx(expected, abs=1e-9)


def test_folds_on_demand_give_the_same_figures() -> None:
    draw = np.random.default_rng(9)
    image_of_text = draw.permutation(np.arange(30).repeat(2))
    images = draw.integers(-5, 5, (30, 8)).astype(np.float32)
    texts = images[image_of_text] + draw.integers(-5, 5, (60, 8)).astype(np.float32)
    on_demand = mean_over_folds(
        recall(images[fold.images] @ texts[fold.texts].T, fold.image_of_text) for fold in folds_of(image_of_text, 30, 3)
    )
    assert on_demand == fold_recall(images @ texts.T, image_of_text, folds=3)


def test_folds_part_the_set() -> None:
    _, image_of_text = problem(10)
    folds = list(folds_of(image_of_text, 20, 4))
    assert np.array_equal(np.concatenate([fold.images for fold in folds]), np.arange(20))
    assert sorted(np.concatenate([fold.texts for fold in folds])) == list(range(60))
    for fold in folds:
        assert isinstance(fold, Fold)
        assert np.array_equal(fold.images[fold.image_of_text], image_of_text[fold.texts])


@pytest.mark.parametrize("folds", [0, -1, 3, 21])
def test_images_that_do_not_divide_are_refused(folds: int) -> None:
    similarity, image_of_text = problem(11)
    with pytest.raises(InputError, match=f"20 images do not divide into {folds} equal folds"):
        fold_recall(similarity, image_of_text, folds=folds)


def test_fold_without_text_is_refused_at_once() -> None:
    with pytest.raises(InputError, match=r"fold 1 \(images 2 … 3\) has no text"):
        folds_of(np.array([0, 1, 4]), 6, 3)


@pytest.mark.parametrize(
    ("similarity", "image_of_text", "message"),
    [
        (np.zeros((2, 3)), np.array([0, 1]), "one column per text"),
        (np.zeros((2, 2)), np.array([0, 2]), r"image_of_text\[1\] is 2"),
        (np.zeros((2, 2)), np.array([0, -1]), r"image_of_text\[1\] is -1"),
        (np.zeros((2, 2)), np.array([0.0, 1.0]), "expected integers"),
        (np.zeros((2, 2)), np.array([True, False]), "expected integers"),
        (np.zeros((2, 2)), np.array([[0, 1]]), "expected integers of shape"),
        (np.zeros((0, 0)), np.zeros(0, dtype=np.int64), "at least one text|do not divide"),
        (np.zeros((2, 2), dtype=object), np.array([0, 1]), "array of object"),
        (np.array([[0, np.nan], [1, 1]]), np.array([0, 1]), r"similarity\[0, 1\] .* NaN"),
    ],
)
def test_what_does_not_fit_is_refused(similarity: np.ndarray, image_of_text: np.ndarray, message: str) -> None:
    with pytest.raises(InputError, match=message):
        recall(similarity, image_of_text)
    with pytest.raises(InputError, match=message):
        fold_recall(similarity, image_of_text, folds=1)


@pytest.mark.parametrize("ks", [(), (0, 1), (5, 5)])
def test_senseless_ks_are_refused(ks: tuple[int, ...]) -> None:
    with pytest.raises(InputError, match="each once"):
        recall(np.eye(3), np.arange(3), ks=ks)


@pytest.mark.parametrize(
    ("image_ranks", "text_ranks", "message"),
    [
        ([-1, -1], [0], "i2t ranks"),
        ([0], [-1], "t2i ranks"),
        ([-2], [0], "i2t ranks"),
        ([0.5], [0], "i2t ranks"),
        ([0], [[0]], "t2i ranks"),
    ],
)
def test_senseless_ranks_are_refused(image_ranks: list[Any], text_ranks: list[Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        recall_from_ranks(np.array(image_ranks), np.array(text_ranks))


def test_folds_with_other_figures_are_refused() -> None:
    with pytest.raises(InputError, match="0 folds"):
        mean_over_folds([])
    with pytest.raises(InputError, match="same figures"):
        mean_over_folds([{"rsum": 1.0}, {"i2t_r1": 1.0}])
