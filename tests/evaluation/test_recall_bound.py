"""What recall can be at most: no scores exceed it, and where captions or images are equal it is what can be counted."""

import itertools

import numpy as np
import pytest
import torch

from truepair.cli.figures import bound_sentence
from truepair.data.pairs import Images, Pairs, Texts
from truepair.evaluation import RecallBound, bound_of_classes, recall, recall_bounds

FIGURES = [f"{way}_r{k}" for way in ("i2t", "t2i") for k in (1, 5, 10)]


def of_classes(scores, images, texts):
    """Scores by classes alone: equal items are alike."""
    return torch.from_numpy(scores[images][:, texts])


@pytest.mark.parametrize("seed", range(40))
def test_no_scores_of_equal_items_exceed_it(seed):
    """Random ones, and such that prefer the pairs there are."""
    rng = np.random.default_rng(seed)
    count, each = int(rng.integers(1, 30)), int(rng.integers(1, 4))
    images = rng.integers(0, rng.integers(1, count + 1), count)
    texts = rng.integers(0, rng.integers(1, count * each + 1), count * each)
    image_of_text = rng.integers(0, count, count * each)
    bound = bound_of_classes(images, texts, image_of_text)
    assert bound["rsum"] == pytest.approx(sum(bound[name] for name in FIGURES))
    for trial in range(30):
        scores = rng.normal(size=(images.max() + 1, texts.max() + 1))
        if trial % 2:
            scores[images[image_of_text], texts] += 5
        found = recall(of_classes(scores, images, texts), image_of_text)
        assert all(found[name] <= bound[name] + 1e-9 for name in FIGURES)


@pytest.mark.parametrize("seed", range(40))
def test_it_is_that_of_plain_loops(seed):
    """Item by item: who ties with the right one whatever is done, and how many of equal queries there is room for."""
    rng = np.random.default_rng(seed)
    count, each = int(rng.integers(1, 40)), int(rng.integers(1, 4))
    images = rng.integers(0, rng.integers(1, count + 1), count)
    texts = rng.integers(0, rng.integers(1, count * each + 1), count * each)
    owner = rng.integers(0, count, count * each)
    bound = bound_of_classes(images, texts, owner)
    for k in (1, 5, 10):
        hits = {}
        for image in set(owner.tolist()):
            own = [text for text in range(len(texts)) if owner[text] == image]
            ties = [sum(texts[a] == texts[b] and owner[a] != image for a in range(len(texts))) for b in own]
            hits[images[image]] = hits.get(images[image], 0) + (min(ties) < k)
        found = sum(min(number, k) for number in hits.values())
        assert bound[f"i2t_r{k}"] == pytest.approx(100 * found / len(set(owner.tolist())))
        found = 0
        for kind in set(texts.tolist()):
            of_image = {}
            for text in range(len(texts)):
                ties = sum(images[a] == images[owner[text]] for a in range(count)) - 1
                if texts[text] == kind and ties < k:
                    of_image[owner[text]] = of_image.get(owner[text], 0) + 1
            found += sum(sorted(of_image.values(), reverse=True)[:k])
        assert bound[f"t2i_r{k}"] == pytest.approx(100 * found / len(texts))


@pytest.mark.parametrize("seed", range(20))
def test_of_few_items_it_is_reached(seed):
    """At one: the best of all orders of the classes, tried one by one, where each image has one text."""
    rng = np.random.default_rng(seed)
    images, texts = rng.integers(0, 2, 5), rng.integers(0, 3, 5)
    best = {"i2t_r1": 0.0, "t2i_r1": 0.0}
    for order in itertools.permutations(range(6)):
        found = recall(of_classes(np.array(order, float).reshape(2, 3), images, texts), np.arange(5))
        best = {name: max(best[name], found[name]) for name in best}
    bound = bound_of_classes(images, texts, np.arange(5))
    assert {name: bound[name] for name in best} == pytest.approx(best)


