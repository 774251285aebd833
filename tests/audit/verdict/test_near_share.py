"""The share of near mismatches against plain loops over its ranks."""

import math

import numpy as np
import pytest

from truepair.audit.scoring.local_ranks import LocalRanks
from truepair.audit.verdict.share import TAIL, Estimate, near_share


def naive_near_share(given, synthetic, random_share, random_error):
    """(share, low, high, counted) by loops; the half of the quantiles is 1/2."""
    quantiles = []
    for value in given:
        smaller = sum(1 for other in synthetic if other < value)
        equal = sum(1 for other in synthetic if other == value)
        quantiles.append((smaller + equal / 2) / len(synthetic))
    line = [8 * (1 - 3 * u) if u < 0.5 else 0.0 for u in quantiles]  # 4/h (1 − 3u/2h), h = 1/2
    both = sum(line) / len(line)
    spread = math.sqrt(sum((value - both) ** 2 for value in line) / len(line))
    below = sum(2.0 if u < 0.5 else 1.0 if u == 0.5 else 0.0 for u in quantiles) / len(quantiles)
    part = max(below / 2, 1 / len(given))
    variance = 1 / len(synthetic) + max(1 - part, 0) / (part * len(given))
    below_error = 2 * part * math.sqrt(variance)
    error = math.sqrt(spread**2 / len(given) + random_error**2 + TAIL**2)
    raw = min(both, below) - random_share
    counted = raw * max(0.0, 1 - (2 * error / raw) ** 2) if raw > 0 else 0.0
    share = min(max(raw, 0.0), 1 - random_share)
    high = below - random_share + 2 * math.hypot(below_error, random_error)
    high = min(max(high, 0.0), 1 - random_share)
    return share, max(share - 2 * error, 0.0), max(share, high), min(counted, 1 - random_share)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("lift", [0.0, 0.4, -3.0])
def test_the_near_share_as_plain_loops_say(seed, lift):
    rng = np.random.default_rng(seed)
    ranks = [LocalRanks(rng.integers(0, 9, 40 + k) / 8 + lift, rng.integers(0, 9, 90) / 8) for k in range(2)]
    given, synthetic = ([*getattr(ranks[0], side), *getattr(ranks[1], side)] for side in ("given", "synthetic"))
    random = Estimate(0.1, 0.05, 0.15, 0.03, 0.5)
    found = near_share(ranks, random)
    expected = naive_near_share(given, synthetic, random.share, random.error)
    assert (found.share, found.low, found.high, found.counted) == pytest.approx(expected)
    assert found.pairs == 81
