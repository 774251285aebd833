"""Which class labels are wrong, and how many, by linear models that have not learned the label they judge.

A network learns wrong labels by heart, so that it can tell neither. The pairs are divided into folds by their images;
ridge regressions of the class indicators, of the images' and of the texts' vectors, are fitted to the other folds and
score the pairs of this one. The likelihood of the given labels g under symmetric noise puts the scores s_m together:

    P(g | x) = (1 − ρ) p_g(x) + ρ/K,    p(x) = softmax(1/M Σ_m exp(α_m) s_m(x) + β),

with a share ρ of the labels drawn anew from all classes, and Bayes' rule says what the class is:

    q_c(x, g) ∝ p_c(x) ((1 − ρ) [c = g] + ρ/K).

Shape letters: N pairs, D width of the vectors of a side, K classes, M = 6 models, S pairs that the likelihood is of.
Source: the noise model of Natarajan et al. (2013) with held-out predictions as in Northcutt et al. (2021).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from truepair.correspondence.canonical import FOLDS, folds_of
from truepair.data.pairs import Array, IntArray
from truepair.errors import InputError
from truepair.seeding import generator

PENALTIES = (0.3, 3.0, 30.0)
"""Of the ridge regressions, in units of the mean variance of a number."""
SAMPLE = 20_000
"""Most pairs that the likelihood is of: it has K + 7 parameters."""
LEAST_IMAGES = 40 * FOLDS
MOST_UNCERTAIN = 0.05
"""Standard error of ρ up to which anything is said. Of subsets of 200 to 1,500 pairs of three data sets at 0 to 80 %
noise, ρ was within 0.11 of the truth wherever it was smaller, and up to 0.8 off where it was larger."""
LEAST_NOISE = 0.1
"""ρ from which on anything is said. Labels that all became that of a partner class look like classes that overlap: with
8 to 30 % of them wrong ρ was at most 0.04 (docs/results/labels.md), and every label would be called right."""
MOST_NOISE = 0.99
MOST_LOG_WEIGHT = 10.0  # of a model: e^10 times its deviation; further steps of the search would overflow
ROWS_AT_ONCE = 8192
FIRST_NOISE = 0.3
STEPS = 500


@dataclass(frozen=True)
class ClassNoise:
    """What held-out models say of all given labels.

    Attributes:
        share: ρ, the share of labels that were drawn anew from all classes, in [0, 0.99]; a K-th of them stays right.
        error: standard error of ρ.
        posterior: (N, K) float32 q, the probability of every class for every pair; rows sum to one.
    """

    share: float
    error: float
    posterior: Array

    @property
    def seen(self) -> bool:
        """Whether wrong labels are seen, ρ ≥ 0.1. Else there may be none, or only such as depend on the class, which
        this model does not know; `posterior` calls every label right then.
        """
        return self.share >= LEAST_NOISE

    @property
    def wrong(self) -> tuple[float, float]:
        """The share of labels that are wrong, in [0, 1], and its standard error: those of ρ times 1 − 1/K."""
        drawn = 1 - 1 / int(self.posterior.shape[1])
        return self.share * drawn, self.error * drawn

    @classmethod
    def of(
        cls,
        sides: Sequence[Array],
        image_rows: IntArray,
        labels: IntArray,
        classes: int,
        *,
        seed: int,
        copies: float = 1.0,
    ) -> ClassNoise | None:
        """None where too little can be told: with fewer than 200 images, and where ρ is uncertain by more than 0.05.

        Args:
            sides: vectors of the images and of the texts of all pairs, (N, D) each.
            image_rows: (N,) which pairs show one image, or are copies of each other (`repeats.with_copies`).
            labels: (N,) the given classes, each below `classes`.
            seed: of the division into folds and of the sample.
            copies: how often a pair is there, on average: ρ is as uncertain as by one copy of each.

        Raises:
            InputError: a vector is not finite.
        """
        for name, side in zip(("images", "texts"), sides, strict=True):
            if not np.isfinite(side).all():
                raise InputError(f"the vectors of the {name} hold NaN or infinity; see that the data are finite")
        if len(np.unique(image_rows)) < LEAST_IMAGES:
            return None
        models = HeldOutModels.of(sides, image_rows, labels, classes, seed=seed)
        chosen = np.sort(generator(seed, "class noise sample").permutation(len(labels))[:SAMPLE])
        scores = models.scores(sides, chosen)
        spread = scores.std(axis=(0, 2))
        scale = np.divide(1.0, spread, out=np.zeros_like(spread), where=spread > 0)
        likelihood = Likelihood(scores * scale[:, None], labels[chosen])
        found = likelihood.largest()
        error = likelihood.error(found) * copies**0.5
        if not error <= MOST_UNCERTAIN:
            return None
        posterior = np.empty((len(labels), classes), dtype=np.float32)
        for rows in blocks(len(labels)):
            scaled = models.scores(sides, rows) * scale[:, None]
            posterior[rows] = Likelihood(scaled, labels[rows]).posterior(found)
        return cls(found.noise, error, posterior)


def blocks(count: int) -> Iterator[IntArray]:
    for start in range(0, count, ROWS_AT_ONCE):
        yield np.arange(start, min(start + ROWS_AT_ONCE, count))


@dataclass(frozen=True)
class HeldOutModels:
    """Ridge regressions of the class indicators, of each side, fold and penalty.

    Attributes:
        folds: (N,) the fold of every pair, none of whose pairs its models have learned from.
        centres: of each side, (FOLDS, D): the mean vector of the other folds.
        weights: of each side, (FOLDS, penalties, D, K).
    """

    folds: IntArray
    centres: tuple[Array, ...]
    weights: tuple[Array, ...]

    @classmethod
    def of(
        cls, sides: Sequence[Array], image_rows: IntArray, labels: IntArray, classes: int, *, seed: int
    ) -> HeldOutModels:
        """Each fold's models from the moments of all pairs less those of the fold."""
        folds = folds_of(image_rows, seed)
        fitted = [side_models(side, labels, classes, folds) for side in sides]
        return cls(folds, tuple(centres for centres, _ in fitted), tuple(weights for _, weights in fitted))

    def scores(self, sides: Sequence[Array], rows: IntArray) -> Array:
        """(len(rows), M, K) float64, by the models that have not learned these pairs."""
        count, penalties, classes = len(rows), self.weights[0].shape[1], self.weights[0].shape[3]
        scores = np.empty((count, len(sides) * penalties, classes))
        for place, (side, centres, weights) in enumerate(zip(sides, self.centres, self.weights, strict=True)):
            for fold in range(FOLDS):
                here = self.folds[rows] == fold
                found = np.tensordot(side[rows[here]] - centres[fold], weights[fold], axes=(1, 1))
                scores[here, place * penalties : (place + 1) * penalties] = found
        return scores


