"""How well a belief about pairs finds the mismatched ones, when the truth is known (injected noise)."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from truepair.errors import InputError

Array = npt.NDArray[Any]
BoolArray = npt.NDArray[np.bool_]


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
    figures = _ranking(belief, mismatched)
    if taken_as_matched is not None:
        figures |= _division(~_mask("taken_as_matched", taken_as_matched, belief), mismatched)
    return figures


def _mask(name: str, values: Array, belief: Array) -> BoolArray:
    mask = np.asarray(values)
    if mask.dtype != np.bool_ or mask.shape != belief.shape:
        raise InputError(
            f"{name} is {mask.dtype} of shape {mask.shape}; expected bool of shape {belief.shape}, as belief"
        )
    return mask


def _ranking(belief: Array, mismatched: BoolArray) -> dict[str, float | None]:
    if mismatched.all() or not mismatched.any():
        return {"auroc": None, "average_precision": None}
    from sklearn.metrics import average_precision_score, roc_auc_score

    # Both figures depend on the order alone; places instead of values let infinite beliefs through scikit-learn.
    suspicion = -np.unique(belief, return_inverse=True)[1]
    return {
        "auroc": float(roc_auc_score(mismatched, suspicion)),
        "average_precision": float(average_precision_score(mismatched, suspicion)),
    }


def _division(set_aside: BoolArray, mismatched: BoolArray) -> dict[str, float | None]:
    found = int((set_aside & mismatched).sum())
    return {
        "division_accuracy": float((set_aside == mismatched).mean()),
        "division_precision": _share(found, int(set_aside.sum())),
        "division_recall": _share(found, int(mismatched.sum())),
    }


def _share(part: int, whole: int) -> float | None:
    return part / whole if whole else None
