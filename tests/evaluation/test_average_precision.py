"""Average precision against a loop that sorts, against scikit-learn, and of blocks against the whole matrix."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import average_precision_score

from truepair.errors import InputError
from truepair.evaluation import average_precision as module
from truepair.evaluation import average_precisions, mean_average_precision
from truepair.evaluation.average_precision import average_precision, scores, scores_both_ways


def by_loop(similarity, query_labels, item_labels, at=None):
    """Sort each row by falling similarity, wrong items first among equals, and add up precisions."""
    found = []
    for row, label in zip(similarity, query_labels, strict=True):
        order = sorted(range(len(row)), key=lambda item: (-float(row[item]), int(item_labels[item] == label)))
        right = sum(int(item_labels[item] == label) for item in order)
        hits, total = 0, 0.0
        for place, item in enumerate(order[:at], start=1):
            if item_labels[item] == label:
                hits += 1
                total += hits / place
        found.append(total / (right if at is None else min(at, right)) if right else math.nan)
    return np.array(found)


@st.composite
def problems(draw):
    """Few distinct similarities, so that ties are everywhere; classes without items, and items without queries."""
    queries, items = draw(st.integers(1, 8)), draw(st.integers(1, 12))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    levels = draw(st.sampled_from([1, 2, 4, 1000]))
    similarity = (rng.integers(0, levels, (queries, items)) - levels // 2).astype(np.float32)
    if draw(st.booleans()):
        similarity[rng.random(similarity.shape) < 0.2] = rng.choice([-np.inf, np.inf, 0.0, -0.0])
    classes = draw(st.integers(1, 5))
    at = draw(st.none() | st.integers(1, 15))
    return similarity, rng.integers(0, classes, queries) - 2, rng.integers(0, classes, items) - 2, at


@given(problems())
@settings(max_examples=150, deadline=None)
def test_equals_a_loop_that_sorts(problem):
    similarity, queries, items, at = problem
    expected = by_loop(similarity, queries, items, at)
    found = average_precisions(similarity, queries, items, at=at)
    assert found.dtype == np.float64
    np.testing.assert_allclose(found, expected, rtol=1e-12)
    if not np.isnan(expected).all():
        assert mean_average_precision(similarity, queries, items, at=at) == pytest.approx(np.nanmean(expected))


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_equals_scikit_learn_without_ties(dtype):
    rng = np.random.default_rng(0)
    queries, items = rng.integers(0, 4, 30), rng.integers(0, 4, 200)
    similarity = rng.permuted(np.tile(np.arange(200), (30, 1)), axis=1).astype(dtype)
    expected = [average_precision_score(items == label, row) for row, label in zip(similarity, queries, strict=True)]
    np.testing.assert_allclose(average_precisions(similarity, queries, items), expected, rtol=1e-12)


def test_float64_is_not_rounded():
    """Two similarities that are one in float32."""
    similarity = np.array([[1.0, 1.0 + 1e-12]])
    assert mean_average_precision(similarity, [0], [1, 0]) == 1.0
    assert mean_average_precision(similarity.astype(np.float32), [0], [1, 0]) == 0.5


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float64])
def test_tensors_of_any_kind(dtype):
    rng = np.random.default_rng(1)
    similarity = torch.from_numpy(rng.normal(size=(12, 40))).to(dtype).requires_grad_()
    queries, items = torch.from_numpy(rng.integers(0, 3, 12)), torch.from_numpy(rng.integers(0, 3, 40)).int()
    expected = by_loop(similarity.detach().double().numpy(), queries.numpy(), items.numpy())
    np.testing.assert_allclose(average_precisions(similarity, queries, items), expected, rtol=1e-12)


def test_equal_similarities_rank_right_items_last():
    assert mean_average_precision(np.zeros((1, 4), np.float32), [7], [7, 1, 2, 3]) == 0.25
    perfect, worst = np.array([[3.0, 2, 1, 0]]), np.array([[0.0, 1, 2, 3]])
    assert mean_average_precision(perfect, [1], [1, 1, 0, 0]) == 1.0
    assert mean_average_precision(worst, [1], [1, 1, 0, 0]) == pytest.approx((1 / 3 + 2 / 4) / 2)


def test_at_divides_by_what_could_be_found():
    """MRL's released code would give 1 here: it divides by the one right item found within k."""
    similarity = np.arange(10.0)[None, ::-1]
    labels = [1, 0, 0, 0, 0, 1, 1, 1, 1, 1]
    assert mean_average_precision(similarity, [1], labels, at=5) == pytest.approx(1 / 5)
    assert mean_average_precision(similarity, [1], labels, at=1) == 1.0
    assert mean_average_precision(similarity, [1], [1, *[0] * 9], at=5) == 1.0
    assert mean_average_precision(similarity, [1], labels, at=10) == mean_average_precision(similarity, [1], labels)
    assert mean_average_precision(similarity, [1], [*[0] * 9, 1], at=5) == 0.0


