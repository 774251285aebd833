"""Distributions that are tilts of each other: log density ratios linear in a score (Qin, Biometrika 1998, eq. 2.1)."""

from __future__ import annotations

import numpy as np

from truepair.data.pairs import Array

PENALTY = 1e-3
"""Of half the squared slopes: where kinds do not overlap, the likelihood has no largest value without it."""

STEPS, HALVINGS = 50, 20
GAIN = 1e-10  # of the mean log-likelihood; Newton's method converges quadratically, so what is left is far less


def fit_tilts(counts: Array, score: Array, tilts: Array) -> Array:
    """The tilts (2, K), slopes and levels, at which P(kind | score) ∝ exp(slope · score + level) is most likely.

    Multinomial logistic regression on one score, by Newton's method. The levels sum to 0, as the slopes do.

    Args:
        counts: (K, n) of each kind at each score, not negative.
        score: (n,) of about unit spread.
        tilts: (2, K) to start from; zeros where nothing is known.
    """
    total = counts.sum(axis=0)
    likelihood = _likelihood(counts, score, tilts)
    for _ in range(STEPS):
        step = _newton_step(counts, total, score, tilts)
        for _ in range(HALVINGS):
            after = _likelihood(counts, score, tilts + step)
            if after >= likelihood:
                break
            step = step / 2
        else:
            return tilts
        gained, likelihood, tilts = after - likelihood, after, tilts + step
        if gained <= GAIN * total.sum():
            break
    return tilts


def log_probability(score: Array, tilts: Array) -> Array:
    """(K, n) log P(kind | score)."""
    tilted = tilts[0][:, None] * score + tilts[1][:, None]
    log_probability: Array = tilted - np.logaddexp.reduce(tilted, axis=0)
    return log_probability


def _likelihood(counts: Array, score: Array, tilts: Array) -> float:
    return float((counts * log_probability(score, tilts)).sum() - PENALTY / 2 * (tilts[0] ** 2).sum())


def _newton_step(counts: Array, total: Array, score: Array, tilts: Array) -> Array:
    kinds = len(counts)
    probability = np.exp(log_probability(score, tilts))
    rest = counts - probability * total
    gradient = np.concatenate([rest @ score - PENALTY * tilts[0], rest.sum(axis=1)])
    # (K, K, n): the negative second derivatives by the tilted scores of two kinds.
    curvature = total * probability[:, None] * (np.eye(kinds)[:, :, None] - probability[None, :])
    mixed = curvature @ score
    hessian = np.block([[curvature @ score**2, mixed], [mixed, curvature.sum(axis=2)]])
    hessian[:kinds, :kinds] += PENALTY * np.eye(kinds)
    hessian[kinds:, kinds:] += total.sum() / kinds**2  # a level common to all kinds changes nothing: it stays as it is
    step: Array = np.linalg.lstsq(hessian, gradient, rcond=None)[0]  # singular where there are no counts
    return step.reshape(2, kinds)
