"""How right a verdict is, where the truth is known."""

from __future__ import annotations

from typing import Any

import numpy as np

from truepair.audit.result import Verdict
from truepair.data.pairs import Array, BoolArray
from truepair.evaluation.detection import detection

BINS = 10


def scores_against(verdict: Verdict, mismatched: BoolArray) -> dict[str, Any]:
    """Figures in [0, 1]: auroc and average_precision of finding the mismatched pairs (None without any, or without
    matched ones), precision, recall and f1 of the flagged ones (None where undefined), calibration_error (expected, of
    ten equal bins of p_match), reliability per bin, and the true noise_rate.
    """
    found = detection(verdict.p_match, mismatched)
    right = int((verdict.flagged & mismatched).sum())
    flagged, wrong = int(verdict.flagged.sum()), int(mismatched.sum())
    table = reliability(verdict.p_match, mismatched)
    return {
        "noise_rate": float(mismatched.mean()),
        "auroc": found["auroc"],
        "average_precision": found["average_precision"],
        "precision": right / flagged if flagged else None,
        "recall": right / wrong if wrong else None,
        "f1": 2 * right / (flagged + wrong) if flagged + wrong else None,
        "calibration_error": calibration_error(table, len(mismatched)),
        "reliability": table,
    }


def reliability(p_match: Array, mismatched: BoolArray) -> list[dict[str, Any]]:
    """Ten equal bins of p_match: low, high, pairs, and the means of p_match and of the truth (None where empty)."""
    p_match = np.asarray(p_match, dtype=np.float64)
    place = np.minimum((p_match * BINS).astype(int), BINS - 1)
    table = []
    for k in range(BINS):
        inside = place == k
        count = int(inside.sum())
        table.append(
            {
                "low": k / BINS,
                "high": (k + 1) / BINS,
                "pairs": count,
                "p_match": float(p_match[inside].mean()) if count else None,
                "matched": float((~mismatched[inside]).mean()) if count else None,
            }
        )
    return table


def calibration_error(table: list[dict[str, Any]], pairs: int) -> float:
    """Σ over bins of their share of the pairs times |mean p_match − share that matches|, in [0, 1]."""
    gaps = (row["pairs"] * abs(row["p_match"] - row["matched"]) for row in table if row["pairs"])
    return float(sum(gaps) / pairs)
