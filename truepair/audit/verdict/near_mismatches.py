"""Whether some captions belong to another pair of the same kind of thing, and what that changes.

A near mismatch scores between a matched pair and a random mismatch, so that no low end of the scores belongs to it
alone, and random synthetic mismatches miss it. Local ranks count it like any other, only less exactly.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from truepair.audit.verdict.local_share import LocalShare
from truepair.audit.verdict.low_end import Estimate
from truepair.data.pairs import Array

LEAST_MORE, MORE_OF_RANDOM = 0.06, 0.35
"""How much more the local ranks have to find: so much, so much of the other estimate, and their own error.

Where all mismatches are random they find somewhat more as well, because noise makes models see worse. Set on seed 0 of
`fashion_precomp`, `emoji` and `scenes`. Seen with all seeds of `results/audit`: without noise at most 0.044 more; with
10 to 60 % random noise at most 0.15 (0.35 → 0.50), never enough; with 20 to 60 % near mismatches 0.13 to 0.59 more and
always enough, but for `scenes` at 20 % (0.06)."""

UNCERTAIN = 0.05
"""Of a believed share, beside its standard error. Where the truth is known it was off by 0.08 on average (root mean
square), by 0.19 at most; `low_end.WIDTH` makes 0.17 of it."""

MOST_NEAR = 0.99  # of the mismatched pairs: the lowest scores are a random mismatch's in any case


@dataclass(frozen=True)
class NearMismatches:
    """Attributes:
    share: π of all mismatches, near and random; that of the synthetic mismatches where near ones are not believed in.
    error: its standard error.
    at_most: what local ranks found, whether believed or not: π may be so large.
    believed: whether there are near mismatches.
    """

    share: float
    error: float
    at_most: float
    believed: bool


def near_mismatches(random: Estimate, local: LocalShare | None) -> NearMismatches:
    """The share of mismatches, by the synthetic mismatches of random ones and by the local ranks."""
    if local is None:
        return NearMismatches(random.share, random.error, random.share, False)
    enough = LEAST_MORE + MORE_OF_RANDOM * random.share + local.error
    if local.share - random.share <= enough:
        return NearMismatches(random.share, random.error, max(local.share, random.share), False)
    return NearMismatches(local.share, float(np.hypot(local.error, UNCERTAIN)), local.share, True)


def near_weight(score: Array, random: Array, near: Array, share: float, quantile: float) -> float:
    """Which part of all mismatched pairs are near ones, in [0, 0.99]: what makes as many pairs lie below a quantile of
    the random ones as do.

    Below an edge where no matched pair is, a part `quantile` of the random ones lies, and a smaller one of the near.

    Args:
        score, random, near: (M,) of the given pairs, (P,) and (Q,) of known mismatches.
        share: π of both kinds together, above 0.
        quantile: of the random ones, where the edge is.
    """
    edge = np.quantile(random, quantile, method="inverted_cdf")
    below, of_random, of_near = (float((rows <= edge).mean()) for rows in (score, random, near))
    if of_random <= of_near:
        return MOST_NEAR  # the scores do not tell near from random ones
    return float(np.clip((of_random - below / share) / (of_random - of_near), 0.0, MOST_NEAR))


def record(found: NearMismatches, local: LocalShare | None, weight: float) -> dict[str, Any] | None:
    """For the summary: JSON values; None without local ranks."""
    if local is None:
        return None
    return {
        "believed": found.believed,
        "share_local": round(local.share, 4),
        "local_pairs": local.pairs,
        "share_near": round(weight * found.share if found.believed else 0.0, 4),
    }
