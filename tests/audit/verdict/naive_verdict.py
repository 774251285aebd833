"""What the verdict computes, in plain float64 loops."""

import itertools
import math


def pool_adjacent_violators(levels, weights):
    """The non-increasing sequence nearest to some levels, by merging neighbours in the wrong order."""
    blocks = []
    for level, weight in zip(levels, weights, strict=True):
        blocks.append([level, weight, 1])
        while len(blocks) > 1 and blocks[-2][0] <= blocks[-1][0]:
            level, weight, count = blocks.pop()
            mean = (blocks[-1][0] * blocks[-1][1] + level * weight) / (blocks[-1][1] + weight)
            blocks[-1] = [mean, blocks[-1][1] + weight, blocks[-1][2] + count]
    return blocks


def median(values):
    values, half = sorted(values), len(values) // 2
    return values[half] if len(values) % 2 else (values[half - 1] + values[half]) / 2


def naive_knots(score, ruler, known_weights, share):
    """(place, p_match) of every block of the isotonic regression, without ties between the scores."""
    rows = [(value, 0.0, 1 / len(score)) for value in score]
    rows += [(value, 1.0, weight) for value, weight in zip(ruler, known_weights, strict=True)]
    rows.sort()
    knots, first = [], 0
    for level, _, count in pool_adjacent_violators([row[1] for row in rows], [row[2] for row in rows]):
        odds = level / (1 - level) if level < 1 else math.inf
        odds = max(odds, 0.5 / len(ruler))
        knots.append(
            (median([row[0] for row in rows[first : first + count]]), min(max(1 - share * odds, 1e-4), 0.9999))
        )
        first += count
    return knots


def naive_p_match(value, knots):
    """Linear log odds between the knots; only for values between the first and the last."""
    for (left, low), (right, high) in itertools.pairwise(knots):
        if left <= value <= right:
            a, b = math.log(low / (1 - low)), math.log(high / (1 - high))
            return 1 / (1 + math.exp(-(a + (b - a) * (value - left) / (right - left))))
    raise ValueError(value)


def naive_share(score, ruler, caution, times=1):
    """(π, standard error, quantile) by counting, without ties in the ruler; each pair is scored `times`."""
    ruler, best = sorted(ruler), None
    pairs, made = len(score) / times, len(ruler) / times
    low, high = max(10 * times, len(ruler) // 20), len(ruler) * 0.95
    for count in sorted({int(low + (high - low) * step / 59) for step in range(60)}):
        edge, q = ruler[count - 1], count / len(ruler)
        below = sum(1 for value in score if value <= edge) / len(score)
        least = max(below, 1 / pairs)
        error = least / q * math.sqrt((1 - q) / (q * made) + (1 - least) / (least * pairs))
        if best is None or below / q + caution * error < best[0]:
            best = below / q + caution * error, below / q, error, q
    return min(best[1], 1.0), best[2], best[3]


def naive_error(p_match, mismatched, bins=10):
    """Expected calibration error."""
    total = 0.0
    for k in range(bins):
        inside = [i for i, p in enumerate(p_match) if k / bins <= p < (k + 1) / bins or (k == bins - 1 and p == 1)]
        if inside:
            believed = math.fsum(p_match[i] for i in inside) / len(inside)
            right = sum(1 for i in inside if not mismatched[i]) / len(inside)
            total += len(inside) / len(p_match) * abs(believed - right)
    return total
