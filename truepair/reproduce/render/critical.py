"""Several methods over several blocks: Friedman's test, Nemenyi's critical difference, and who is told apart by it.

Source: Demšar 2006, "Statistical comparisons of classifiers over multiple data sets" (JMLR 7), section 3.2.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

SURE = 0.05


def friedman_chance(values: Mapping[str, Sequence[float]]) -> float:
    """p of Friedman's test that no method differs; 1 where all values of each block are equal.

    Args:
        values: method → a value a block, the same blocks for all; at least three methods and two blocks.
    """
    from scipy.stats import friedmanchisquare

    columns = list(values.values())
    if all(len(set(block)) == 1 for block in zip(*columns, strict=True)):
        return 1.0
    return float(friedmanchisquare(*columns).pvalue)


def critical_difference(methods: int, blocks: int, alpha: float = SURE) -> float:
    """Nemenyi's: mean ranks further apart than q_α √(k (k + 1)/(6 N)) differ at level α.

    Args:
        methods, blocks: k ≥ 2 and N ≥ 1.
    """
    from scipy.stats import studentized_range

    critical = float(studentized_range.ppf(1 - alpha, methods, math.inf)) / math.sqrt(2)
    return critical * math.sqrt(methods * (methods + 1) / (6 * blocks))


def not_told_apart(ranks: Mapping[str, float], distance: float) -> list[tuple[str, ...]]:
    """The largest groups of methods whose mean ranks lie within the distance, the best first; none of a single one."""
    order = sorted(ranks, key=lambda name: ranks[name])
    groups: list[tuple[str, ...]] = []
    for first, name in enumerate(order):
        inside = tuple(other for other in order[first:] if ranks[other] - ranks[name] <= distance)
        if len(inside) > 1 and not any(set(inside) <= set(group) for group in groups):
            groups.append(inside)
    return groups
