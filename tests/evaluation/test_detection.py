"""Detection figures against pair counting and threshold sweeps."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from truepair.errors import InputError
from truepair.evaluation import detection


def naive_auroc(belief: list[float], mismatched: list[bool]) -> float:
    pairs = [(low, high) for low, bad in zip(belief, mismatched, strict=True) if bad
             for high, also_bad in zip(belief, mismatched, strict=True) if not also_bad]  # fmt: skip
    return sum(1.0 if low < high else 0.5 if low == high else 0.0 for low, high in pairs) / len(pairs)


def naive_average_precision(belief: list[float], mismatched: list[bool]) -> float:
    """Sum over thresholds of precision times the recall gained there."""
    total, recall_before = 0.0, 0.0
    for threshold in sorted(set(belief)):
        taken = [bad for value, bad in zip(belief, mismatched, strict=True) if value <= threshold]
        recall = sum(taken) / sum(mismatched)
        total += (recall - recall_before) * sum(taken) / len(taken)
        recall_before = recall
    return total


believed_pairs = st.lists(
    st.tuples(st.sampled_from([-np.inf, -3.0, 0.0, 0.25, 1e-30, 7.0, np.inf]), st.booleans()), min_size=2, max_size=30
)


@settings(max_examples=100, deadline=None)
@given(believed_pairs)
def test_ranking_follows_the_definition(pairs: list[tuple[float, bool]]) -> None:
    belief, mismatched = [value for value, _ in pairs], [bad for _, bad in pairs]
    found = detection(np.array(belief), np.array(mismatched))
    if all(mismatched) or not any(mismatched):
        assert found == {"auroc": None, "average_precision": None}
    else:
        assert found["auroc"] == pytest.approx(naive_auroc(belief, mismatched), abs=1e-12)
        assert found["average_precision"] == pytest.approx(naive_average_precision(belief, mismatched), abs=1e-12)


def test_low_belief_means_mismatched() -> None:
    mismatched = np.array([True, False, True, False])
    assert detection(np.array([-9.0, 3.0, 0.1, 0.2]), mismatched) == {"auroc": 1.0, "average_precision": 1.0}
    assert detection(np.array([9.0, 3.0, 9.0, 0.2]), mismatched)["auroc"] == 0.0
    assert detection(np.zeros(4), mismatched) == {"auroc": 0.5, "average_precision": 0.5}


@pytest.mark.parametrize("kind", [np.float16, np.float32, np.int32, np.uint8, np.bool_])
def test_any_real_belief_is_taken(kind: Any) -> None:
    belief = np.array([0, 1, 0, 1, 1])
    mismatched = np.array([True, False, False, True, False])
    assert detection(belief.astype(kind), mismatched) == detection(belief.astype(np.float64), mismatched)


def test_division_is_scored_on_the_mismatched_class() -> None:
    mismatched = np.array([True, True, True, False, False, False, False, False])
    taken_as_matched = np.array([False, True, True, False, True, True, True, True])
    found = detection(np.arange(8), mismatched, taken_as_matched=taken_as_matched)
    assert found["division_accuracy"] == 5 / 8
    assert found["division_precision"] == 1 / 2
    assert found["division_recall"] == 1 / 3


def test_undefined_figures_are_none() -> None:
    clean, none = np.zeros(3, dtype=bool), np.ones(3, dtype=bool)
    assert detection(np.arange(3), clean, taken_as_matched=none) == {
        "auroc": None,
        "average_precision": None,
        "division_accuracy": 1.0,
        "division_precision": None,
        "division_recall": None,
    }


@pytest.mark.parametrize(
    ("belief", "mismatched", "message"),
    [
        ([0.1, np.nan], [True, False], r"belief\[1\] is NaN"),
        ([0.1, 0.2], [True], "expected bool of shape"),
        ([0.1, 0.2], [1, 0], "expected bool"),
        ([], [], "belief is float64"),
        ([[0.1]], [[True]], "belief is float64"),
        ([1j], [True], "belief is complex128"),
    ],
)
def test_what_does_not_fit_is_refused(belief: list[Any], mismatched: list[Any], message: str) -> None:
    truth = np.array(mismatched) if mismatched else np.zeros(0, dtype=bool)
    with pytest.raises(InputError, match=message):
        detection(np.array(belief), truth)


def test_division_of_other_length_is_refused() -> None:
    with pytest.raises(InputError, match="taken_as_matched"):
        detection(np.arange(2), np.array([True, False]), taken_as_matched=np.array([True]))


def test_importing_the_package_leaves_scikit_learn_alone() -> None:
    code = "import sys, truepair.evaluation; sys.exit('sklearn' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
