"""The share of near mismatches against plain loops over its ranks."""

import math

import numpy as np
import pytest

from truepair.audit.scoring.local_ranks import LocalRanks
from truepair.audit.verdict import near_share as room
from truepair.audit.verdict.near_share import HARD, near_share, uniform_part
from truepair.correspondence.mixture_proportion import Estimate


def naive_uniform_part(given, synthetic, bins, grid, rounds):
    """(π, low, high) by loops: EM of the weights of rising powers for every π of a grid."""
    ordered, powers = sorted(synthetic), (2, 3, 5, 9, 17, 33)
    shapes = [lambda x, k=k: x**k for k in powers] + [lambda x: max(2 * x - 1, 0)]  # cumulative
    edges = sorted({ordered[k * len(ordered) // bins] for k in range(1, bins)} - {ordered[-1]})
    below = [0.0, *(sum(1 for value in ordered if value <= edge) / len(ordered) for edge in edges), 1.0]
    counts = [0] * (len(edges) + 1)
    for value in given:
        counts[sum(1 for edge in edges if edge < value)] += 1
    found = []
    for step in range(grid):
        share, weights = step / (grid - 1), [1 / len(shapes)] * len(shapes)

        def density(b, weights, share=share):
            rising = sum(w * (g(below[b + 1]) - g(below[b])) for w, g in zip(weights, shapes, strict=True))
            return share * (below[b + 1] - below[b]) + (1 - share) * rising

        for _ in range(rounds if share < 1 else 0):
            known = [density(b, weights) for b in range(len(counts))]
            weights = [
                w
                * sum(
                    count * (1 - share) * (g(below[b + 1]) - g(below[b])) / known[b] for b, count in enumerate(counts)
                )
                for w, g in zip(weights, shapes, strict=True)
            ]
            weights = [w / sum(weights) for w in weights]
        likelihood = sum(count * math.log(density(b, weights)) for b, count in enumerate(counts))
        found.append((likelihood / (1 + len(given) / len(synthetic)), share))
    best = max(likelihood for likelihood, _ in found)
    likely = [share for likelihood, share in found if likelihood >= best - 2.7]
    return next(share for likelihood, share in found if likelihood == best), likely[0], likely[-1]


def naive_near_share(both, given, synthetic, random_share, random_error):
    """(share, low, high, counted) by loops; `both` as `naive_uniform_part` gives it."""
    quantiles = []
    for value in given:
        smaller = sum(1 for other in synthetic if other < value)
        equal = sum(1 for other in synthetic if other == value)
        quantiles.append((smaller + equal / 2) / len(synthetic))
    below = sum(2.0 if u < 0.5 else 1.0 if u == 0.5 else 0.0 for u in quantiles) / len(quantiles)
    part = max(below / 2, 1 / len(given))
    variance = 1 / len(synthetic) + max(1 - part, 0) / (part * len(given))
    below_error = 2 * part * math.sqrt(variance)
    matched = (sum(quantiles) / len(quantiles) - both[0] / 2) / (1 - both[0]) if both[0] < 1 else 1.0
    tail = HARD * min(max(1 - matched, 0.0), 0.5)
    error = math.sqrt(((both[2] - both[1]) / 4) ** 2 + random_error**2 + tail**2)
    raw = both[0] - random_share
    counted = raw * max(0.0, 1 - (error / raw) ** 2) if raw > 0 else 0.0
    share = min(max(raw, 0.0), 1 - random_share)
    high = max(below, both[0]) - random_share + 2 * math.hypot(below_error, random_error)
    high = min(max(high, 0.0), 1 - random_share)
    return share, max(share - 2 * error, 0.0), max(share, high), min(counted, 1 - random_share)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("lift", [0.0, 0.4, -3.0])
def test_the_near_share_as_plain_loops_say(seed, lift, monkeypatch):
    for name, value in (("BINS", 8), ("GRID", 21), ("ROUNDS", 40)):
        monkeypatch.setattr(room, name, value)
    rng = np.random.default_rng(seed)
    ranks = [LocalRanks(rng.integers(0, 9, 40 + k) / 8 + lift, rng.integers(0, 9, 90) / 8) for k in range(2)]
    given, synthetic = ([*getattr(ranks[0], side), *getattr(ranks[1], side)] for side in ("given", "synthetic"))
    both = naive_uniform_part(given, synthetic, 8, 21, 40)
    assert uniform_part(np.array(given), np.array(synthetic)) == pytest.approx(both)
    random = Estimate(0.1, 0.05, 0.15, 0.03, 0.5)
    found = near_share(ranks, random)
    expected = naive_near_share(both, given, synthetic, random.share, random.error)
    assert (found.share, found.low, found.high, found.counted) == pytest.approx(expected)
    assert found.pairs == 81


@pytest.mark.parametrize("given", [np.zeros(1), np.ones(1), np.full(512, 0.5), np.linspace(-9, 9, 2)])
def test_degenerate_values_have_a_share(given):
    for synthetic in (np.zeros(1), np.full(90, 0.5), np.linspace(0, 1, 20_000)):
        share, low, high = uniform_part(given, synthetic)
        assert 0 <= low <= share <= high <= 1


def test_the_interval_holds_the_share_of_drawn_mixtures():
    rng = np.random.default_rng(0)
    held, synthetic = 0, rng.random(4000)
    for draw in range(120):
        share, power = (0.05, 0.2, 0.5)[draw % 3], (3, 5, 20)[draw % 9 // 3]
        matched = rng.random(1200) ** (1 / power)  # of a density with that power, less one
        given = np.where(rng.random(1200) < share, rng.random(1200), matched)
        _, low, high = uniform_part(given, synthetic)
        held += low <= share <= high
    assert held >= 0.93 * 120


def test_a_near_share_is_counted_as_far_as_it_is_certain():
    rng = np.random.default_rng(0)
    counted = []
    for share in (0.0, 0.05, 0.1, 0.2, 0.4, 0.8):
        given = np.where(rng.random(4000) < share, rng.random(4000), rng.random(4000) ** (1 / 9))
        counted.append(near_share([LocalRanks(given, rng.random(16_000))], Estimate(0, 0, 0, 0, 0.5)).counted)
    assert counted[:2] == [0.0, 0.0] and 0.1 < counted[3] < 0.2 and counted[5] > 0.75
    assert counted == sorted(counted)