def test_of_different_items_it_is_all():
    bound = bound_of_classes(np.arange(7), np.arange(14), np.repeat(np.arange(7), 2))
    assert all(bound[name] == 100 for name in FIGURES) and bound["rsum"] == 600


def test_one_caption_on_eight_of_ten_images():
    """Its images are not found among fewer than eight texts; of its eight texts one at one, five at five."""
    texts = np.array([0] * 8 + [1, 2])
    bound = bound_of_classes(np.arange(10), texts, np.arange(10))
    assert [bound[name] for name in FIGURES] == [20, 20, 100, 30, 70, 100]
    back = bound_of_classes(texts, np.arange(10), np.arange(10))  # one image eight times, and a text of each
    assert [back[name] for name in FIGURES] == [30, 70, 100, 20, 20, 100]


def test_an_image_with_another_caption_is_found_by_that_one():
    """Each of ten images has the common caption and one of its own; of the common ones one is found at one."""
    image_of_text = np.repeat(np.arange(10), 2)
    texts = np.array([[0, 1 + image] for image in range(10)]).reshape(-1)
    bound = bound_of_classes(np.arange(10), texts, image_of_text)
    assert [bound[name] for name in FIGURES] == [100, 100, 100, 55, 75, 100]
    # The same caption twice on an image is no other image's.
    twice = bound_of_classes(np.arange(3), np.array([0, 0, 1, 1, 2, 2]), np.repeat(np.arange(3), 2))
    assert twice["rsum"] == 600


def pairs_of(captions, features=None, vectors=None):
    count = len(captions)
    features = np.eye(count, 4, dtype=np.float32) if features is None else features
    names = tuple(map(str, range(count)))
    return Pairs(Images(features, names), Texts(tuple(captions), names, vectors), np.arange(count), np.arange(count))


def test_of_pairs_by_their_captions_and_features():
    features = np.random.default_rng(0).normal(size=(10, 2, 3)).astype(np.float32)
    features[4] = features[3]
    found = RecallBound.of(pairs_of(["a gift"] * 8 + ["A gift", "a rose"], features))
    assert (found.captions, found.shared_captions, found.most_frequent) == (10, 8, 8)
    assert (found.images, found.equal_images) == (10, 2) and found.worth_saying
    classes = np.array([0, 1, 2, 3, 3, 5, 6, 7, 8, 9])
    assert found.figures == bound_of_classes(classes, np.array([0] * 8 + [1, 2]), np.arange(10))
    by_folds = RecallBound.of(pairs_of(["a gift"] * 8 + ["A gift", "a rose"], features), folds=5)
    assert by_folds.figures["t2i_r1"] == pytest.approx((50 + 50 + 50 + 50 + 100) / 5)
    blank = RecallBound.of(pairs_of(["a", "b", "c"], np.zeros((3, 1, 0), np.float32)))
    assert blank.figures["rsum"] == 600, "a source without features says nothing of its images"


def test_of_vectors_in_the_place_of_captions():
    vectors = np.repeat(np.arange(6, dtype=np.float32), 2)[:10].reshape(-1, 1)
    found = RecallBound.of(pairs_of([f"text {row}" for row in range(10)], np.eye(10, dtype=np.float32), vectors))
    assert found.shared_captions == 10 and found.most_frequent == 2 and found.figures["i2t_r1"] == 0


def test_what_is_said_of_it():
    shared = pairs_of(["a gift"] * 8 + ["a spoon", "a rose"], np.eye(10, dtype=np.float32))
    found = recall_bounds({"dev": None, "test": shared})
    assert list(found) == ["test"] and recall_bounds({"test": pairs_of(["a", "b", "c", "d"])}) == {}
    said = bound_sentence("test", found["test"])
    assert said == (
        "test: 8 of 10 captions stand on several images, one on 8 images. No model can tell these apart, and ties "
        "count against it: rSum is at most 340.0 here (R@1 20.0 and 30.0)."
    )