class Moments(NamedTuple):
    """Sums over pairs: how many, of vectors x (D,), of x xᵀ (D, D), of x by class (D, K), of each class (K,)."""

    pairs: float
    vectors: Array
    squares: Array
    by_class: Array
    classes: Array

    @classmethod
    def of(cls, side: Array, labels: IntArray, classes: int, rows: IntArray) -> Moments:
        width = side.shape[1]
        vectors, squares, by_class = np.zeros(width), np.zeros((width, width)), np.zeros((width, classes))
        for start in range(0, len(rows), ROWS_AT_ONCE):
            part = rows[start : start + ROWS_AT_ONCE]
            block = side[part].astype(np.float64)
            vectors += block.sum(axis=0)
            squares += block.T @ block
            by_class += block.T @ np.eye(classes)[labels[part]]
        return cls(float(len(rows)), vectors, squares, by_class, np.bincount(labels[rows], minlength=classes) * 1.0)


def side_models(side: Array, labels: IntArray, classes: int, folds: IntArray) -> tuple[Array, Array]:
    """The centres (FOLDS, D) and weights (FOLDS, penalties, D, K) of one side."""
    parts = [Moments.of(side, labels, classes, np.flatnonzero(folds == fold)) for fold in range(FOLDS)]
    centres = np.empty((FOLDS, side.shape[1]))
    weights = np.empty((FOLDS, len(PENALTIES), side.shape[1], classes))
    for fold in range(FOLDS):
        others = [part for place, part in enumerate(parts) if place != fold]
        count, vectors, squares, by_class, of_class = (np.sum(each, axis=0) for each in zip(*others, strict=True))
        centre = vectors / count
        variances, axes = np.linalg.eigh(squares / count - np.outer(centre, centre))
        covariance = axes.T @ (by_class / count - np.outer(centre, of_class / count))
        variances = np.maximum(variances, 0)
        mean = variances.mean()
        centres[fold] = centre
        for place, penalty in enumerate(PENALTIES):
            total = variances + penalty * mean
            shrunk = np.divide(1.0, total, out=np.zeros_like(total), where=total > 0)
            weights[fold, place] = axes @ (shrunk[:, None] * covariance)
    return centres, weights


