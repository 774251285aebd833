"""How many of the given pairs are near mismatches (a caption of a similar thing): counted by their local ranks, as
random ones (`truepair.correspondence.mixture_proportion`) do not differ there from near ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from truepair.audit.scoring.local_ranks import LocalRanks
from truepair.correspondence.mixture_proportion import Estimate, quantiles_among, ratio_error
from truepair.data.pairs import Array

HALF = 0.5
TINY = 1e-300
BINS, POWERS, GRID, ROUNDS = 30, (2, 3, 5, 9, 17, 33), 401, 300
LIKELY = 2.7
"""Log-likelihood below the largest one, within which a share is in the 95 % interval: rather more than half of χ²'s
3.84, as drawn samples ask for (tests/audit/verdict/test_near_share.py)."""

HARD = 0.6
"""Standard deviation of the share that local ranks show and that is none, in units of 1 − m, m the mean quantile of
matched pairs among their like: 1 where a model always tells them from these, ½ where it never does. What it cannot tell
lies at the low end, too. Seen without noise (share, 1 − m): 0.01, 0.12 on `fashion`, 0.04, 0.06 on `emoji`, 0.06 to
0.13, 0.23 on embeddings of `flickr8k`, 0.07, 0.25 on 1,000 of its photographs."""


@dataclass(frozen=True)
class NearShare:
    """The share of near mismatches, beside that of random ones.

    Attributes:
        share, low, high: in [0, 1]. `high` takes every pair of a low local rank for mismatched, `share` only those that
            are no matched pairs which cannot be told from their neighbours, as far as this can be seen.
        counted: what of it is counted: nothing where `share` is one standard error, nearly all where it is many.
        pairs: how many pairs were asked.
    """

    share: float
    low: float
    high: float
    counted: float
    pairs: int


def near_share(ranks: Sequence[LocalRanks], random: Estimate) -> NearShare:
    """The share of near mismatches, by the local ranks of pairs in one or more spaces.

    The quantile u of a pair's local rank among those of synthetic mismatches is uniform for a mismatch, near or random,
    while matched pairs become the more frequent the larger it is. So the uniform part of the density of u is the share
    of both kinds (`uniform_part`). All pairs below ½ together are an upper bound of it. Near mismatches that rank high
    among their like are missed.
    """
    given, synthetic = (np.concatenate([getattr(one, side) for one in ranks]) for side in ("given", "synthetic"))
    if not len(synthetic):
        return NearShare(0.0, 0.0, 1.0 - random.share, 0.0, len(given))
    both, least, most = uniform_part(given, synthetic)
    u = quantiles_among(given, synthetic)
    matched = (float(u.mean()) - both * HALF) / (1 - both) if both < 1 else 1.0  # their mean quantile
    tail = HARD * float(np.clip(1 - matched, 0.0, HALF))
    below = float((u < HALF).mean() + (u == HALF).mean() / 2) / HALF
    below_error = float(ratio_error(below * HALF, HALF, len(given), len(synthetic)))
    error = float(np.sqrt(((most - least) / 4) ** 2 + random.error**2 + tail**2))
    share = both - random.share
    counted = share * max(0.0, 1 - (error / share) ** 2) if share > 0 else 0.0
    high = max(below, both) - random.share + 2 * float(np.hypot(below_error, random.error))
    room = 1 - random.share
    share, high = (float(np.clip(value, 0.0, room)) for value in (share, high))
    return NearShare(share, max(share - 2 * error, 0.0), max(share, high), min(counted, room), len(given))


def uniform_part(given: Array, synthetic: Array) -> tuple[float, float, float]:
    """π of a density π + (1 − π) Σ w_k g_k(u), and its 95 % interval; u is the quantile among the synthetic values.

    g_k are rising densities: k u^(k−1) of some powers, and 0 below, 2 above ½. Their weights w are whatever makes the
    given values most likely; so are π (to 1/400) and, by the profile likelihood, its interval. Values are counted in
    bins of as many synthetic ones each, ties in the same bin.

    Args:
        given, synthetic: (n,) and (P,) values on one scale, P ≥ 1.
    """
    ordered = np.sort(synthetic)
    edges = np.unique(ordered[np.arange(1, BINS) * len(ordered) // BINS])
    edges = edges[edges < ordered[-1]]
    below = np.concatenate([[0.0], np.searchsorted(ordered, edges, side="right") / len(ordered), [1.0]])
    counts = np.bincount(np.searchsorted(edges, given), minlength=len(edges) + 1).astype(float)
    cumulative = [*(below**power for power in POWERS), np.maximum(2 * below - 1, 0)]
    uniform, rising = np.diff(below), np.diff(np.stack(cumulative))
    share = np.linspace(0, 1, GRID)[:, None]
    weights = np.full((GRID, len(rising)), 1 / len(rising))
    density = share * uniform + (1 - share) * (weights @ rising)
    for _ in range(ROUNDS):  # EM
        weights *= counts * (1 - share) / density @ rising.T + TINY
        weights /= weights.sum(axis=1, keepdims=True)
        density = share * uniform + (1 - share) * (weights @ rising)
    likelihood = (counts * np.log(density)).sum(axis=1) / (1 + len(given) / len(synthetic))  # both are samples
    likely = share[likelihood >= likelihood.max() - LIKELY, 0]
    return float(share[likelihood.argmax(), 0]), float(likely[0]), float(likely[-1])
