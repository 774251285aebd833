"""Copies of pairs and repeated captions against plain loops, and what they do to what is held out."""

import math

import numpy as np
import pytest
import torch

from tests.correspondence.test_canonical import TEMPERATURE, linked
from truepair.correspondence import near_vectors
from truepair.correspondence.calibration import Calibration
from truepair.correspondence.canonical import CrossFittedCCA
from truepair.correspondence.class_noise import ClassNoise
from truepair.correspondence.repeats import ALIKE, caption_classes, with_copies
from truepair.methods.truepair import first_labels
from truepair.methods.truepair.first_labels import PairVectors


def naive_cosines(side):
    """(N, N) of the centred rows, in plain loops; 0 for the mean vector."""
    rows = side.astype(float).tolist()
    mean = [math.fsum(column) / len(rows) for column in zip(*rows, strict=True)]
    rows = [[value - centre for value, centre in zip(row, mean, strict=True)] for row in rows]
    lengths = [math.hypot(*row) for row in rows]
    return [
        [
            math.fsum(x * y for x, y in zip(a, b, strict=True)) / (m * n) if m and n else 0.0
            for b, n in zip(rows, lengths, strict=True)
        ]
        for a, m in zip(rows, lengths, strict=True)
    ]


def naive_copies(images, captions, image_rows):
    """The smallest image reached from each by equal captions on like images, by spreading until nothing changes."""
    found, cosines = list(image_rows), naive_cosines(images)
    for _ in found:
        before = list(found)
        for i in range(len(found)):
            for j in range(len(found)):
                if image_rows[i] == image_rows[j] or (captions[i] == captions[j] and cosines[i][j] >= ALIKE):
                    found[i] = found[j] = min(found[i], found[j])
        if found == before:
            return found
    return found


