"""How a method divides the pairs: sizes of the parts, and how pure each is where the truth is known."""

from __future__ import annotations

from typing import Any

import numpy as np

from truepair.correspondence.division import Part
from truepair.data.pairs import Array, BoolArray, IntArray


def division_record(
    division: IntArray, mismatched: BoolArray | None, *, belief: Array | None = None
) -> dict[str, int | float | None]:
    """Sizes `clean`, `hard`, `noisy` of a division, and the share of matched pairs in each, in [0, 1].

    The shares `clean_matched`, `hard_matched` and `noisy_matched` are there where the truth is known; None for an empty
    part. So are, with `belief`, `belief_matched_mean` and `belief_mismatched_mean`, the mean belief of the truly
    matched and of the mismatched pairs (GSC, figure 5a); None where there is no such pair.

    Args:
        division: (N,) values of `Part`.
        mismatched: (N,) the truth, or None.
        belief: (N,) how much each pair is believed to match.
    """
    record: dict[str, Any] = {part.name.lower(): int((division == part).sum()) for part in reversed(Part)}
    if mismatched is not None:
        for part in reversed(Part):
            record[f"{part.name.lower()}_matched"] = _mean(~mismatched[division == part])
        if belief is not None:
            record["belief_matched_mean"] = _mean(belief[~mismatched])
            record["belief_mismatched_mean"] = _mean(belief[mismatched])
    return record


def _mean(values: Array) -> float | None:
    return float(values.mean(dtype=np.float64)) if len(values) else None
