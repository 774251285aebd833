"""What a correction of class labels made of them: counts against the truth, confusion, mean distributions."""

from __future__ import annotations

import numpy as np

from truepair.data.pairs import Array, IntArray
from truepair.errors import InputError
from truepair.evaluation.average_precision import as_labels

Record = dict[str, float | int | None]


def label_record(given: Array, distribution: Array, truth: Array | None) -> Record:
    """How many labels a correction changed, and how many of these changes were right.

    Keys: `corrected_accuracy` and `given_accuracy` in [0, 1]; counts of pairs: `errors_given`, `errors_corrected`,
    `changed`, `repaired` (wrong → right), `spoiled` (right → wrong). All but `changed` are None without the truth. A
    change from one wrong label to another is neither repaired nor spoiled.

    Args:
        given: (N,) integers, the class of each pair as given.
        distribution: (N, K) floats, how probable each class is held to be; rows need not sum to 1.
        truth: (N,) integers, the class each pair really has; None where unknown.

    Raises:
        InputError: there are no pairs, lengths differ, a class is outside 0 … K − 1, or a probability is negative or
            NaN.
    """
    corrected = corrected_classes(given, distribution)
    given = as_labels("given", given)
    changed = int((corrected != given).sum())
    if truth is None:
        unknown = ("corrected_accuracy", "given_accuracy", "errors_given", "errors_corrected", "repaired", "spoiled")
        return {**dict.fromkeys(unknown), "changed": changed}
    true = _checked("truth", truth, len(given), distribution.shape[1])
    right, right_now = given == true, corrected == true
    return {
        "corrected_accuracy": float(right_now.mean()),
        "given_accuracy": float(right.mean()),
        "errors_given": int((~right).sum()),
        "errors_corrected": int((~right_now).sum()),
        "changed": changed,
        "repaired": int((~right & right_now).sum()),
        "spoiled": int((right & ~right_now).sum()),
    }


def corrected_classes(given: Array, distribution: Array) -> IntArray:
    """The most probable class of each pair, (N,) int64.

    A given label that is among the most probable stays: a tie accuses nobody, nor does a row of zeros, which partial
    transport leaves of a pair it did not label. Other ties go to the first class.

    Raises:
        InputError: as `label_record`.
    """
    if distribution.ndim != 2 or not len(distribution) or distribution.dtype.kind != "f":
        raise InputError(
            f"distribution is {distribution.dtype} of shape {distribution.shape}; expected floats of shape (pairs, "
            "classes) with at least one pair"
        )
    wrong = np.argwhere(~(distribution >= 0))
    if len(wrong):
        pair, place = wrong[0].tolist()
        raise InputError(
            f"distribution[{pair}, {place}] is {distribution[pair, place]}; expected probabilities: look for a loss "
            "that is not finite"
        )
    labels = _checked("given", given, *distribution.shape)
    kept = np.take_along_axis(distribution, labels[:, None], axis=1)[:, 0] == distribution.max(axis=1)
    return np.where(kept, labels, distribution.argmax(axis=1))


def confusion(corrected: Array, truth: Array, classes: int) -> IntArray:
    """How many pairs of each true class (row) have each corrected class (column), (K, K) int64.

    Raises:
        InputError: lengths differ, or a class is outside 0 … K − 1.
    """
    found = _checked("corrected", corrected, len(as_labels("truth", truth)), classes)
    true = _checked("truth", truth, len(found), classes)
    counts: IntArray = np.bincount(true * classes + found, minlength=classes * classes).reshape(classes, classes)
    return counts.astype(np.int64)


def mean_distribution(distribution: Array, truth: Array) -> Array:
    """Mean corrected distribution of the pairs of each true class (row), (K, K) float64 (UOT-RCL, figure 8).

    Each pair's distribution is scaled to sum 1 first; a pair without any is left out. Rows sum to 1, but for classes
    of which no pair is left: those are NaN.

    Args:
        distribution: (N, K) floats ≥ 0.
        truth: (N,) integers.

    Raises:
        InputError: lengths differ, or a class is outside 0 … K − 1.
    """
    true = _checked("truth", truth, *distribution.shape)
    mass = distribution.sum(axis=1, dtype=np.float64)
    some = mass > 0
    sums = np.zeros((distribution.shape[1],) * 2)
    np.add.at(sums, true[some], distribution[some] / mass[some, None])
    totals = np.bincount(true[some], minlength=len(sums))[:, None]
    return np.where(totals > 0, sums / np.maximum(totals, 1), np.nan)


def _checked(name: str, values: Array, count: int, classes: int) -> IntArray:
    labels = as_labels(name, values)
    if len(labels) != count:
        raise InputError(f"{name} has {len(labels)} entries for {count} pairs; there must be one for each")
    outside = np.flatnonzero((labels < 0) | (labels >= classes))
    if len(outside):
        raise InputError(f"{name}[{outside[0]}] is {labels[outside[0]]}; expected a class in 0 … {classes - 1}")
    return labels
