"""Retrieval with each kind of part: invariant parts should find, exclusive ones should be no better than chance.

A plain cosine of V_X and T_X looks like chance for any two heads that were never aligned, whatever they hold. The
sharper test learns the alignment first: a linear map from T_X to V_X, fitted on pairs of the training split, then
retrieval on the analysed split. What both parts know of the pair, such a map brings out. The same map from T_S to V_S
is the comparison.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from operator import attrgetter

import numpy as np
import torch
from torch import Tensor

from truepair.data.pairs import IntArray
from truepair.engines.unit import unit
from truepair.evaluation import recall
from truepair.evaluation.retrieval import FIELD_KS
from truepair.evaluation.subspaces import EncodedParts
from truepair.pages.analysis.ridge import LinearMap, fit_ridge
from truepair.pages.analysis.subject import Split
from truepair.seeding import generator

MOST_FITTED = 5000
Figures = dict[str, float]
Chosen = Callable[[EncodedParts], Tensor]


invariant: Chosen = attrgetter("invariant")
exclusive: Chosen = attrgetter("exclusive")


def cosine_recall(split: Split, part: Chosen) -> Figures:
    """The figures of `recall` when images and texts are compared by the cosine of one of their parts."""
    return recall(unit(part(split.images)) @ unit(part(split.texts)).T, split.pairs.image_of_text)


def mapped_recall(split: Split, part: Chosen, text_to_image: LinearMap) -> Figures:
    """The figures when the texts' parts go through a map to the images' parts first; both less the fitted mean."""
    images = part(split.images).double().numpy() - text_to_image.y_mean
    texts = text_to_image.centred(part(split.texts))
    similarity = unit(torch.from_numpy(images)) @ unit(torch.from_numpy(texts)).T
    return recall(similarity, split.pairs.image_of_text)


def fit_on_pairs(split: Split, part: Chosen, *, seed: int) -> LinearMap:
    """The map from the texts' part to the images' part, fitted on at most 5,000 pairs drawn at random."""
    pairs = split.pairs
    chosen = generator(seed, "fitted pairs").permutation(len(pairs))[:MOST_FITTED]
    images = part(split.images)[torch.from_numpy(pairs.image_index[chosen])]
    texts = part(split.texts)[torch.from_numpy(pairs.text_index[chosen])]
    return fit_ridge(texts, images, seed=seed)


def chance(image_of_text: IntArray, images: int) -> Figures:
    """Expected R@k in per cent both ways, and their sum, when the order of all candidates is random: exact.

    A text has one right image among `images`: k / images. An image with c of the M texts succeeds unless the first k
    texts are all among the M − c others: 1 − C(M − c, k) / C(M, k). Images without a text are no queries, as in
    `recall`, but candidates.

    Args:
        image_of_text: (M,) the image of each text.
        images: number of images.
    """
    texts = len(image_of_text)
    counts = np.bincount(image_of_text, minlength=images)
    sizes, uses = np.unique(counts[counts > 0], return_counts=True)
    figures = {}
    for k in FIELD_KS:
        misses = [math.comb(texts - int(size), min(k, texts)) / math.comb(texts, min(k, texts)) for size in sizes]
        figures[f"i2t_r{k}"] = 100 * (1 - float(np.average(misses, weights=uses)))
    for k in FIELD_KS:
        figures[f"t2i_r{k}"] = 100 * min(k, images) / images
    figures["rsum"] = sum(figures.values())
    return figures
