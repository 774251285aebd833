"""Retrieval with each kind of part: invariant parts should find, exclusive ones should be no better than chance.

A plain cosine of V_X and T_X looks like chance for any two heads that were never aligned, whatever they hold. The
sharper test learns the alignment first: a linear map from T_X to V_X, fitted on pairs of the training split, then
retrieval on the analysed split. What both parts know of the pair, such a map brings out. The same map from T_S to V_S
is the comparison.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from operator import attrgetter

import numpy as np
import torch
from torch import Tensor

from truepair.data.pairs import Array, IntArray
from truepair.engines.unit import unit
from truepair.evaluation import recall
from truepair.evaluation.retrieval import FIELD_KS
from truepair.evaluation.subspaces import EncodedParts
from truepair.pages.analysis.subject import Split
from truepair.seeding import generator

MOST_FITTED = 5000
STRENGTHS = (1e-3, 1e-2, 1e-1, 1.0, 10.0)
"""Penalties to choose from, in units of the mean variance of a column of x."""
HELD_OUT = 0.1
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


@dataclass(frozen=True)
class LinearMap:
    """ŷ = (x − x̄) W + ȳ, fitted by ridge regression: what one part tells of another, read linearly.

    Attributes:
        weights: W, (D_x, D_y).
        x_mean, y_mean: x̄ (D_x,) and ȳ (D_y,) of the rows it was fitted on.
        strength: the penalty that was chosen, one of STRENGTHS.
    """

    weights: Array
    x_mean: Array
    y_mean: Array
    strength: float

    def centred(self, x: Tensor) -> Array:
        """ŷ − ȳ of n rows, (n, D_y)."""
        return (x.double().numpy() - self.x_mean) @ self.weights

    def explained(self, x: Tensor, y: Tensor) -> float:
        """R² on other rows: 1 − Σ‖y − ŷ‖² / Σ‖y − ȳ‖² ≤ 1; below 0 where ȳ would guess better; 0 of a constant."""
        target = y.double().numpy() - self.y_mean
        whole = float((target**2).sum())
        return 1 - float(((target - self.centred(x)) ** 2).sum()) / whole if whole > 0 else 0.0


def fit_ridge(x: Tensor, y: Tensor, *, seed: int) -> LinearMap:
    """The map from x (n, D_x) to y (n, D_y), n ≥ 2; the penalty is the best of STRENGTHS on a held-out tenth."""
    values, targets = x.double().numpy(), y.double().numpy()
    order = generator(seed, "ridge held out").permutation(len(values))
    held = max(1, round(HELD_OUT * len(values)))
    scored, fitted = order[:held], order[held:]

    def error(strength: float) -> float:
        found = _solve(values[fitted], targets[fitted], strength)
        mapped = (values[scored] - found.x_mean) @ found.weights + found.y_mean
        return float(((mapped - targets[scored]) ** 2).sum())

    return _solve(values, targets, min(STRENGTHS, key=error))


def _solve(x: Array, y: Array, strength: float) -> LinearMap:
    """W = (XᵀX/n + λ v I)⁻¹ XᵀY/n of centred X and Y, v the mean variance of the columns of x, λ the strength."""
    x_mean, y_mean = x.mean(axis=0), y.mean(axis=0)
    centred = x - x_mean
    covariance, cross = centred.T @ centred / len(x), centred.T @ (y - y_mean) / len(x)
    scale = float(np.trace(covariance)) / len(covariance) or 1.0
    weights = np.linalg.solve(covariance + strength * scale * np.eye(len(covariance)), cross)
    return LinearMap(weights, x_mean, y_mean, strength)
