"""Retrieval by class: images and texts are right for each other where they are of one class (UOT-RCL, section IV).

Queries and items are the distinct images and texts that stand in pairs. Each finds at least the other side of its own
pair, so that every query has a right item. Labels are the true ones where they are known, else those given.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from truepair.data.pairs import Array, IntArray, Pairs
from truepair.errors import InputError
from truepair.evaluation.average_precision import average_precision, check_at, scores_both_ways
from truepair.evaluation.evaluate import ScoresPairs

RECALL_PERCENT = np.arange(101)


@dataclass(frozen=True)
class LabelledItems:
    """The distinct images and texts of some pairs, ascending, each with its class.

    Attributes:
        images, image_labels: (n,) int64, rows of `pairs.images` and their classes.
        texts, text_labels: (m,) int64, rows of `pairs.texts` and their classes.
    """

    images: IntArray
    image_labels: IntArray
    texts: IntArray
    text_labels: IntArray

    @property
    def counts(self) -> dict[str, int]:
        """How many `images` and `texts`."""
        return {"images": len(self.images), "texts": len(self.texts)}


@dataclass(frozen=True)
class ClassFigures:
    """mAP in [0, 1] of the queries of one class, and how many they are: images for i→t, texts for t→i."""

    label: int
    name: str
    images: int
    texts: int
    map_i2t: float
    map_t2i: float


@dataclass(frozen=True)
class PrecisionRecall:
    """Interpolated precision, mean over queries, at 101 levels of recall 0, 0.01, …, 1; (101,) each, in [0, 1].

    The precision at a level is the largest at any place that reaches it.
    """

    recall: Array
    i2t: Array
    t2i: Array


@dataclass(frozen=True)
class ClassScores:
    """Every query's figures, from which the tables and curves below are means.

    Attributes:
        items: the queries, which are the items of the other way as well.
        names: of the classes.
        at: k of AP@k, or None.
        i2t: (images, 103) AP, AP@k (AP again without `at`), and interpolated precision at 101 levels of recall.
        t2i: (texts, 103) the same.
    """

    items: LabelledItems
    names: tuple[str, ...]
    at: int | None
    i2t: Array
    t2i: Array

    def figures(self) -> dict[str, float]:
        """As `evaluate_classes`."""
        found = mean_of_ways("", self.i2t[:, 0].mean(), self.t2i[:, 0].mean())
        if self.at is not None:
            found |= mean_of_ways(f"_at_{self.at}", self.i2t[:, 1].mean(), self.t2i[:, 1].mean())
        return found

    def by_class(self) -> list[ClassFigures]:
        """mAP of the queries of each class that stands in pairs, both ways, in the order of the classes."""
        found = []
        for label in np.unique(self.items.image_labels).tolist():
            images, texts = self.items.image_labels == label, self.items.text_labels == label
            ways = float(self.i2t[images, 0].mean()), float(self.t2i[texts, 0].mean())
            found.append(ClassFigures(label, self.names[label], int(images.sum()), int(texts.sum()), *ways))
        return found

    def precision_recall(self) -> PrecisionRecall:
        return PrecisionRecall(RECALL_PERCENT / 100, self.i2t[:, 2:].mean(axis=0), self.t2i[:, 2:].mean(axis=0))


def evaluate_classes(model: ScoresPairs, pairs: Pairs, *, at: int | None = None) -> dict[str, float]:
    """mAP in [0, 1]: `map_i2t` (images find texts), `map_t2i`, and their mean `map`; over all items.

    With `at` = 50, say, also `map_i2t_at_50`, `map_t2i_at_50` and `map_at_50`; see `average_precisions` for what they
    are divided by.

    Args:
        model: a `RetrievalModel`, such as `run.model`.
        pairs: labelled pairs; an image in several of them counts once.
        at: k of mAP@k, at least 1.

    Raises:
        InputError: the pairs have no labels or none are left, an image or text has several classes, the features do
            not fit the model, or `at` is below 1.
    """
    return score_classes(model, pairs, at=at).figures()


def score_classes(model: ScoresPairs, pairs: Pairs, *, at: int | None = None) -> ClassScores:
    """As `evaluate_classes`, the figures of every query; the similarities are computed once where memory allows."""
    check_at(at)
    items = labelled_items(pairs)
    blocks = model.similarity_blocks(pairs, items.images, items.texts)

    def score(places: IntArray) -> Array:
        whole = average_precision(places)
        cut = whole if at is None else average_precision(places, at=at)
        return np.concatenate([[whole, cut], interpolated_precision(places)])

    i2t, t2i = scores_both_ways(blocks, items.image_labels, items.text_labels, score)
    return ClassScores(items, pairs.class_names, at, i2t, t2i)


def interpolated_precision(places: IntArray) -> Array:
    """Precision of one query at 101 levels of recall, from the places of its m ≥ 1 right items, ascending from 1."""
    precision = np.arange(1, len(places) + 1) / places
    best_from_here = np.maximum.accumulate(precision[::-1])[::-1]
    needed = np.maximum(-(-RECALL_PERCENT * len(places) // 100), 1)
    found: Array = best_from_here[needed - 1]
    return found


def labelled_items(pairs: Pairs) -> LabelledItems:
    """The images and texts that stand in pairs, each once, with their classes.

    Raises:
        InputError: there are no labels or no pairs, or an image or text stands in pairs of different classes.
    """
    labels = pairs.labels if pairs.true_labels is None else pairs.true_labels
    if labels is None:
        raise InputError(
            f"{pairs.name}: the pairs have no class labels; name the column that holds them (--label COLUMN, "
            "load(…, label=…)), or use a source with labels of its own"
        )
    if not len(pairs):
        raise InputError(f"{pairs.name}: there is no pair to evaluate on")
    images, image_labels = _labels_of(pairs, "image", pairs.image_index, labels, pairs.images.ids)
    texts, text_labels = _labels_of(pairs, "text", pairs.text_index, labels, pairs.texts.ids)
    return LabelledItems(images, image_labels, texts, text_labels)


def _labels_of(
    pairs: Pairs, side: str, index: IntArray, labels: IntArray, ids: tuple[str, ...]
) -> tuple[IntArray, IntArray]:
    items, first, place = np.unique(index, return_index=True, return_inverse=True)
    odd = np.flatnonzero(labels != labels[first][place])
    if len(odd):
        pair, item = int(odd[0]), int(index[odd[0]])
        other = int(first[place[pair]])
        names = pairs.class_names
        raise InputError(
            f"{pairs.name}: {side} {item} ({ids[item]!r}) is {names[labels[other]]!r} in pair {other} and "
            f"{names[labels[pair]]!r} in pair {pair}; evaluation by class needs one class for each {side}: correct the "
            "labels or leave one of the pairs out"
        )
    return items, labels[first]


def mean_of_ways(suffix: str, i2t: float, t2i: float) -> dict[str, float]:
    return {
        f"map_i2t{suffix}": float(i2t),
        f"map_t2i{suffix}": float(t2i),
        f"map{suffix}": (float(i2t) + float(t2i)) / 2,
    }
