"""How many pairs are mismatched, near or random, by their local ranks (`scoring.local_ranks`)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from truepair.audit.scoring.local_ranks import LocalRanks

LEFT = 0.07
"""What is taken off: matched pairs below the median of mismatches, as a part of the pairs that would be there if all
were mismatched. Seen without any noise: 0.10 to 0.11 on `fashion_precomp`, 0.08 to 0.10 on `emoji`, 0.01 on `scenes`;
this is the mean of the three."""


@dataclass(frozen=True)
class LocalShare:
    """Attributes:
    share: π, in [0, 1].
    error: standard error of π.
    pairs: how many pairs were asked.
    """

    share: float
    error: float
    pairs: int


def share_below_median(ranks: Sequence[LocalRanks]) -> LocalShare:
    """π of pairs, from their ranks and those of synthetic mismatches; equal ranks count half."""
    given, known = (np.concatenate([getattr(one, side) for one in ranks]) for side in ("given", "synthetic"))
    if not len(known):
        return LocalShare(0.0, 1.0, len(given))
    median = float(np.median(known))
    below, half = (float(((side < median) + (side == median) / 2).mean()) for side in (given, known))
    ratio = min(below / max(half, 1e-9), 1.0)
    error = ratio * np.sqrt((1 - below) / max(below * len(given), 1.0) + (1 - half) / max(half * len(known), 1.0))
    return LocalShare(max(ratio - LEFT, 0.0) / (1 - LEFT), float(error) / (1 - LEFT), len(given))
