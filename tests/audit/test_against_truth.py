"""The figures of a verdict against plain loops and scikit-learn."""

import numpy as np
import pytest
from sklearn.metrics import average_precision_score, f1_score, precision_score, recall_score, roc_auc_score

from tests.audit.verdict.naive_verdict import naive_error
from truepair.audit.result import Verdict
from truepair.audit.verdict.against_truth import calibration_error, reliability, scores_against
from truepair.errors import InputError


def verdict_of(p_match, flagged=None):
    p_match = np.asarray(p_match, dtype=np.float32)
    return Verdict(p_match, p_match < 0.5 if flagged is None else np.asarray(flagged), 0.3, 0.2, 0.4, True)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("ties", [False, True])
def test_figures_as_scikit_learn_has_them(seed, ties):
    rng = np.random.default_rng(seed)
    mismatched = rng.uniform(size=300) < 0.3
    p_match = np.clip(rng.normal(0.7 - 0.3 * mismatched, 0.2), 0, 1)
    verdict = verdict_of(np.round(p_match, 1) if ties else p_match)
    found = scores_against(verdict, mismatched)
    assert found["auroc"] == pytest.approx(roc_auc_score(mismatched, -verdict.p_match))
    assert found["average_precision"] == pytest.approx(average_precision_score(mismatched, -verdict.p_match))
    assert found["precision"] == pytest.approx(precision_score(mismatched, verdict.flagged))
    assert found["recall"] == pytest.approx(recall_score(mismatched, verdict.flagged))
    assert found["f1"] == pytest.approx(f1_score(mismatched, verdict.flagged))
    assert found["noise_rate"] == mismatched.mean()
    expected = naive_error(verdict.p_match.astype(np.float64).tolist(), mismatched.tolist())
    assert found["calibration_error"] == pytest.approx(expected)


def test_reliability_as_plain_loops_say():
    rng = np.random.default_rng(0)
    p_match, mismatched = rng.uniform(size=200) ** 3, rng.uniform(size=200) < 0.5
    for k, row in enumerate(reliability(p_match, mismatched)):
        inside = [i for i, p in enumerate(p_match) if row["low"] <= p < row["high"]]
        assert (row["low"], row["high"], row["pairs"]) == (k / 10, (k + 1) / 10, len(inside))
        assert row["p_match"] == pytest.approx(sum(p_match[i] for i in inside) / len(inside))
        assert row["matched"] == pytest.approx(sum(not mismatched[i] for i in inside) / len(inside))


def test_the_ends_belong_to_the_outer_bins_and_empty_bins_say_nothing():
    table = reliability(np.float32([0, 0.1, 0.3, 1, 1]), np.array([True, True, False, False, True]))
    assert [row["pairs"] for row in table] == [1, 1, 0, 1, 0, 0, 0, 0, 0, 2]
    assert table[2]["p_match"] is None and table[2]["matched"] is None
    assert (table[9]["p_match"], table[9]["matched"]) == (1, 0.5)
    assert calibration_error(table, 5) == pytest.approx((0 + 0.1 + 0.7 + 2 * 0.5) / 5)


def test_a_calibrated_verdict_has_hardly_any_error_and_a_contrary_one_all():
    rng = np.random.default_rng(0)
    p_match = rng.uniform(size=20_000)
    mismatched = rng.uniform(size=20_000) > p_match
    assert scores_against(verdict_of(p_match), mismatched)["calibration_error"] < 0.02
    assert scores_against(verdict_of(mismatched), mismatched)["calibration_error"] == 1


@pytest.mark.parametrize(
    ("mismatched", "flagged", "undefined"),
    [
        ([False] * 4, [False] * 4, {"auroc", "average_precision", "precision", "recall", "f1"}),
        ([False] * 4, [True] + [False] * 3, {"auroc", "average_precision", "recall"}),
        ([True] * 4, [False] * 4, {"auroc", "average_precision", "precision"}),
        ([True] * 4, [True] * 4, {"auroc", "average_precision"}),
        ([True, False, False, False], [False] * 4, {"precision"}),
    ],
)
def test_what_is_undefined_is_none(mismatched, flagged, undefined):
    found = scores_against(verdict_of([0.1, 0.4, 0.6, 0.9], flagged), np.array(mismatched))
    assert {name for name, value in found.items() if value is None} == undefined


def test_a_belief_that_is_nan_is_refused():
    with pytest.raises(InputError, match="belief\\[1\\] is NaN"):
        scores_against(verdict_of([0.1, np.nan], [False, False]), np.array([True, False]))
