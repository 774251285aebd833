"""How many of the given pairs are mismatched: the share π of random mismatches, and that of near ones.

Random mismatches are counted at the low end of the scores, where matched pairs hardly ever are; near ones (a caption
of a similar thing) by their local ranks, as random ones do not differ there from near ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from truepair.audit.scoring.local_ranks import LocalRanks
from truepair.audit.scoring.synthetic_mismatches import LEAST_SYNTHETIC
from truepair.data.pairs import Array

QUANTILES = 60
CAUTION = 3.0  # standard errors: with fewer, the luckiest of the small quantiles is taken, and π is too small
MOST = 0.95  # of the synthetic mismatches: the highest tell nothing of the low end

WIDTH = 3.6
"""Standard errors of the 95 % interval: the least of many ratios is less certain than each. With `FEWER` and `EXTENT`
it covers π in 0.93 of the draws and more: two normal distributions 1.5, 2, 3 and 4 deviations apart, π from 0.02 to
0.6, 2,000 to 12,000 pairs, 300 to 20,000 synthetic mismatches (tests/audit/verdict/test_coverage.py)."""
FEWER = 4.0  # pairs that may be missing at the low end by chance
EXTENT = 1.1  # of the low end, along which matched pairs may become more frequent

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
class Estimate:
    """π of random mismatches.

    Attributes:
        share, low, high: π and its 95 % interval, in [0, 1].
        error: standard error.
        quantile: that of the synthetic mismatches below which pairs were counted.
    """

    share: float
    low: float
    high: float
    error: float
    quantile: float


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


def estimate_share(score: Array, synthetic: Array) -> Estimate:
    """π: given pairs below a quantile q of the synthetic mismatches, as a share of all, over q.

    Matched pairs below the quantile make the ratio too large and few pairs make it uncertain; the q is taken where the
    upper end of the ratio is least (best bin estimation, Garg et al., NeurIPS 2021). Where matched pairs reach to the
    lowest scores, every ratio is too large: so the lower end of the interval is not above what is left at the quantile
    0 when the share of pairs is extrapolated to it.

    Args:
        score: (M,) of the given pairs, larger = better matched.
        synthetic: (P,) of random synthetic mismatches, P ≥ 20.
    """
    synthetic = np.sort(synthetic)
    counts = np.linspace(max(LEAST_SYNTHETIC // 2, len(synthetic) // 20), len(synthetic) * MOST, QUANTILES).astype(int)
    edges = np.unique(synthetic[counts - 1])
    quantile = np.searchsorted(synthetic, edges, side="right") / len(synthetic)  # more than the count where ties are
    usable = quantile <= MOST if quantile[0] <= MOST else quantile == quantile[0]
    edges, quantile = edges[usable], quantile[usable]
    below = np.searchsorted(np.sort(score), edges, side="right") / len(score)
    error = ratio_error(below, quantile, len(score), len(synthetic))
    best = int(np.argmin(below / quantile + CAUTION * error))
    share, q = float(below[best] / quantile[best]), float(quantile[best])
    more = below[best] + FEWER / len(score)
    high = more / q + WIDTH * float(ratio_error(more, q, len(score), len(synthetic)))
    rest, rest_error = intercept(quantiles_among(score, synthetic), min(EXTENT * q, 1.0))
    rest_error = float(np.hypot(rest_error, max(rest, 0.0) * np.sqrt(4 / (min(EXTENT * q, 1.0) * len(synthetic)))))
    low = min(share - WIDTH * float(error[best]), rest - 2 * rest_error)
    share = min(share, 1.0)
    return Estimate(share, float(np.clip(low, 0.0, share)), float(np.clip(high, share, 1.0)), float(error[best]), q)


def pooled(first: Estimate, second: Estimate) -> Estimate:
    """The mean of two estimates, each weighing as much as it is certain; as certain as the better one, because both
    are of the same pairs.
    """
    better = min(first, second, key=lambda estimate: estimate.error)
    if better.error == 0:
        return better
    weights = [1 / estimate.error**2 for estimate in (first, second)]
    share = (weights[0] * first.share + weights[1] * second.share) / sum(weights)
    low, high = share - (better.share - better.low), share + (better.high - better.share)
    return Estimate(share, max(low, 0.0), min(high, 1.0), better.error, better.quantile)


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


def quantiles_among(values: Array, synthetic: Array) -> Array:
    """(n,) share of the synthetic values that are smaller, equal ones half."""
    ordered = np.sort(synthetic)
    sides = (np.searchsorted(ordered, values, side=side) for side in ("left", "right"))
    share: Array = sum(sides, np.zeros(len(values))) / (2 * len(ordered))
    return share


def intercept(u: Array, end: float) -> tuple[float, float]:
    """Density of u at 0, of a line through u < `end`, and its standard error: the mean of 4/h (1 − 3u/2h) below h."""
    each = np.where(u < end, 4 / end * (1 - 1.5 * u / end), 0.0)
    return float(each.mean()), float(each.std() / np.sqrt(len(u)))


def ratio_error(below: Any, quantile: Any, pairs: int, synthetic: int) -> Any:
    """Standard error of below/quantile, both shares counted in samples; as if one pair more were below."""
    below = np.maximum(below, 1 / pairs)
    variance = (1 - quantile) / (quantile * synthetic) + np.maximum(1 - below, 0) / (below * pairs)
    return below / quantile * np.sqrt(variance)
