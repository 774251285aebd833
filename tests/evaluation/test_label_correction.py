"""Counts, confusion and the mean distribution of corrected labels, against loops."""

import numpy as np
import pytest

from truepair.errors import InputError
from truepair.evaluation import confusion, corrected_classes, label_record, mean_distribution


@pytest.fixture(params=[(1, 1), (40, 2), (300, 7)])
def problem(request):
    pairs, classes = request.param
    rng = np.random.default_rng(pairs)
    distribution = rng.integers(0, 4, (pairs, classes)).astype(np.float32) / 8  # ties, zeros, rows below and above 1
    return rng.integers(0, classes, pairs), distribution, rng.integers(0, classes, pairs)


def corrected_by_loop(given, distribution):
    found = []
    for label, row in zip(given, distribution, strict=True):
        best = max(row)
        found.append(int(label) if row[label] == best else next(k for k in range(len(row)) if row[k] == best))
    return found


def test_counts_equal_a_loop(problem):
    given, distribution, truth = problem
    corrected = corrected_by_loop(given, distribution)
    assert corrected_classes(given, distribution).tolist() == corrected
    counts = dict.fromkeys(["errors_given", "errors_corrected", "changed", "repaired", "spoiled"], 0)
    for before, now, right in zip(given, corrected, truth, strict=True):
        counts["errors_given"] += before != right
        counts["errors_corrected"] += now != right
        counts["changed"] += before != now
        counts["repaired"] += before != right and now == right
        counts["spoiled"] += before == right and now != right
    size = len(given)
    expected = counts | {
        "corrected_accuracy": 1 - counts["errors_corrected"] / size,
        "given_accuracy": 1 - counts["errors_given"] / size,
    }
    found = label_record(given, distribution, truth)
    assert found == pytest.approx(expected)
    assert found["errors_given"] - found["repaired"] + found["spoiled"] == found["errors_corrected"]


def test_without_the_truth_only_changes_are_known(problem):
    given, distribution, truth = problem
    known, unknown = label_record(given, distribution, truth), label_record(given, distribution, None)
    assert unknown.keys() == known.keys()
    assert unknown == {**dict.fromkeys(known), "changed": known["changed"]}


def test_ties_and_empty_rows_accuse_nobody():
    distribution = np.array([[0.4, 0.4, 0.2], [0, 0, 0], [0.1, 0.3, 0.3]], np.float32)
    assert corrected_classes(np.array([1, 2, 0]), distribution).tolist() == [1, 2, 1]


def test_confusion_has_the_truth_in_rows(problem):
    given, distribution, truth = problem
    classes = distribution.shape[1]
    expected = [[int(((truth == t) & (given == c)).sum()) for c in range(classes)] for t in range(classes)]
    found = confusion(given, truth, classes)
    assert found.dtype == np.int64
    assert found.tolist() == expected
    assert confusion(np.array([2]), np.array([0]), 3).tolist() == [[0, 0, 1], [0, 0, 0], [0, 0, 0]]


def test_mean_distribution_equals_a_loop(problem):
    _, distribution, truth = problem
    found = mean_distribution(distribution, truth)
    for label in range(distribution.shape[1]):
        rows = [
            [float(value) / float(sum(row)) for value in row]
            for row, true in zip(distribution, truth, strict=True)
            if true == label and sum(row) > 0
        ]
        if rows:
            np.testing.assert_allclose(found[label], np.mean(rows, axis=0), rtol=1e-6)
            assert found[label].sum() == pytest.approx(1)
        else:
            assert np.isnan(found[label]).all()


GOOD = np.full((3, 2), 0.5)


@pytest.mark.parametrize(
    ("given", "distribution", "truth", "message"),
    [
        ([0, 1], GOOD, None, "given has 2 entries for 3 pairs"),
        ([0, 1, 1], GOOD, [0, 1], "truth has 2 entries for 3 pairs"),
        ([0, 1, 2], GOOD, None, r"given\[2\] is 2; expected a class in 0 … 1"),
        ([0, 1, 1], GOOD, [0, -1, 1], r"truth\[1\] is -1"),
        ([0.0, 1, 1], GOOD, None, "given is float64"),
        ([0, 1, 1], np.array([[0.5, 0.5], [np.nan, 1], [0, 1]]), None, r"distribution\[1, 0\] is nan"),
        ([0, 1, 1], np.array([[0.5, 0.5], [1, 0], [-0.1, 1]]), None, r"distribution\[2, 0\] is -0.1"),
        (np.zeros(0, np.int64), np.zeros((0, 2)), None, "at least one pair"),
        ([0], np.zeros(2), None, r"float64 of shape \(2,\)"),
        ([0, 0, 0], np.zeros((3, 2), np.int64), None, "expected floats"),
    ],
)
def test_bad_input_is_refused(given, distribution, truth, message):
    with pytest.raises(InputError, match=message):
        label_record(np.asarray(given), distribution, None if truth is None else np.asarray(truth))


def test_confusion_refuses_what_does_not_fit():
    with pytest.raises(InputError, match="corrected has 1 entries for 2 pairs"):
        confusion(np.array([0]), np.array([0, 1]), 2)
    with pytest.raises(InputError, match=r"truth\[1\] is 5"):
        confusion(np.array([0, 1]), np.array([0, 5]), 2)
