"""One score of all evidence on a pair."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from truepair.audit.scoring.evidence import NearestCopies, varying
from truepair.audit.verdict.probability import Calibration
from truepair.audit.verdict.share import estimate_share, quantiles_among
from truepair.data.pairs import Array

ROUNDS = 3
FIT_AT_MOST = 200_000
FAR = 100.0
STEPS = 20
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


def guarded(weights: Array, given: Array, copies: NearestCopies | None, *, near: float = 0.0) -> tuple[Array, float]:
    """The weights, with as much of them given to the first column as it takes to rank captions of the nearest other
    image better than the plain similarity does, by half of what can be gained; and the part that is left.

    Weights are learned from mismatches that are easier to see. The neighbours even speak for a caption of the nearest
    image: that image stands among them. A mere tie on these copies would leave no room for the chance in them.

    Args:
        weights: (d,) of the evidence, whose first column is the log odds of matching.
        given: (M, d).
        copies: evidence of such captions; None leaves the weights as they are.
        near: share of the mismatches that are near ones, in [0, 1]; so much of what is left is given away as well.
    """
    if copies is None or not len(copies.copies) or not varying(given)[0]:
        return weights, 1.0
    columns, spread = copies.given.shape[1], np.where(varying(given), given.std(axis=0), 1.0)
    tried = [moved(weights, spread, columns, step / STEPS)[:columns] for step in range(STEPS + 1)]
    reached = [auroc(copies.given @ each, copies.copies @ each) for each in tried]
    plain = auroc(copies.given_similarity, copies.similarity)
    least = plain + max(max(reached) - plain, 0.0) / 2
    part = max((step / STEPS for step, found in enumerate(reached) if found >= least), default=0.0)
    left = (1 - near) * part
    return moved(weights, spread, columns, left), left


def moved(weights: Array, spread: Array, columns: int, part: float) -> Array:
    """Only `part` of the weights of the columns 1 … `columns` − 1; the rest, by spread, is given to the first."""
    weights = weights.copy()
    taken = (1 - part) * weights[1:columns]
    weights[0] += float((taken * spread[1:columns]).sum()) / spread[0]
    weights[1:columns] -= taken
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