def test_queries_without_right_items_are_left_out():
    similarity = np.array([[1.0, 0.0], [1.0, 0.0]])
    found = average_precisions(similarity, [0, 9], [0, 1])
    assert found[0] == 1.0
    assert np.isnan(found[1])
    assert mean_average_precision(similarity, [0, 9], [0, 1]) == 1.0
    with pytest.raises(InputError, match="none of 2 queries has an item of its own class"):
        mean_average_precision(similarity, [8, 9], [0, 1])


def test_rows_are_taken_a_few_at_a_time(monkeypatch):
    rng = np.random.default_rng(2)
    similarity, queries, items = rng.normal(size=(23, 17)), rng.integers(0, 3, 23), rng.integers(0, 3, 17)
    expected = average_precisions(similarity, queries, items)
    monkeypatch.setattr(module, "SORTED_BYTES", 4 * 17 * 5)
    assert np.array_equal(average_precisions(similarity, queries, items), expected, equal_nan=True)
    similarity[21, 3] = np.nan
    with pytest.raises(InputError, match=r"similarity\[21, 3\] \(query, item\) is NaN"):
        average_precisions(similarity, queries, items)


class Blocks:
    """Blocks of rows that count how often they are asked for."""

    def __init__(self, similarity, rows, *, costly=False):
        self.similarity, self.rows, self.costly, self.passes = similarity, rows, costly, 0

    def __iter__(self):
        self.passes += 1
        return iter(torch.split(self.similarity, self.rows))


def one_figure(places):
    return np.array([average_precision(places), len(places)])


@pytest.mark.parametrize(("bytes_", "costly", "passes"), [(1 << 20, False, 1), (4 * 25 * 7, False, 5), (1, False, 31)])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_blocks_give_what_the_matrix_and_its_transpose_give(bytes_, costly, passes, dtype):
    rng = np.random.default_rng(3)
    close = 1e-12 * rng.random((25, 31))  # ties in float32 only
    similarity = torch.from_numpy(rng.integers(0, 9, (25, 31)) / 9 + close).to(dtype)
    images, texts = rng.integers(0, 4, 25), rng.integers(0, 4, 31)
    blocks = Blocks(similarity, 4, costly=costly)
    i2t, t2i = scores_both_ways(blocks, images, texts, one_figure, memory_bytes=bytes_)
    assert np.array_equal(i2t, scores(similarity, images, texts, one_figure))
    assert np.array_equal(t2i, scores(similarity.T, texts, images, one_figure))
    assert np.array_equal(t2i[:, 0], average_precisions(similarity.T, texts, images))
    assert blocks.passes == passes


def test_costly_blocks_are_asked_for_once():
    blocks = Blocks(torch.rand(6, 8), 2, costly=True)
    scores_both_ways(blocks, np.arange(6) % 2, np.arange(8) % 2, one_figure, memory_bytes=1)
    assert blocks.passes == 1


@pytest.mark.parametrize("similarity", [torch.rand(5, 8), torch.rand(7, 8), torch.rand(6, 9), torch.rand(6, 8).long()])
def test_blocks_that_do_not_fit_the_labels_are_refused(similarity):
    with pytest.raises(InputError, match="images"):
        scores_both_ways(torch.split(similarity, 2), np.zeros(6, np.int64), np.zeros(8, np.int64), one_figure)


def test_blocks_that_cannot_be_asked_again_are_refused():
    with pytest.raises(InputError, match="hold 0 images, the labels 6; blocks must be iterable again"):
        scores_both_ways(
            iter(torch.split(torch.rand(6, 8), 2)), np.zeros(6, np.int64), np.zeros(8, np.int64), one_figure,
            memory_bytes=1,
        )  # fmt: skip


@pytest.mark.parametrize(
    ("similarity", "queries", "items", "at", "message"),
    [
        (np.zeros((2, 3)), [0], [0, 1, 2], None, r"shape \(2, 3\) for 1 query labels"),
        (np.zeros(3), [0], [0, 1, 2], None, r"shape \(3,\)"),
        (np.zeros((1, 0)), [0], np.zeros(0, np.int64), None, "at least one of each"),
        (np.zeros((0, 1)), np.zeros(0, np.int64), [0], None, "at least one of each"),
        (np.zeros((1, 2)), [0.5], [0, 1], None, "query_labels is float64"),
        (np.zeros((1, 2)), [0], [[0, 1]], None, "item_labels is int64 of shape"),
        (np.zeros((1, 2)), [0], [True, False], None, "item_labels is bool"),
        (np.zeros((1, 2)), [0], [0, 1], 0, "at is 0"),
        (np.zeros((1, 2), np.int64), [0], [0, 1], None, "similarity is int64"),
    ],
)
def test_what_does_not_fit_is_refused(similarity, queries, items, at, message):
    with pytest.raises(InputError, match=message):
        mean_average_precision(similarity, queries, items, at=at)
