"""One score of all evidence on a pair."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from truepair.audit.scoring.evidence import NearestCopies, varying
from truepair.correspondence.calibration import Calibration
from truepair.correspondence.mixture_proportion import estimate_share, quantiles_among
from truepair.data.pairs import Array

ROUNDS = 3
FIT_AT_MOST = 200_000
FAR = 100.0
STEPS, TIE = 20, 1e-9
NO_SIGN = 0.01
"""Below this the estimate is what unusual but right pairs look like; it is not taken as a sign of noise."""


@dataclass(frozen=True)
class Synthetic:
    """Synthetic mismatches of one or more kinds as one sample of f₀: rows (P, d), and weights (P,) that sum to 1."""

    rows: Array
    weights: Array

    @classmethod
    def of(cls, kinds: Mapping[str, Array], shares: Mapping[str, float]) -> Synthetic:
        total = sum(shares[kind] for kind in kinds)
        each = [np.full(len(rows), shares[kind] / total / len(rows)) for kind, rows in kinds.items()]
        return cls(np.concatenate(list(kinds.values())), np.concatenate(each))


def combine(given: Array, synthetic: Synthetic, rng: np.random.Generator, share: float | None = None) -> Array:
    """Weights (d,) ≥ 0 of the evidence in one score, in units of its spread among the given pairs.

    Starts with equal weights, then learns to tell the synthetic mismatches, and the given ones as far as they are
    believed mismatched, from the given ones as far as they are believed matched (logistic regression on the pairs'
    probabilities, a few rounds). A weight that would turn evidence round is 0.

    Args:
        share: π where it is known; None estimates it in every round.
    """
    usable = varying(given)
    spread = np.where(usable, given.std(axis=0), 1.0)
    weights: Array = usable / spread
    if usable.sum() < 2:
        return weights if usable.any() else np.ones(given.shape[1])
    if len(given) > FIT_AT_MOST:
        given = given[np.sort(rng.choice(len(given), FIT_AT_MOST, replace=False))]
    for _ in range(ROUNDS):
        score, known = given @ weights, synthetic.rows @ weights
        now = estimate_share(score, known).share if share is None else share
        if now <= NO_SIGN:
            break  # there is nothing to learn a mismatch from but the synthetic mismatches itself
        matched = Calibration.of(score, known, synthetic.weights, now)(score)
        learned = np.zeros(len(spread))
        learned[usable] = np.maximum(
            _logistic(
                np.ascontiguousarray((given / spread)[:, usable]),
                np.ascontiguousarray((synthetic.rows / spread)[:, usable]),
                synthetic.weights,
                matched,
            ),
            0.0,
        )
        if not learned.any():
            break
        weights = learned / spread
    return weights


def mean_weights(given: Array, first: Array, second: Array, part: float) -> Array:
    """The mean of two weightings of evidence, each in units of its score's spread; `part` of the second."""
    first, second = (weights / max(float((given @ weights).std()), 1e-300) for weights in (first, second))
    mean: Array = (1 - part) * first + part * second
    return mean


def guarded(
    weights: Array, given: Array, random: Array, copies: NearestCopies | None, *, near: float
) -> tuple[Array, float]:
    """The weights, with as much of the second one (the neighbours') given to the first as ranks mismatches best, random
    and near ones as they are expected; and the part that is left.

    Weights are learned from mismatches that are easy to see. The neighbours even speak for a caption of the nearest
    other image: that image stands among them. So near mismatches are stood for by copies of such captions, and the
    AUROC on them and on random mismatches is weighed by how many of each there seem to be. Of equal ones the largest
    part is left.

    Args:
        weights: (d,) of the evidence: the log odds of matching, the neighbours', others.
        given: (M, d).
        random: (P, d) evidence of random synthetic mismatches.
        copies: evidence of such captions, without the memory; None leaves the weights as they are.
        near: share of the mismatches that are near ones, in [0, 1].
    """
    usable = varying(given)
    if copies is None or not len(copies.copies) or copies.given.shape[1] < 2 or not usable[0]:
        return weights, 1.0
    columns, spread = copies.given.shape[1], np.where(usable, given.std(axis=0), 1.0)
    reached = []
    for step in range(STEPS + 1):
        tried = moved(weights, spread, step / STEPS)[:columns]
        known = copies.given @ tried
        reached.append(
            (1 - near) * auroc(known, random[:, :columns] @ tried) + near * auroc(known, copies.copies @ tried)
        )
    part = max(step for step in range(STEPS + 1) if reached[step] >= max(reached) - TIE) / STEPS
    return moved(weights, spread, part), part


def moved(weights: Array, spread: Array, part: float) -> Array:
    """Only `part` of the second weight; the rest, by spread, is given to the first."""
    weights = weights.copy()
    taken = (1 - part) * weights[1]
    weights[0] += float(taken * spread[1]) / spread[0]
    weights[1] -= taken
    return weights


def auroc(given: Array, mismatched: Array) -> float:
    """Probability that a mismatch scores below a given pair, equal ones half."""
    return float(1 - quantiles_among(mismatched, given).mean())


def _logistic(given: Array, known: Array, synthetic_weights: Array, matched: Array) -> Array:
    from sklearn.linear_model import LogisticRegression

    # The solver stalls where the mean of a column (its spread is 1) is very far from 0.
    mean = given.mean(axis=0)
    rows = np.concatenate([given, given, known]) - np.where(np.abs(mean) > FAR, mean, 0.0)
    labels = np.concatenate([np.ones(len(given)), np.zeros(len(given) + len(known))])
    # The known ones count as much as the believed ones together, so that neither drowns the other.
    believed = max(float((1 - matched).sum()), 1.0)
    weights = np.concatenate([matched, 1 - matched, synthetic_weights * believed])
    learned: Array = LogisticRegression(C=1.0, max_iter=200).fit(rows, labels, sample_weight=weights).coef_[0]
    return learned
