"""Held-out models of class labels against loops in float64, and what they find in labels drawn anew."""

import math

import numpy as np
import pytest
from scipy.optimize import check_grad

from truepair.correspondence import class_noise
from truepair.correspondence.canonical import FOLDS, folds_of
from truepair.correspondence.class_noise import PENALTIES, ClassNoise, HeldOutModels, Likelihood, Parameters
from truepair.errors import InputError


def drawn(pairs=40, classes=3, widths=(3, 2), seed=0):
    """Vectors of both sides around a centre of their class, two pairs an image, and the classes."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(classes, size=pairs)
    sides = [
        (rng.normal(size=(classes, width))[labels] + rng.normal(size=(pairs, width))).astype(np.float32)
        for width in widths
    ]
    return sides, np.arange(pairs) // 2, labels


def ridge_scores(side, folds, labels, classes, penalty):
    """(N, K) by loops: each pair by a regression of the pairs of the other folds."""
    found = np.zeros((len(side), classes))
    width = side.shape[1]
    for pair in range(len(side)):
        others = [row for row in range(len(side)) if folds[row] != folds[pair]]
        mean = [sum(float(side[row][d]) for row in others) / len(others) for d in range(width)]
        gram = np.zeros((width, width))
        for row in others:
            for d in range(width):
                for e in range(width):
                    gram[d, e] += (side[row][d] - mean[d]) * (side[row][e] - mean[e]) / len(others)
        ridge = penalty * sum(gram[d, d] for d in range(width)) / width
        for k in range(classes):
            target = [float(labels[row] == k) for row in others]
            middle = sum(target) / len(others)
            moment = [
                sum((side[row][d] - mean[d]) * (target[i] - middle) for i, row in enumerate(others)) / len(others)
                for d in range(width)
            ]
            weights = np.linalg.solve(gram + ridge * np.eye(width), moment)
            found[pair, k] = sum((side[pair][d] - mean[d]) * weights[d] for d in range(width))
    return found


@pytest.mark.parametrize("absent", [False, True])
def test_scores_are_those_of_regressions_that_each_leave_a_fold_out(absent):
    sides, rows, labels = drawn()
    classes = 4 if absent else 3  # no pair is of the fourth
    models = HeldOutModels.of(sides, rows, labels, classes, seed=5)
    found, folds = models.scores(sides, np.arange(40)), folds_of(rows, 5)
    assert found.shape == (40, 2 * len(PENALTIES), classes)
    for place, side in enumerate(sides):
        for i, penalty in enumerate(PENALTIES):
            expected = ridge_scores(side.astype(np.float64), folds, labels, classes, penalty)
            np.testing.assert_allclose(found[:, place * len(PENALTIES) + i], expected, atol=1e-10)
    some = np.array([31, 2, 7])
    np.testing.assert_allclose(models.scores(sides, some), found[some], atol=1e-12)


def test_no_label_of_its_fold_moves_the_score_of_a_pair():
    sides, rows, labels = drawn(200)
    folds = folds_of(rows, 0)
    before = HeldOutModels.of(sides, rows, labels, 3, seed=0).scores(sides, np.arange(200))
    for fold in range(FOLDS):
        other = np.where(folds == fold, (labels + 1) % 3, labels)
        after = HeldOutModels.of(sides, rows, other, 3, seed=0).scores(sides, np.arange(200))
        np.testing.assert_allclose(after[folds == fold], before[folds == fold], atol=1e-12)
        assert np.abs(after[folds != fold] - before[folds != fold]).max() > 1e-3


def given_by_loops(scores, labels, alpha, beta, noise):
    """p, P(g | x) and q by the formulas, one pair at a time."""
    ways, classes = scores.shape[1:]
    probabilities, likelihoods, posteriors = [], [], []
    for row, given in zip(scores, labels, strict=True):
        logits = [sum(math.exp(alpha[m]) * row[m][k] for m in range(ways)) / ways + beta[k] for k in range(classes)]
        top = max(logits)
        total = sum(math.exp(logit - top) for logit in logits)
        p = [math.exp(logit - top) / total for logit in logits]
        weighted = [p[k] * ((1 - noise) * (k == given) + noise / classes) for k in range(classes)]
        probabilities.append(p)
        likelihoods.append((1 - noise) * p[given] + noise / classes)
        posteriors.append([each / sum(weighted) if sum(weighted) else p[k] for k, each in enumerate(weighted)])
    return np.array(probabilities), np.array(likelihoods), np.array(posteriors)


CASES = {
    "random": (64, 3, 1.0, 0.4),
    "one pair": (1, 3, 1.0, 0.4),
    "two pairs": (2, 2, 1.0, 0.4),
    "512 pairs": (512, 5, 1.0, 0.7),
    "no noise": (64, 3, 1.0, 0.0),
    "nearly all noise": (64, 3, 1.0, 0.99),
    "extreme scores": (64, 3, 300.0, 0.4),
    "labels all 0": (64, 3, 1.0, 0.4),
    "one class": (8, 1, 1.0, 0.4),
}


def case(name):
    pairs, classes, size, noise = CASES[name]
    rng = np.random.default_rng(1)
    labels = np.zeros(pairs, dtype=int) if name == "labels all 0" else rng.integers(classes, size=pairs)
    scores = size * rng.normal(size=(pairs, 4, classes))
    return scores, labels, Parameters(rng.normal(size=4) / 2, rng.normal(size=classes), noise)


@pytest.mark.parametrize("name", CASES)
def test_probabilities_are_those_of_the_formulas(name):
    scores, labels, at = case(name)
    likelihood = Likelihood(scores, labels)
    probability, given, posterior = given_by_loops(scores, labels, *at)
    np.testing.assert_allclose(likelihood.probability(at), probability, atol=1e-12)
    np.testing.assert_allclose(likelihood.posterior(at), posterior, atol=1e-12)
    np.testing.assert_allclose(likelihood.slopes(at)[0], given, atol=1e-12)
    penalty = (np.square(at.models).sum() + np.square(at.classes).sum()) / len(labels)
    expected = -np.mean(np.log(np.maximum(given, 1e-300))) + penalty
    assert likelihood.loss(np.concatenate([*at[:2], [at.noise]]))[0] == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("name", ["random", "one pair", "512 pairs", "labels all 0", "nearly all noise", "one class"])
def test_its_gradient_is_that_of_differences(name):
    scores, labels, at = case(name)
    likelihood = Likelihood(scores, labels)
    point = np.concatenate([at.models, at.classes, [min(at.noise, 0.9)]])
    assert check_grad(lambda x: likelihood.loss(x)[0], lambda x: likelihood.loss(x)[1], point) < 1e-5


def test_the_standard_error_is_that_of_the_products_of_derivatives():
    scores, labels, at = case("random")
    likelihood, step = Likelihood(scores, labels), 1e-6
    point = np.concatenate([at.models, at.classes, [at.noise]])

    def logs(x):
        return np.log(given_by_loops(scores, labels, x[:4], x[4:-1], x[-1])[1])

    slopes = [(logs(point + step * unit) - logs(point - step * unit)) / (2 * step) for unit in np.eye(len(point))]
    information = np.array([[sum(a * b) for b in slopes] for a in slopes])
    information += np.diag([2.0] * (len(point) - 1) + [0.0])
    assert likelihood.error(at) == pytest.approx(math.sqrt(np.linalg.inv(information)[-1, -1]), rel=1e-4)


def noisy(rate, pairs=3000, classes=5, seed=0):
    sides, rows, truth = drawn(pairs, classes, (12, 8), seed)
    rng = np.random.default_rng(seed + 100)
    labels = truth.copy()
    wrong = np.flatnonzero(rng.random(pairs) < rate)
    labels[wrong] = rng.integers(classes, size=len(wrong))
    return sides, rows, truth, labels


@pytest.mark.parametrize("rate", [0.2, 0.4, 0.6, 0.8])
def test_the_share_of_wrong_labels_is_found_and_which_they_are(rate):
    sides, rows, truth, labels = noisy(rate)
    found = ClassNoise.of(sides, rows, labels, 5, seed=0)
    assert found.share == pytest.approx(rate, abs=0.03)
    assert found.error < 0.03
    assert found.wrong == (pytest.approx(0.8 * found.share), pytest.approx(0.8 * found.error))
    q = found.posterior
    assert q.shape == (3000, 5) and q.dtype == np.float32
    np.testing.assert_allclose(q.sum(axis=1), 1, atol=1e-5)
    right = (q.argmax(axis=1) == truth).mean()
    assert right > (labels == truth).mean() + 0.05
    assert q.max(axis=1).mean() == pytest.approx(right, abs=0.06)  # calibrated


def test_the_standard_error_is_how_far_estimates_lie_apart():
    found = [ClassNoise.of(s, r, given, 5, seed=0) for s, r, _, given in (noisy(0.4, 1000, seed=i) for i in range(24))]
    spread = np.std([each.share - 0.4 for each in found])
    assert 0.6 < spread / np.mean([each.error for each in found]) < 1.6


def test_other_names_of_the_classes_change_nothing():
    sides, rows, _, labels = noisy(0.4, 1000)
    order = np.array([3, 0, 4, 1, 2])
    one, other = (ClassNoise.of(sides, rows, each, 5, seed=0) for each in (labels, order[labels]))
    assert other.share == pytest.approx(one.share, abs=1e-3)
    np.testing.assert_allclose(other.posterior[:, order], one.posterior, atol=5e-3)


def test_a_sample_of_the_pairs_and_blocks_of_them_tell_as_much(monkeypatch):
    sides, rows, truth, labels = noisy(0.4)
    whole = ClassNoise.of(sides, rows, labels, 5, seed=0)
    monkeypatch.setattr(class_noise, "ROWS_AT_ONCE", 700)
    np.testing.assert_allclose(ClassNoise.of(sides, rows, labels, 5, seed=0).posterior, whole.posterior, atol=1e-3)
    monkeypatch.setattr(class_noise, "SAMPLE", 1500)
    found = ClassNoise.of(sides, rows, labels, 5, seed=0)
    assert found.share == pytest.approx(0.4, abs=0.06) and found.error > 1.2 * whole.error
    assert (found.posterior.argmax(axis=1) == truth).mean() > (labels == truth).mean() + 0.1


NOTHING = (
    "few images",
    "no noise",
    "labels of a partner",
    "all alike",
    "vectors that tell nothing",
    "constant",
    "one class",
)


@pytest.mark.parametrize("kind", NOTHING)
def test_nothing_is_said_where_nothing_can_be_told(kind):
    sides, rows, truth, labels = noisy(0.4, 1000)
    classes = 5
    if kind == "few images":
        rows = np.arange(1000) % 199
    elif kind == "no noise":
        labels = truth
    elif kind == "labels of a partner":
        labels = np.where((truth < 2) & (np.arange(1000) % 5 < 2), truth + 2, truth)
    elif kind == "all alike":
        labels = np.zeros_like(labels)
    elif kind == "vectors that tell nothing":
        sides = [np.random.default_rng(3).normal(size=side.shape).astype(np.float32) for side in sides]
    elif kind == "constant":
        sides = [np.ones_like(side) for side in sides]
    else:
        labels, classes = np.zeros_like(labels), 1
    found = ClassNoise.of(sides, rows, labels, classes, seed=0)
    assert found is None or not found.seen
    if kind in ("no noise", "labels of a partner"):
        assert found is not None and found.share < 0.1
    elif kind == "few images":
        assert found is None


def test_one_constant_side_leaves_it_to_the_other():
    sides, rows, _, labels = noisy(0.4)
    found = ClassNoise.of([sides[0], np.zeros_like(sides[1])], rows, labels, 5, seed=0)
    assert found.share == pytest.approx(0.4, abs=0.05)


@pytest.mark.parametrize("value", [np.nan, np.inf])
@pytest.mark.parametrize("place", [0, 1])
def test_vectors_that_are_not_finite_are_refused(value, place):
    sides, rows, _, labels = noisy(0.4, 1000)
    sides[place][7, 1] = value
    with pytest.raises(InputError, match=("images", "texts")[place]):
        ClassNoise.of(sides, rows, labels, 5, seed=0)
