"""Retrieval by class of pairs: queries, both ways, by class, curves; and what it refuses."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from truepair.data.pairs import Images, Pairs, Texts
from truepair.errors import InputError
from truepair.evaluation import average_precisions, evaluate_classes, score_classes
from truepair.evaluation.class_retrieval import interpolated_precision, labelled_items


class Model:
    """A model that knows a similarity matrix."""

    def __init__(self, similarity):
        self.similarity = torch.from_numpy(similarity).float()

    def similarity_blocks(self, pairs, image_rows, text_rows):
        return torch.split(self.similarity[image_rows][:, text_rows], 3)


def make_pairs(image_index, text_index, labels, *, images=None, texts=None):
    images, texts = images or max(image_index) + 1, texts or max(text_index) + 1
    return Pairs(
        images=Images(np.zeros((images, 2), np.float32), tuple(f"i{row}" for row in range(images))),
        texts=Texts(tuple(f"caption {row}" for row in range(texts)), tuple(map(str, range(texts)))),
        image_index=np.array(image_index),
        text_index=np.array(text_index),
        labels=None if labels is None else np.array(labels),
        class_names=("art", "war", "sport", "music"),
        name="made",
    )


@pytest.fixture
def problem():
    """Images 1 and 4 are in no pair, image 0 in three, text 2 in none; nobody is of class 2."""
    rng = np.random.default_rng(0)
    pairs = make_pairs([0, 0, 2, 3, 5, 6, 0], [0, 1, 3, 4, 5, 6, 7], [0, 0, 1, 3, 1, 3, 0], images=7)
    return Model(rng.integers(0, 6, (7, 8)) / 6), pairs


IMAGES, IMAGE_LABELS = [0, 2, 3, 5, 6], np.array([0, 1, 3, 1, 3])
TEXTS, TEXT_LABELS = [0, 1, 3, 4, 5, 6, 7], np.array([0, 0, 1, 3, 1, 3, 0])


def test_queries_are_distinct_images_and_texts_in_pairs(problem):
    items = labelled_items(problem[1])
    assert items.images.tolist() == IMAGES
    assert items.image_labels.tolist() == IMAGE_LABELS.tolist()
    assert items.texts.tolist() == TEXTS
    assert items.text_labels.tolist() == TEXT_LABELS.tolist()


@pytest.mark.parametrize("at", [None, 1, 3, 50])
def test_figures_are_those_of_the_matrix(problem, at):
    model, pairs = problem
    similarity = model.similarity.numpy()[np.ix_(IMAGES, TEXTS)]
    expected = {}
    for k in {None, at}:
        end = "" if k is None else f"_at_{k}"
        expected[f"map_i2t{end}"] = average_precisions(similarity, IMAGE_LABELS, TEXT_LABELS, at=k).mean()
        expected[f"map_t2i{end}"] = average_precisions(similarity.T, TEXT_LABELS, IMAGE_LABELS, at=k).mean()
        expected[f"map{end}"] = (expected[f"map_i2t{end}"] + expected[f"map_t2i{end}"]) / 2
    assert evaluate_classes(model, pairs, at=at) == pytest.approx(expected)


def test_by_class_are_means_of_the_queries_of_each_class(problem):
    model, pairs = problem
    similarity = model.similarity.numpy()[np.ix_(IMAGES, TEXTS)]
    i2t = average_precisions(similarity, IMAGE_LABELS, TEXT_LABELS)
    t2i = average_precisions(similarity.T, TEXT_LABELS, IMAGE_LABELS)
    found = score_classes(model, pairs).by_class()
    assert [(row.label, row.name, row.images, row.texts) for row in found] == [
        (0, "art", 1, 3),
        (1, "war", 2, 2),
        (3, "music", 2, 2),
    ]
    for row in found:
        assert row.map_i2t == pytest.approx(i2t[row.label == IMAGE_LABELS].mean())
        assert row.map_t2i == pytest.approx(t2i[row.label == TEXT_LABELS].mean())
    assert sum(row.images * row.map_i2t for row in found) / 5 == pytest.approx(
        evaluate_classes(model, pairs)["map_i2t"]
    )


def test_true_labels_count_where_they_are_known(problem):
    model, pairs = problem
    wrong = np.array([1, 0, 1, 3, 0, 3, 0])  # image 0 is given two classes, which does not matter
    noisy = replace(pairs, labels=wrong, true_labels=pairs.labels)
    assert evaluate_classes(model, noisy) == evaluate_classes(model, pairs)
    with pytest.raises(InputError, match=r"image 0 \('i0'\) is 'war' in pair 0 and 'art' in pair 1"):
        evaluate_classes(model, replace(noisy, true_labels=None))


def interpolated_by_loop(places):
    found = []
    for percent in range(101):
        reached = [i / place for i, place in enumerate(places, start=1) if 100 * i >= percent * len(places)]
        found.append(max(reached))
    return found


@pytest.mark.parametrize("places", [[1], [9], [1, 2, 3], [1, 5, 6, 7, 100], [2, 3, 50], list(range(3, 260, 2))])
def test_interpolated_precision_equals_a_loop(places):
    assert interpolated_precision(np.array(places)).tolist() == pytest.approx(interpolated_by_loop(places))


def test_curves_are_means_over_queries(problem):
    model, pairs = problem
    similarity = model.similarity.numpy()[np.ix_(IMAGES, TEXTS)]
    expected = []
    for row, label in zip(similarity, IMAGE_LABELS, strict=True):
        order = sorted(range(len(row)), key=lambda item: (-row[item], TEXT_LABELS[item] == label))
        places = [place for place, item in enumerate(order, start=1) if TEXT_LABELS[item] == label]
        expected.append(interpolated_by_loop(places))
    curves = score_classes(model, pairs).precision_recall()
    assert curves.recall.tolist() == pytest.approx(np.linspace(0, 1, 101).tolist())
    assert curves.i2t.tolist() == pytest.approx(np.mean(expected, axis=0).tolist())
    assert len(curves.t2i) == 101
    assert (np.diff(curves.t2i) <= 1e-12).all()


def test_a_perfect_model_and_one_that_knows_nothing():
    labels = [0, 1, 0, 1]
    pairs = make_pairs([0, 1, 2, 3], [0, 1, 2, 3], labels)
    same = np.equal.outer(labels, labels).astype(np.float32)
    assert evaluate_classes(Model(same), pairs, at=2) == dict.fromkeys(
        ["map_i2t", "map_t2i", "map", "map_i2t_at_2", "map_t2i_at_2", "map_at_2"], 1.0
    )
    assert score_classes(Model(same), pairs).precision_recall().i2t.tolist() == [1.0] * 101
    assert evaluate_classes(Model(0 * same), pairs)["map"] == pytest.approx((1 / 3 + 2 / 4) / 2)


def test_one_class_is_always_right():
    pairs = make_pairs([0, 1, 2], [0, 1, 2], [2, 2, 2])
    assert evaluate_classes(Model(np.random.default_rng(0).normal(size=(3, 3))), pairs)["map"] == 1.0


def test_bad_input_is_refused(problem):
    model, pairs = problem
    with pytest.raises(InputError, match="made: the pairs have no class labels; name the column"):
        evaluate_classes(model, replace(pairs, labels=None))
    with pytest.raises(InputError, match="made: there is no pair to evaluate on"):
        evaluate_classes(model, pairs.take(np.zeros(0, np.int64)))
    with pytest.raises(InputError, match="at is 0"):
        evaluate_classes(model, pairs, at=0)
    texts = make_pairs([0, 1], [0, 0], [1, 3])
    with pytest.raises(InputError, match=r"text 0 \('0'\) is 'war' in pair 0 and 'music' in pair 1"):
        evaluate_classes(Model(np.zeros((2, 1))), texts)
