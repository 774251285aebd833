"""Mixture proportion estimation: what share π of given pairs are random mismatches, from their scores alone.

Synthetic mismatches show what a mismatch scores like. Random mismatches are counted at the low end of the scores, where
matched pairs hardly ever are.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from truepair.data.pairs import Array

LEAST_SYNTHETIC = 20  # synthetic mismatches, below which nothing is estimated
QUANTILES = 60
CAUTION = 3.0  # standard errors: with fewer, the luckiest of the small quantiles is taken, and π is too small
MOST = 0.95  # of the synthetic mismatches: the highest tell nothing of the low end

WIDTH = 3.6
"""Standard errors of the 95 % interval: the least of many ratios is less certain than each. With `FEWER` and `EXTENT`
it covers π in 0.93 of the draws and more: two normal distributions 1.5, 2, 3 and 4 deviations apart, π from 0.02 to
0.8, 2,000 to 12,000 pairs, 300 to 20,000 synthetic mismatches (tests/audit/verdict/test_share.py)."""
FEWER = 4.0  # pairs that may be missing at the low end by chance
EXTENT = 1.1  # of the low end, along which matched pairs may become more frequent


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


def estimate_share(score: Array, synthetic: Array, *, times: float = 1) -> Estimate:
    """π: given pairs below a quantile q of the synthetic mismatches, as a share of all, over q.

    Matched pairs below the quantile make the ratio too large and few pairs make it uncertain; the q is taken where the
    upper end of the ratio is least (best bin estimation, Garg et al., NeurIPS 2021). Where matched pairs reach to the
    lowest scores, every ratio is too large: so the lower end of the interval is not above what is left at the quantile
    0 when the share of pairs is extrapolated to it, from below `MOST`: far above the others, matched pairs are all
    beyond it.

    Args:
        score: (M,) of the given pairs, larger = better matched.
        synthetic: (P,) of random synthetic mismatches, P ≥ 20 `times`.
        times: that every pair was scored, by models of other divisions into folds. The mean over these is steadier than
            one of them; as certain as one of them, since all are of the same pairs. Copies of pairs count here, too.
    """
    synthetic = np.sort(synthetic)
    pairs, made = len(score) / times, len(synthetic) / times
    fewest, most = max(int(times * LEAST_SYNTHETIC) // 2, len(synthetic) // 20), len(synthetic) * MOST
    counts = np.linspace(fewest, most, QUANTILES).astype(int)
    edges = np.unique(synthetic[counts - 1])
    quantile = np.searchsorted(synthetic, edges, side="right") / len(synthetic)  # more than the count where ties are
    usable = quantile <= MOST if quantile[0] <= MOST else quantile == quantile[0]
    edges, quantile = edges[usable], quantile[usable]
    below = np.searchsorted(np.sort(score), edges, side="right") / len(score)
    error = ratio_error(below, quantile, pairs, made)
    best = int(np.argmin(below / quantile + CAUTION * error))
    share, q = float(below[best] / quantile[best]), float(quantile[best])
    more = below[best] + FEWER / pairs
    high = more / q + WIDTH * float(ratio_error(more, q, pairs, made))
    end = min(EXTENT * q, max(q, MOST))
    rest, rest_error = intercept(quantiles_among(score, synthetic), end)
    rest_error = float(np.hypot(rest_error * np.sqrt(times), max(rest, 0.0) * np.sqrt(4 / (end * made))))
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


def quantiles_among(values: Array, synthetic: Array) -> Array:
    """(n,) share of the synthetic values that are smaller, equal ones half."""
    ordered = np.sort(synthetic)
    sides = (np.searchsorted(ordered, values, side=side) for side in ("left", "right"))
    share: Array = sum(sides, np.zeros(len(values))) / (2 * len(ordered))
    return share


def auroc_among(values: Array, synthetic: Array) -> float:
    """Area under the ROC curve of values (n,) against synthetic ones (m,), in [0, 1]: ½ where they are alike.

    How often a value is larger than a synthetic one, equal ones half (Mann–Whitney).
    """
    return float(quantiles_among(values, synthetic).mean())


def intercept(u: Array, end: float) -> tuple[float, float]:
    """Density of u at 0, of a line through u < `end`, and its standard error: the mean of 4/h (1 − 3u/2h) below h."""
    each = np.where(u < end, 4 / end * (1 - 1.5 * u / end), 0.0)
    return float(each.mean()), float(each.std() / np.sqrt(len(u)))


def ratio_error(below: Any, quantile: Any, pairs: float, synthetic: float) -> Any:
    """Standard error of below/quantile, both shares counted in samples; as if one pair more were below."""
    below = np.maximum(below, 1 / pairs)
    variance = (1 - quantile) / (quantile * synthetic) + np.maximum(1 - below, 0) / (below * pairs)
    return below / quantile * np.sqrt(variance)