@pytest.mark.parametrize(("pairs", "captions"), [(1, 1), (2, 1), (40, 1), (60, 3), (60, 30)])
def test_copies_are_those_of_plain_loops(pairs, captions):
    rng = np.random.default_rng(pairs)
    for spread in (0.0, 0.3, 0.8, 1.5):
        source = rng.integers(0, max(1, pairs // 2), pairs)
        images = rng.normal(size=(pairs, 12))[source] + spread * rng.normal(size=(pairs, 12))
        images, words = images.astype(np.float32), rng.integers(0, captions, pairs)
        rows = rng.integers(0, pairs, pairs)
        assert with_copies(images, words, rows).tolist() == naive_copies(images, words, rows)


def test_copies_are_found_among_many_of_one_caption():
    rng = np.random.default_rng(0)
    images = rng.normal(size=(3000, 100)).astype(np.float32)
    images[2000:] = images[:1000] + 0.05 * rng.normal(size=(1000, 100))
    found = with_copies(images, np.zeros(3000, dtype=np.int64), np.arange(3000))
    assert found[:2000].tolist() == list(range(2000))
    assert (found[2000:] == np.arange(1000)).mean() > 0.95


def test_images_with_several_captions_are_one_if_one_of_these_is_copied():
    images = np.random.default_rng(0).normal(size=(9, 20)).astype(np.float32)[[0, 0, 2, 2, 0, 0, 6, 6, 6]]
    rows, captions = np.array([4, 4, 1, 1, 7, 7, 9, 9, 9]), np.arange(9)
    captions[5], captions[8] = captions[1], captions[0]  # the caption of 9 is that of another image
    assert with_copies(images, captions, rows).tolist() == [4, 4, 1, 1, 4, 4, 9, 9, 9]


@pytest.mark.parametrize("exact", [True, False])
@pytest.mark.parametrize("pairs", [2, 3, 900])
def test_equal_captions_are_one_class(monkeypatch, exact, pairs):
    if not exact:
        monkeypatch.setattr(near_vectors, "EXACT", 0)
    rng = np.random.default_rng(pairs)
    caption = rng.integers(0, pairs // 3 + 1, pairs)
    caption[: pairs // 2] = 0
    caption[-1] = pairs  # there is another one
    rounding = 1 + 1e-7 * rng.normal(size=(pairs, 1))
    texts = (rng.normal(size=(pairs + 1, 25))[caption] * rounding).astype(np.float32)
    classes = caption_classes(texts)
    assert len(set(zip(classes.tolist(), caption.tolist(), strict=True))) == len(set(caption.tolist()))
    assert len(set(classes.tolist())) == len(set(caption.tolist()))


def seen(images, texts, rows):
    vectors = PairVectors(len(rows), without="--none")
    vectors.images.vectors, vectors.texts.vectors, vectors.image_rows = images, texts, rows
    return vectors


def first_labels_of(images, texts, rows):
    return seen(images, texts, rows).first_labels(temperature=TEMPERATURE, batch_size=128)


@pytest.mark.parametrize("noise", [0.4, 0.6])
@pytest.mark.parametrize("spread", [0.0, 0.05])
def test_a_share_of_pairs_that_stand_there_twice_is_right(monkeypatch, noise, spread):
    monkeypatch.setattr(first_labels, "AVERAGED", 0)  # labels of one division; estimates are of five
    images, texts, rows, wrong = linked(1000, noise, factors=10, apart=0.3)
    rng = np.random.default_rng(1)  # much of a pair is its own, by which it can be learned by heart
    images, texts = (np.concatenate([side, 0.8 * rng.normal(size=(1000, 150))], 1) for side in (images, texts))
    texts = texts.astype(np.float32)
    twice = np.tile(np.arange(1000), 2)
    images = (images[twice] + spread * rng.normal(size=(2000, images.shape[1]))).astype(np.float32)
    texts, rows = texts[twice], np.arange(2000)
    estimate = first_labels_of(images, texts, rows).estimate
    assert estimate.low < wrong.mean() < estimate.high and estimate.share == pytest.approx(noise, abs=0.1)
    once = first_labels_of(images[:1000], texts[:1000], rows[:1000]).estimate
    assert estimate.error > 0.8 * once.error  # a thousand pairs, counted twice, are not two thousand
    monkeypatch.setattr(PairVectors, "groups", lambda self, _: self.image_rows)
    leaky = first_labels_of(images, texts, rows).estimate
    assert leaky.high < noise  # copies tell of each other


def test_captions_of_very_many_images_are_no_evidence_of_mismatches():
    images, texts, rows, _ = linked(2000, 0.0, factors=10, apart=0.3)
    frequent = np.random.default_rng(1).random(2000) < 0.5
    texts[frequent] = texts[0]
    found = first_labels_of(images, texts, rows)
    assert found.judged == 2000 - frequent.sum() - (not frequent[0])
    assert found.estimate.share < 0.05 and found.recall > 0.9
    assert not found.matching[frequent].any() and found.matching[~frequent].mean() > 0.9
    odds = found.odds[torch.from_numpy(frequent)]
    assert odds.unique().numel() == 1
    below = (found.odds[torch.from_numpy(~frequent)] < odds[0]).float().mean()
    assert float(below) == pytest.approx(found.estimate.share, abs=0.01), "between those that match and the others"
    assert 0.99 < found.auroc < 1, "of those that are judged"


@pytest.mark.parametrize(("most", "averaged"), [(200_000, 5), (1999, 4), (1, 1)])
def test_first_labels_are_means_over_divisions_into_folds(monkeypatch, most, averaged):
    monkeypatch.setattr(first_labels, "AVERAGED", most)
    images, texts, rows, wrong = linked(400, 0.6)
    found = first_labels_of(images, texts, rows)
    sides = seen(images, texts, rows).sides
    models = [CrossFittedCCA(*sides, rows, temperature=TEMPERATURE, seed=seed) for seed in range(averaged)]
    for each in models:
        each.ridge = models[0].ridge  # chosen once
    pi = found.estimate.share
    assert pi == pytest.approx(wrong.mean(), abs=0.15)
    scores = [each.cleaned(pi) for each in models]
    odds = [sum(each.given[pair] for each in scores) / averaged - math.log(128) for pair in range(400)]
    np.testing.assert_allclose(found.odds, odds, atol=1e-4)
    of_match = []
    for each in scores:
        equal = np.full(len(each.synthetic), 1 / len(each.synthetic))
        of_match.append(Calibration.of(each.given, each.synthetic, equal, pi)(each.given))
    np.testing.assert_allclose(
        found.matching, [sum(each[pair] for each in of_match) / averaged for pair in range(400)], atol=1e-5
    )
    given, made = (np.concatenate([getattr(each, side) for each in scores]) for side in ("given", "synthetic"))
    wins = sum(int((one > made).sum()) for one in given)
    assert found.auroc == pytest.approx(wins / len(given) / len(made), abs=1e-6)


def test_captions_that_are_names_of_classes_are_judged_all_the_same():
    rng = np.random.default_rng(0)
    images, texts, rows, _ = linked(1000, 0.0, factors=10, apart=0.3)
    images = np.concatenate([images, 3 * rng.normal(size=(1000, 100)).astype(np.float32)], 1)  # no two are alike
    classes = rng.integers(0, 20, 1000)
    assert first_labels_of(images, texts[classes], rows).judged == 1000
    assert first_labels.judged_by_captions(rows, rows).all()


def test_wrong_class_labels_of_copied_pairs_are_counted():
    rng = np.random.default_rng(1)
    truth = rng.integers(0, 4, 700)
    given = np.where(rng.random(700) < 0.5, rng.integers(0, 4, 700), truth)
    wrong = (given != truth).mean()
    centres = [rng.normal(size=(4, width)) for width in (30, 20)]
    sides = [(each[truth] + 1.2 * rng.normal(size=(700, each.shape[1]))).astype(np.float32) for each in centres]
    twice = np.tile(np.arange(700), 2)
    copied, labels = [side[twice] for side in sides], given[twice]
    vectors = seen(*copied, np.arange(1400))
    groups = vectors.groups(vectors.captions())
    assert vectors.copies(groups) == 2.0
    found = ClassNoise.of(copied, groups, labels, 4, copies=2.0, seed=0)
    share, error = found.wrong
    assert share == pytest.approx(wrong, abs=2 * error) and error < 0.03
    once = ClassNoise.of(sides, np.arange(700), given, 4, seed=0)
    assert error > 0.8 * once.wrong[1]
    leaky = ClassNoise.of(copied, np.arange(1400), labels, 4, seed=0)
    assert leaky.wrong[0] < wrong - 0.05