class Parameters(NamedTuple):
    """α of the models (M,), β of the classes (K,), and ρ."""

    models: Array
    classes: Array
    noise: float


class Likelihood:
    """Of given labels (S,), by scores (S, M, K), under symmetric noise; in float64."""

    def __init__(self, scores: Array, labels: IntArray) -> None:
        self.scores, self.labels = scores, labels
        self.rows = np.arange(len(labels))

    def largest(self) -> Parameters:
        """Where it is largest, with a square penalty of 1/S on α and β, ρ in [0, 0.99]."""
        from scipy.optimize import Bounds, minimize

        models, classes = self.scores.shape[1:]
        lower, upper = np.full(models + classes + 1, -np.inf), np.full(models + classes + 1, np.inf)
        lower[:models], upper[:models] = -MOST_LOG_WEIGHT, MOST_LOG_WEIGHT
        lower[-1], upper[-1] = 0, MOST_NOISE
        start = np.append(np.zeros(models + classes), FIRST_NOISE)
        found = minimize(
            self.loss, start, jac=True, method="L-BFGS-B", bounds=Bounds(lower, upper), options={"maxiter": STEPS}
        )
        return self.parameters(found.x)

    def loss(self, point: Array) -> tuple[float, Array]:
        """−1/S Σ log P(g | x) + 1/S (Σ α² + Σ β²) and its gradient, at α, β and ρ in one vector (M + K + 1,)."""
        at = self.parameters(point)
        given, slopes = self.slopes(at)
        count, regular = len(self.labels), point[:-1]
        gradient = -slopes.mean(axis=0)
        gradient[:-1] += 2 * regular / count
        return float(-np.log(given).mean() + (regular**2).sum() / count), gradient

    def slopes(self, at: Parameters) -> tuple[Array, Array]:
        """P(g | x), (S,), and the derivatives of log P(g | x) by all parameters, (S, M + K + 1)."""
        probability = self.probability(at)
        models, classes = self.scores.shape[1:]
        own = probability[self.rows, self.labels]
        given = np.maximum((1 - at.noise) * own + at.noise / classes, np.finfo(float).tiny)
        kept = (1 - at.noise) * own / given
        by_logit = -kept[:, None] * probability
        by_logit[self.rows, self.labels] += kept
        by_model = np.einsum("smk,sk->sm", self.scores, by_logit) * np.exp(at.models) / models
        by_noise = (1 / classes - own) / given
        return given, np.concatenate([by_model, by_logit, by_noise[:, None]], axis=1)

    def probability(self, at: Parameters) -> Array:
        """p(x), (S, K): of the classes, before a label is seen."""
        logits = np.einsum("smk,m->sk", self.scores, np.exp(at.models)) / self.scores.shape[1] + at.classes
        raised = np.exp(logits - logits.max(axis=1, keepdims=True))
        probability: Array = raised / raised.sum(axis=1, keepdims=True)
        return probability

    def posterior(self, at: Parameters) -> Array:
        """q(x, g), (S, K): of the classes, given the label."""
        probability = self.probability(at)
        weights = np.full(probability.shape, at.noise / probability.shape[1])
        weights[self.rows, self.labels] += 1 - at.noise
        product = probability * weights
        total = product.sum(axis=1, keepdims=True)
        q: Array = np.divide(product, total, out=probability.copy(), where=total > 0)
        return q

    def error(self, at: Parameters) -> float:
        """Standard error of ρ, infinite where nothing tells it: from the sum of products of the derivatives."""
        slopes = self.slopes(at)[1]
        information = slopes.T @ slopes
        places = np.arange(len(information) - 1)
        information[places, places] += 2  # of the penalty
        others = np.linalg.solve(information[:-1, :-1], information[:-1, -1])
        left = float(information[-1, -1] - information[-1, :-1] @ others)
        return left**-0.5 if left > 0 else np.inf

    def parameters(self, point: Array) -> Parameters:
        models = self.scores.shape[1]
        return Parameters(point[:models], point[models:-1], float(point[-1]))
