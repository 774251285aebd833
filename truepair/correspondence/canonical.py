"""How well pairs fit that a linear model has not learned: cross-fitted canonical correlation analysis (CCA).

A network learns wrong pairs by heart, and then they look right to it. What is learned of the *other* pairs cannot do
that. So the pairs are divided into folds by their images, and each fold is scored by a model of the others: directions
of the image vectors and of the text vectors that vary together. It has a closed form, so that many such models cost
seconds. Wrong pairs among those that it learns from weigh less: pairs of the other folds are weighted by how probably
they match, by scores that are held out as well, from models of the rest of them. Nothing that scores a fold has seen
one of its pairs.

Shape letters: N pairs, D and E widths of the vectors, K directions, n pairs of a block.
Source: ridge CCA, Vinod (1976). The weights are posteriors, as in expectation maximisation, of calibrated scores.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass

import numpy as np

from truepair.correspondence.calibration import Calibration
from truepair.correspondence.mixture_proportion import quantiles_among
from truepair.data.pairs import Array, IntArray
from truepair.errors import InputError
from truepair.seeding import generator

FOLDS = 5
ROUNDS = 2
"""Times that the pairs of the other folds are weighted. At 80 % noise, AUROC of the mean of five divisions with 1 to 4
(seed 0): emoji 0.871, 0.877, 0.876, 0.876; drawings 0.791, 0.801, 0.804, 0.804."""
DIRECTIONS = 64
RIDGES = (0.1, 0.3, 1.0, 3.0, 10.0)  # in units of the mean variance of a coordinate
BLOCK = 1024  # pairs that are compared with each other
ROWS_AT_ONCE = 8192
SMALLEST = 1e-300


@dataclass(frozen=True)
class HeldOutScores:
    """Scores by models that have learned of none of what they score.

    A score is the log of how much more probable two items are than random ones: the mean of both directions of softmax.

    Attributes:
        given: (N,) float64, of the given pairs.
        synthetic: (P,) float64, of synthetic mismatches: images with the text of another one.
    """

    given: Array
    synthetic: Array

    @classmethod
    def together(cls, several: Sequence[HeldOutScores]) -> HeldOutScores:
        """Those of several divisions into folds, one after the other: of every pair as many as there are of these."""
        given, synthetic = zip(*((each.given, each.synthetic) for each in several), strict=True)
        return cls(np.concatenate(given), np.concatenate(synthetic))

    def matching(self, share: float) -> Array:
        """(N,) p_match of the given pairs, 1 − π f₀/f, calibrated by the synthetic mismatches.

        Args:
            share: π, in [0, 1].
        """
        weights = np.full(len(self.synthetic), 1 / len(self.synthetic))
        return Calibration.of(self.given, self.synthetic, weights, share)(self.given)


def folds_of(image_rows: IntArray, seed: int) -> IntArray:
    """The fold of every pair, (N,) int64: as many images in each as can be.

    Raises:
        InputError: fewer than two images a fold.
    """
    distinct, place = np.unique(image_rows, return_inverse=True)
    if len(distinct) < 2 * FOLDS:
        raise InputError(f"{len(distinct)} images; held-out scores need at least {2 * FOLDS}")
    folds: IntArray = (generator(seed, "held-out folds").permutation(len(distinct)) % FOLDS)[place]
    return folds


@dataclass(frozen=True)
class Decorrelated:
    """Vectors of one side along the principal axes of their covariance, centred: (N, D) float32, and their variances
    along these, (D,) float64.
    """

    rows: Array
    variances: Array

    @classmethod
    def of(cls, vectors: Array) -> Decorrelated:
        """Raises InputError: all vectors are equal."""
        centre = vectors.mean(axis=0, dtype=np.float64)
        moments = np.zeros((vectors.shape[1], vectors.shape[1]))
        for start in range(0, len(vectors), ROWS_AT_ONCE):
            block = vectors[start : start + ROWS_AT_ONCE] - centre
            moments += block.T @ block
        variances, axes = np.linalg.eigh(moments / len(vectors))
        if not variances[-1] > 0:
            raise InputError("all vectors of a side are equal; nothing can be learned of them")
        rows = np.empty(vectors.shape, dtype=np.float32)
        for start in range(0, len(vectors), ROWS_AT_ONCE):
            rows[start : start + ROWS_AT_ONCE] = (vectors[start : start + ROWS_AT_ONCE] - centre) @ axes
        return cls(rows, np.maximum(variances, 0))

    def scale(self, ridge: float) -> Array:
        """(D,) by which rows are whitened: to variances of one along the large axes, and less along small ones."""
        scale: Array = 1 / np.sqrt(self.variances + ridge * self.variances.mean())
        return scale


@dataclass(frozen=True)
class Directions:
    """K directions of either side that vary together, each scaled by the square root of how much: (D, K), (E, K)."""

    images: Array
    texts: Array

    @classmethod
    def of(cls, covariance: Array, scales: tuple[Array, Array]) -> Directions:
        """Those of a covariance (D, E) of vectors that are whitened by these scales, for vectors that are not.

        Its first singular vectors, by the eigenvectors of the smaller one of its products with itself.
        """
        from scipy.linalg import eigh

        whitened = scales[0][:, None] * covariance * scales[1]
        upright = whitened if whitened.shape[0] >= whitened.shape[1] else whitened.T
        width = upright.shape[1]
        squares, short = eigh(upright.T @ upright, subset_by_index=[max(0, width - DIRECTIONS), width - 1])
        root = np.maximum(squares, 0) ** 0.25  # of how much they vary together
        safe = np.where(root > 0, root, 1.0)
        sides = upright @ short / safe, short * root
        images, texts = sides if upright is whitened else sides[::-1]
        return cls(scales[0][:, None] * images, scales[1][:, None] * texts)


class CrossFittedCCA:
    """Models of N pairs by the folds, and what they say of the pairs that they have not seen.

    The ridge is chosen by how well models of equally weighted pairs tell given pairs from synthetic mismatches: the
    smallest one that is within a standard error of the best.

    Args:
        images, texts: (N, D) and (N, E), those of a pair in the same row.
        image_rows: (N,) which image a pair has: pairs of one are in the same fold. Copies of a pair have to count as of
            one image (`repeats.with_copies`).
        temperature: of the softmax over cosines, above 0.
        seed: of the folds, and of the order in which pairs are compared.

    Attributes:
        ridge: that of all models.
        first: scores by models of equally weighted pairs.

    Raises:
        InputError: a vector is not finite, there are fewer than two images a fold, or all vectors of a side are equal.
    """

    def __init__(self, images: Array, texts: Array, image_rows: IntArray, *, temperature: float, seed: int) -> None:
        for name, vectors in (("images", images), ("texts", texts)):
            if not np.isfinite(vectors).all():
                at = int(np.flatnonzero(~np.isfinite(vectors).all(axis=1))[0])
                raise InputError(f"{name}[{at}] is not finite; expected vectors of finite numbers")
        self.image_rows, self.temperature = image_rows, temperature
        self.images, self.texts = Decorrelated.of(images), Decorrelated.of(texts)
        self._divide(seed)
        trials = {ridge: self._of_equal_weights(ridge) for ridge in RIDGES}
        auroc = {ridge: float(quantiles_among(each.given, each.synthetic).mean()) for ridge, each in trials.items()}
        error = np.sqrt(1 / (12 * len(image_rows)))  # of the mean of quantiles
        self.ridge = min(ridge for ridge in RIDGES if auroc[ridge] >= max(auroc.values()) - error)
        self.first = trials[self.ridge]

    def _divide(self, seed: int) -> None:
        self.seed, fold = seed, folds_of(self.image_rows, seed)
        by_image = np.argsort(self.image_rows, kind="stable")  # whatever order the pairs are in
        self.places = [by_image[fold[by_image] == each] for each in range(FOLDS)]
        self.equal = [self.covariance(places, np.ones(len(fold))) for places in self.places]

    def divided(self, times: int) -> list[CrossFittedCCA]:
        """These models, and those of other divisions into folds, `times` in all (repeated cross-fitting)."""
        others = [copy(self) for _ in range(1, times)]
        for number, other in enumerate(others, start=1):
            other._divide(self.seed + number)
            other.first = other._of_equal_weights(self.ridge)
        return [self, *others]

    def _of_equal_weights(self, ridge: float) -> HeldOutScores:
        """Scores of all pairs, each fold by a model of the others."""
        return self._joined([self.scores(self.learned(self.equal, ridge, but=each), each) for each in range(FOLDS)])

    def cleaned(self, share: float, rounds: int = ROUNDS) -> HeldOutScores:
        """The same, where pairs of the other folds are weighted so often, by models that have not seen the scored one
        either.

        The weight is the probability that a pair matches, calibrated by synthetic mismatches (`Calibration`).

        Args:
            share: π of the pairs, in [0, 1].
        """
        found = []
        for held in range(FOLDS):
            others = [each for each in range(FOLDS) if each != held]
            rest = np.concatenate([self.places[each] for each in others])
            parts = [self.equal[each] for each in others]
            for _ in range(rounds):
                inner = [
                    self.scores(self.learned(parts, self.ridge, but=number), each) for number, each in enumerate(others)
                ]
                weights = np.zeros(len(self.image_rows))
                weights[rest] = HeldOutScores.together(inner).matching(share)
                parts = [self.covariance(self.places[each], weights) for each in others]
            found.append(self.scores(self.learned(parts, self.ridge), held))
        return self._joined(found)

    def learned(self, covariances: list[Array], ridge: float, *, but: int | None = None) -> Directions:
        """The model of some folds together, without one of them."""
        together = np.sum([each for number, each in enumerate(covariances) if number != but], axis=0)
        return Directions.of(together, (self.images.scale(ridge), self.texts.scale(ridge)))

    def _joined(self, found: list[HeldOutScores]) -> HeldOutScores:
        given = np.zeros(len(self.image_rows))
        for places, scores in zip(self.places, found, strict=True):
            given[places] = scores.given
        return HeldOutScores(given, np.concatenate([scores.synthetic for scores in found]))

    def covariance(self, places: IntArray, weights: Array) -> Array:
        """Σ w x yᵀ of some pairs, (D, E) float64; its size is of no matter but beside that of other folds."""
        total: Array = np.zeros((self.images.rows.shape[1], self.texts.rows.shape[1]))
        for rows in np.array_split(places, -(-len(places) // ROWS_AT_ONCE)):
            total += (self.images.rows[rows] * weights[rows, None]).T @ self.texts.rows[rows]
        return total

    def scores(self, learned: Directions, fold: int) -> HeldOutScores:
        """Scores of the pairs of a fold, in their order, by cosines along the directions, block by block."""
        places = self.places[fold]
        given, synthetic = np.zeros(len(places)), []
        order = generator(self.seed, "held-out blocks", fold).permutation(len(places))
        for block in np.array_split(order, -(-len(places) // BLOCK)):
            rows = places[block]
            images = unit(self.images.rows[rows] @ learned.images)
            texts = unit(self.texts.rows[rows] @ learned.texts)
            logits = images @ texts.T
            logits /= self.temperature
            logits -= logits.max()
            image, after = self.image_rows[rows], np.roll(np.arange(len(block)), -1)
            own, other = logits.diagonal().copy(), logits[np.arange(len(block)), after]
            exponentials = np.exp(logits, out=logits)
            given[block] = own - (log_mean(exponentials, axis=1) + log_mean(exponentials, axis=0)) / 2
            # The partners of a wrong pair are seldom among its competitors: those of a synthetic one are taken out.
            np.fill_diagonal(exponentials, 0.0)
            by_row = log_mean(exponentials, axis=1)
            exponentials[image[:, None] == image] = 0.0
            by_column = log_mean(exponentials, axis=0)
            synthetic.append((other - (by_row + by_column[after]) / 2)[image != image[after]])
        return HeldOutScores(given, np.concatenate(synthetic))


def unit(rows: Array) -> Array:
    """Rows of length one; those of length zero as they are."""
    length = np.linalg.norm(rows, axis=1, keepdims=True)
    return rows / np.where(length > 0, length, 1.0)


def log_mean(exponentials: Array, axis: int) -> Array:
    """The log of the mean along an axis, of numbers that are not negative."""
    logarithms: Array = np.log(np.maximum(exponentials.mean(axis=axis), SMALLEST))
    return logarithms
