"""What recall can be at most where captions or images of an evaluation set are equal: no model can tell them apart.

An item that equals the right one is at least as similar, and ties count against the model (`ranks`). So a set in which
one caption stands on a sixth of the images has an upper bound far below an rSum of 600, whatever the model. Images are
equal where their features are; for a model that reads pixels, these stand for the pictures they were made of.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from truepair.data.pairs import IntArray, Pairs
from truepair.data.repeats import image_digests
from truepair.evaluation.retrieval import FIELD_KS, folds_of, mean_over_folds

WORTH_SAYING = 6.0
"""rSum: one percent of the largest there is. Dev and test of products have 600, of drawings 598.4 and 598.8, of emoji
597.7 and 598.2: a few captions that occur twice, of which nobody need know."""


@dataclass(frozen=True)
class RecallBound:
    """The upper bound of recall on a set, and where it comes from.

    Attributes:
        figures: `i2t_r1` … `t2i_r10` and `rsum`, as `recall` names them, that no model can exceed.
        captions: how many there are.
        shared_captions: those that another image has, letter by letter.
        most_frequent: images that the most frequent caption stands on.
        images: how many there are.
        equal_images: those whose features another image has, bit by bit.
    """

    figures: dict[str, float]
    captions: int
    shared_captions: int
    most_frequent: int
    images: int
    equal_images: int

    @classmethod
    def of(cls, pairs: Pairs, *, folds: int | None = None) -> RecallBound:
        """Of evaluation pairs, as `evaluate` takes them.

        Raises:
            InputError: a text has no image or several, or the images do not divide into folds.
        """
        image_of_text = pairs.image_of_text
        images, texts = classes_of_images(pairs), classes_of_texts(pairs)
        if folds is None:
            figures = bound_of_classes(images, texts, image_of_text)
        else:
            figures = mean_over_folds(
                bound_of_classes(images[fold.images], texts[fold.texts], fold.image_of_text)
                for fold in folds_of(image_of_text, len(images), folds)
            )
        on_images = np.unique(np.stack([texts, image_of_text]), axis=1)[0]  # once for each image
        standing = np.bincount(on_images, minlength=int(texts.max()) + 1)[texts]
        equal = np.bincount(images)[images]
        return cls(
            figures,
            len(texts),
            int((standing > 1).sum()),
            int(standing.max()),
            len(images),
            int((equal > 1).sum()),
        )

    @property
    def worth_saying(self) -> bool:
        """Whether the bound is lower than that of nearly all evaluation sets of the field."""
        return self.figures["rsum"] < 2 * len(FIELD_KS) * 100 - WORTH_SAYING

    def to_dict(self) -> dict[str, Any]:
        """The figures, and beside them the counts."""
        found = asdict(self)
        return {**found.pop("figures"), **found}


def recall_bounds(splits: Mapping[str, Pairs | None], *, folds: int | None = None) -> dict[str, dict[str, Any]]:
    """Split → `RecallBound.to_dict`, of those splits whose bound is worth saying.

    Raises:
        InputError: as `RecallBound.of`.
    """
    found = {name: RecallBound.of(pairs, folds=folds) for name, pairs in splits.items() if pairs is not None}
    return {name: each.to_dict() for name, each in found.items() if each.worth_saying}


def bound_of_classes(
    image_class: IntArray, text_class: IntArray, image_of_text: IntArray, ks: Sequence[int] = FIELD_KS
) -> dict[str, float]:
    """Upper bound of recall at k for every ranking by a function of the two classes, in percent, and their sum.

    Equal items are ranked alike: among equal images the ranking of texts is one, and of different images at most k can
    have a text of their own among its first k. Nor can an image whose every caption stands on k other images or more,
    as these texts tie with its own. The same holds the other way, where all texts of an image count.

    Args:
        image_class: (images,) integers, equal for images that no model can tell apart.
        text_class: (texts,) integers, equal for texts that no model can tell apart.
        image_of_text: (texts,) integers, the image each text belongs to; images without a text are no queries.
        ks: the k of recall at k.
    """
    place = np.stack([image_of_text, text_class])
    _, pair_of_text, own = np.unique(place, axis=1, return_inverse=True, return_counts=True)
    tied_texts = np.bincount(text_class)[text_class] - own[pair_of_text.reshape(-1)]  # of other images
    fewest = np.full(len(image_class), np.iinfo(np.int64).max)
    np.minimum.at(fewest, image_of_text, tied_texts)
    queries = np.unique(image_of_text)
    tied_images = (np.bincount(image_class)[image_class] - 1)[image_of_text]
    figures = {}
    for k in ks:
        found = queries[fewest[queries] < k]
        figures[f"i2t_r{k}"] = 100 * _first_of_each(image_class[found], k) / len(queries)
    for k in ks:
        found = np.flatnonzero(tied_images < k)
        figures[f"t2i_r{k}"] = 100 * _of_few_images(text_class[found], image_of_text[found], k) / len(text_class)
    return {**figures, "rsum": sum(figures.values())}


def _first_of_each(classes: IntArray, k: int) -> int:
    """How many there are if each class counts k times at most."""
    return int(np.minimum(np.bincount(classes), k).sum()) if len(classes) else 0


def _of_few_images(text_class: IntArray, image: IntArray, k: int) -> int:
    """How many texts there are of the k images of each class that have most of its texts."""
    groups, texts = np.unique(np.stack([text_class, image]), axis=1, return_counts=True)
    order = np.lexsort((-texts, groups[0]))
    classes, texts = groups[0][order], texts[order]
    starts = np.flatnonzero(np.diff(classes, prepend=-1))
    position = np.arange(len(classes)) - np.repeat(starts, np.diff(starts, append=len(classes)))
    return int(texts[position < k].sum())


def classes_of_images(pairs: Pairs) -> IntArray:
    """(images,) int64, equal where features are, bit by bit; all different where a source has none."""
    features = pairs.images.features
    if not int(np.prod(features.shape[1:])):
        return np.arange(len(features))
    return _numbered(image_digests(features))


def classes_of_texts(pairs: Pairs) -> IntArray:
    """(texts,) int64, equal where captions are, letter by letter, or vectors, where texts are these."""
    texts = pairs.texts
    if texts.features is not None:
        return _numbered(image_digests(texts.features))
    numbers: dict[str, int] = {}  # an array of words would be as wide as the longest of all captions
    return np.array([numbers.setdefault(caption, len(numbers)) for caption in texts.captions], dtype=np.int64)


def _numbered(values: Any) -> IntArray:
    return np.asarray(np.unique(values, return_inverse=True)[1], dtype=np.int64).reshape(-1)
