"""Held-out scores by cross-fitted CCA: against plain loops, held out indeed, and on factors of known noise."""

import math

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from truepair.correspondence import canonical
from truepair.correspondence.calibration import Calibration
from truepair.correspondence.canonical import (
    FOLDS,
    RIDGES,
    ROUNDS,
    CrossFittedCCA,
    Decorrelated,
    HeldOutScores,
    folds_of,
)
from truepair.correspondence.mixture_proportion import estimate_share
from truepair.errors import InputError

TEMPERATURE = 0.05
SHARE = 0.5  # π, where a test does not say


def linked(pairs, noise, *, seed=0, factors=6, captions=1, apart=0.5):
    """(images, texts, image rows, mismatched): both sides show the same factors, with noise of their own."""
    rng = np.random.default_rng(seed)
    rows = np.repeat(np.arange(pairs // captions), captions)
    latent = rng.normal(size=(pairs // captions, factors))[rows]
    wrong = rng.permutation(pairs) < round(noise * pairs)
    texts = latent.copy()
    places = np.flatnonzero(wrong)
    texts[places] = latent[np.roll(places, 1)]
    shown = [side @ rng.normal(size=(factors, width)) for side, width in ((latent, 20), (texts, 15))]
    images, texts = (side + apart * rng.normal(size=side.shape) for side in shown)
    return images.astype(np.float32), texts.astype(np.float32), rows, wrong


def held_out(images, texts, rows, seed=0):
    """(models, scores by equally weighted pairs, scores in the end)."""
    models = CrossFittedCCA(images, texts, rows, temperature=TEMPERATURE, seed=seed)
    return models, models.first, models.cleaned(SHARE)


def naive_whitening(vectors, ridge):
    """(N, D) whitened rows, by the covariance as a double loop and its inverse square root."""
    mean = [sum(column) / len(vectors) for column in vectors.T.tolist()]
    centred = vectors.astype(float) - mean
    width = len(mean)
    covariance = np.array(
        [[sum(row[a] * row[b] for row in centred) / len(centred) for b in range(width)] for a in range(width)]
    )
    variances, axes = np.linalg.eigh(covariance + ridge * np.trace(covariance) / width * np.eye(width))
    return centred @ axes @ np.diag(variances**-0.5) @ axes.T


def naive_scores(images, texts, rows, weights, learned, scored, order):
    """Scores of the pairs `scored` by the model of the pairs `learned`; of each with the caption of the next, if that
    is of another image, among captions but its own, and images but that of the caption.
    """
    covariance = sum(weights[i] * np.outer(images[i], texts[i]) for i in learned)
    left, strength, right = np.linalg.svd(covariance)
    root = [math.sqrt(value) for value in strength[:64]]

    def along(row, directions):
        found = [
            scale * sum(a * b for a, b in zip(row, line, strict=True))
            for scale, line in zip(root, directions, strict=False)
        ]
        return [value / math.sqrt(sum(each**2 for each in found)) for value in found]

    u, v = {i: along(images[i], left.T) for i in scored}, {i: along(texts[i], right) for i in scored}
    cosine = {(i, j): sum(a * b for a, b in zip(u[i], v[j], strict=True)) for i in scored for j in scored}

    def share(cells):
        return math.log(sum(math.exp(cosine[cell] / TEMPERATURE) for cell in cells) / len(scored))

    def score(i, j, captions, of_images):
        sides = share([(i, k) for k in captions]), share([(k, j) for k in of_images])
        return cosine[i, j] / TEMPERATURE - sum(sides) / 2

    made = []
    for a, b in zip(order, np.roll(order, -1), strict=True):
        i, j = scored[a], scored[b]
        if rows[i] != rows[j]:
            made.append(score(i, j, [k for k in scored if k != i], [k for k in scored if rows[k] != rows[j]]))
    return {i: score(i, i, scored, scored) for i in scored}, made


def naive_cleaned(images, texts, rows, seed):
    fold = folds_of(rows, seed)
    places = {each: np.flatnonzero(fold == each).tolist() for each in range(FOLDS)}

    def scores(weights, learned, each):
        order = canonical.generator(seed, "held-out blocks", each).permutation(len(places[each]))
        return naive_scores(images, texts, rows, weights, learned, places[each], order)

    found = np.zeros(len(rows))
    for held in range(FOLDS):
        others = [each for each in range(FOLDS) if each != held]
        weights = np.ones(len(rows))
        for _ in range(ROUNDS):
            inner, made = {}, []
            for each in others:
                given, synthetic = scores(
                    weights, [i for other in others if other != each for i in places[other]], each
                )
                inner |= given
                made += synthetic
            keys, values, made = [*inner], np.array([*inner.values()]), np.array(made)
            weights[keys] = Calibration.of(values, made, np.full(len(made), 1 / len(made)), SHARE)(values)
        for i, value in scores(weights, [i for each in others for i in places[each]], held)[0].items():
            found[i] = value
    return found


@pytest.mark.parametrize("captions", [1, 2])
def test_scores_are_those_of_plain_loops(captions, monkeypatch):
    ridge = 0.3
    monkeypatch.setattr(canonical, "RIDGES", (ridge,))
    images, texts, rows, _ = linked(80, 0.5, factors=3, captions=captions)
    models, first, cleaned = held_out(images, texts, rows, seed=4)
    assert models.ridge == ridge
    white = [naive_whitening(side, ridge) for side in (images, texts)]
    np.testing.assert_allclose(cleaned.given, naive_cleaned(*white, rows, 4), atol=2e-3)
    fold = folds_of(rows, 4)
    made_of_all = []
    for each in range(FOLDS):
        scored = np.flatnonzero(fold == each).tolist()
        order = canonical.generator(4, "held-out blocks", each).permutation(len(scored))
        given, made = naive_scores(*white, rows, np.ones(80), np.flatnonzero(fold != each).tolist(), scored, order)
        np.testing.assert_allclose(first.given[scored], [given[i] for i in scored], atol=2e-3)
        made_of_all += made
    np.testing.assert_allclose(np.sort(first.synthetic), np.sort(made_of_all), atol=2e-3)


def test_nothing_that_scores_a_fold_has_seen_its_pairs():
    """Captions change places within one fold: pairs of it that keep theirs are scored as before."""
    images, texts, rows, _ = linked(600, 0.5)
    fold = folds_of(rows, 0)
    moved = np.flatnonzero(fold == 2)[:60]
    exchanged = texts.copy()
    exchanged[moved] = texts[np.roll(moved, 1)]
    kept = np.setdiff1d(np.flatnonzero(fold == 2), moved)
    for before, after in zip(held_out(images, texts, rows)[1:], held_out(images, exchanged, rows)[1:], strict=True):
        np.testing.assert_allclose(after.given[kept], before.given[kept], atol=1e-3)
        assert np.abs(after.given - before.given)[fold != 2].max() > 0.05  # those that learn of this fold notice


def test_models_of_other_divisions_are_those_of_other_seeds(monkeypatch):
    monkeypatch.setattr(canonical, "RIDGES", (1.0,))
    images, texts, rows, _ = linked(300, 0.5, captions=2)
    models = CrossFittedCCA(images, texts, rows, temperature=TEMPERATURE, seed=3)
    before = models.cleaned(SHARE)
    found = models.divided(3)
    others = [CrossFittedCCA(images, texts, rows, temperature=TEMPERATURE, seed=seed) for seed in (3, 4, 5)]
    for one, other in zip(found, others, strict=True):
        for ours, expected in ((one.first, other.first), (one.cleaned(SHARE), other.cleaned(SHARE))):
            np.testing.assert_allclose(ours.given, expected.given, atol=1e-6)
            np.testing.assert_allclose(ours.synthetic, expected.synthetic, atol=1e-6)
    assert np.abs(others[0].first.given - others[1].first.given).max() > 0.05
    assert (models.cleaned(SHARE).given == before.given).all() and found[0] is models
    joined = HeldOutScores.together([one.first for one in others])
    assert (joined.given[300:600] == others[1].first.given).all() and len(joined.given) == 900


@pytest.mark.parametrize("noise", [0.0, 0.4, 0.8])
def test_it_finds_the_mismatched_pairs_and_how_many_there_are(noise):
    images, texts, rows, wrong = linked(3000, noise)
    _, first, cleaned = held_out(images, texts, rows)
    assert estimate_share(first.given, first.synthetic).share == pytest.approx(noise, abs=0.06)
    if noise:
        assert roc_auc_score(~wrong, cleaned.given) > 0.98
        assert roc_auc_score(~wrong, cleaned.given) >= roc_auc_score(~wrong, first.given) - 0.002
        # Synthetic mismatches are scored as mismatched pairs are.
        assert np.median(first.given[wrong]) == pytest.approx(np.median(first.synthetic), abs=1.0)


@pytest.mark.parametrize("noise", [0.0, 0.2, 0.4, 0.7])
def test_where_both_sides_tell_all_of_a_pair_the_estimate_holds_as_well(noise):
    """A true partner leaves a wrong pair no share there: it must not compete with synthetic mismatches alone."""
    images, texts, rows, _ = linked(1500, noise, factors=14, apart=0.3)
    models = CrossFittedCCA(images, texts, rows, temperature=TEMPERATURE, seed=0)
    together = HeldOutScores.together([each.first for each in models.divided(3)])
    found = estimate_share(together.given, together.synthetic, times=3)
    assert found.share == pytest.approx(noise, abs=0.04) and found.low <= noise <= found.high


def test_the_order_of_the_pairs_does_not_matter():
    images, texts, rows, _ = linked(400, 0.6)
    order = np.random.default_rng(0).permutation(400)
    (one, _, ours), (other, _, theirs) = (held_out(images[o], texts[o], rows[o]) for o in (np.arange(400), order))
    assert one.ridge == other.ridge and one.ridge in RIDGES
    np.testing.assert_allclose(theirs.given, ours.given[order], atol=1e-3)


def test_captions_of_one_image_are_in_one_fold_and_no_synthetic_mismatches():
    images, texts, rows, _ = linked(600, 0.4, captions=5)
    fold = folds_of(rows, 0)
    assert all(len(set(fold[rows == row])) == 1 for row in range(120))
    counts = [len({*rows[fold == each]}) for each in range(FOLDS)]
    assert max(counts) - min(counts) <= 1
    assert 500 < len(held_out(images, texts, rows)[2].synthetic) < 600  # some of the next pairs are of the same image


def test_blocks_and_wide_vectors(monkeypatch):
    """Blocks of pairs that are not compared with each other, more numbers than pairs, columns that are all the same."""
    images, texts, rows, wrong = linked(300, 0.3)
    wide = np.concatenate([images, np.ones((300, 400), dtype=np.float32)], axis=1)
    whole = held_out(wide, texts, rows)[2]
    monkeypatch.setattr(canonical, "BLOCK", 16)
    monkeypatch.setattr(canonical, "ROWS_AT_ONCE", 7)
    for found in (whole, held_out(wide, texts, rows)[2]):
        assert np.isfinite(found.given).all()
        assert roc_auc_score(~wrong, found.given) > 0.95
    turned = held_out(texts, wide, rows)[2]  # the wider side second
    assert roc_auc_score(~wrong, turned.given) > 0.95
    np.testing.assert_allclose(Decorrelated.of(wide).variances[:400], 0, atol=1e-9)


@pytest.mark.parametrize("temperature", [1e-3, 10.0])
def test_any_temperature_gives_finite_scores(temperature):
    images, texts, rows, wrong = linked(200, 0.5)
    found = CrossFittedCCA(images, texts, rows, temperature=temperature, seed=0).cleaned(SHARE)
    assert np.isfinite(found.given).all() and np.isfinite(found.synthetic).all()
    assert roc_auc_score(~wrong, found.given) > 0.9


def test_what_cannot_be_scored_is_refused():
    images, texts, rows, _ = linked(60, 0.0)
    with pytest.raises(InputError, match=r"images\[3\] is not finite"):
        held_out(np.where(np.arange(60)[:, None] == 3, np.nan, images), texts, rows)
    with pytest.raises(InputError, match="need at least 10"):
        held_out(images, texts, rows % 9)
    with pytest.raises(InputError, match="equal"):
        held_out(images, np.ones_like(texts), rows)
