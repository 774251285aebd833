"""How a method divides the pairs, and how well what it believes finds the mismatched ones, where the truth is known."""

from __future__ import annotations

from typing import Any

import numpy as np

from truepair.correspondence.division import Part
from truepair.data.pairs import Array, BoolArray, IntArray
from truepair.errors import InputError

BELIEF_BINS = 20


def detection(
    belief: Array, mismatched: BoolArray, *, taken_as_matched: BoolArray | None = None
) -> dict[str, float | None]:
    """Figures in [0, 1] for finding the mismatched pairs; None where a figure is undefined.

    `auroc`: the chance that a mismatched pair has a lower belief than a matched one, ties counting half.
    `average_precision`: the mean precision over the mismatched pairs, in ascending order of belief. Both are None when
    all pairs or none are mismatched.

    With `taken_as_matched`, the division that training acted on is scored too: `division_accuracy`, the share of
    pairs on the right side; `division_precision`, the share of the pairs set aside that are mismatched (None when none
    is set aside); `division_recall`, the share of the mismatched pairs that are set aside (None without any).

    Args:
        belief: (N,) higher = matched; any real scale, infinite values included.
        mismatched: (N,) bool, the truth.
        taken_as_matched: (N,) bool, the side each pair was put on.

    Raises:
        InputError: there are no pairs, the lengths differ, a mask is not bool, or a belief is NaN.
    """
    belief = np.asarray(belief)
    mismatched = _mask("mismatched", mismatched, belief)
    if belief.ndim != 1 or not len(belief) or belief.dtype.kind not in "fiub":
        raise InputError(f"belief is {belief.dtype} of shape {belief.shape}; expected real numbers, one per pair")
    missing = np.flatnonzero(np.isnan(belief))
    if len(missing):
        raise InputError(f"belief[{missing[0]}] is NaN; every pair needs a belief: look for a loss that is not finite")
    figures: dict[str, float | None] = {"auroc": None, "average_precision": None}
    if mismatched.any() and not mismatched.all():
        from sklearn.metrics import average_precision_score, roc_auc_score

        # Both figures depend on the order alone; places instead of values let infinite beliefs through scikit-learn.
        suspicion = -np.unique(belief, return_inverse=True)[1]
        figures["auroc"] = float(roc_auc_score(mismatched, suspicion))
        figures["average_precision"] = float(average_precision_score(mismatched, suspicion))
    if taken_as_matched is not None:
        set_aside = ~_mask("taken_as_matched", taken_as_matched, belief)
        found = int((set_aside & mismatched).sum())
        figures["division_accuracy"] = float((set_aside == mismatched).mean())
        figures["division_precision"] = found / int(set_aside.sum()) if set_aside.any() else None
        figures["division_recall"] = found / int(mismatched.sum()) if mismatched.any() else None
    return figures


def _mask(name: str, values: Array, belief: Array) -> BoolArray:
    mask = np.asarray(values)
    if mask.dtype != np.bool_ or mask.shape != belief.shape:
        raise InputError(
            f"{name} is {mask.dtype} of shape {mask.shape}; expected bool of shape {belief.shape}, as belief"
        )
    return mask


def division_record(division: IntArray, mismatched: BoolArray | None, *, belief: Array | None = None) -> dict[str, Any]:
    """Sizes `clean`, `hard`, `noisy` of a division, and the share of matched pairs in each, in [0, 1].

    The shares `clean_matched`, `hard_matched` and `noisy_matched` are there where the truth is known; None for an empty
    part. So are, with `belief`, `belief_matched_mean` and `belief_mismatched_mean`, the mean belief of the truly
    matched and of the mismatched pairs (GSC, figure 5a), None where there is no such pair; and `belief_matched` and
    `belief_mismatched`, how many of them have a belief in each of 20 equal bins of [0, 1].

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
            for name, pairs in (("matched", ~mismatched), ("mismatched", mismatched)):
                record[f"belief_{name}_mean"] = _mean(belief[pairs])
                record[f"belief_{name}"] = np.histogram(belief[pairs], BELIEF_BINS, (0, 1))[0].tolist()
    return record


def _mean(values: Array) -> float | None:
    return float(values.mean(dtype=np.float64)) if len(values) else None
