"""Folds: nothing is scored by a model that saw it, and the synthetic_share stands where it should."""

import math

import numpy as np
import pytest

from tests.audit.made_pairs import made_pairs
from truepair.audit.options import CrossFitting
from truepair.audit.scoring.folds import make_folds, share_added
from truepair.audit.scoring.synthetic_mismatches import KINDS
from truepair.errors import InputError


@pytest.mark.parametrize(("images", "each", "count"), [(300, 1, 3), (70, 5, 2), (90, 3, 10)])
def test_no_image_is_in_two_folds_and_known_mismatches_stay_within_one(images, each, count):
    pairs, _ = made_pairs(images, each=each)
    pairs = pairs.take(np.random.default_rng(0).permutation(len(pairs)))
    folds = make_folds(pairs, folds=count, synthetic_share=0.03, seed=0)
    size = len(folds.pairs)
    assert folds.given == len(pairs) and size > len(pairs)
    assert all(len(column) == size for column in (folds.fold, folds.image_of, folds.caption_of, folds.kind))
    assert set(folds.fold.tolist()) == set(range(count))
    for image in np.unique(folds.pairs.image_index):
        assert len(set(folds.fold[folds.pairs.image_index == image].tolist())) == 1
    for row in range(size):
        assert folds.fold[row] == folds.fold[folds.image_of[row]] == folds.fold[folds.caption_of[row]]


def test_images_are_dealt_out_evenly():
    pairs, _ = made_pairs(301)
    found = make_folds(pairs, folds=3, synthetic_share=0.03, seed=0)
    assert sorted(np.bincount(found.fold[:301]).tolist()) == [100, 100, 101]
    other = make_folds(pairs, folds=3, synthetic_share=0.03, seed=1)
    assert not np.array_equal(found.fold[:301], other.fold[:301])


def test_the_table_is_what_a_loop_makes_of_it():
    pairs, _ = made_pairs(100, each=2, truth=True)
    pairs = pairs.take(np.random.default_rng(0).permutation(200)[:190])
    folds = make_folds(pairs, folds=3, synthetic_share=0.05, seed=4)
    own = list(range(len(pairs)))
    assert folds.image_of[: len(own)].tolist() == folds.caption_of[: len(own)].tolist() == own
    assert (folds.kind[: len(own)] == 0).all() and (folds.kind[len(own) :] > 0).all()
    for row in range(len(folds.pairs)):
        assert folds.pairs.image_index[row] == pairs.image_index[folds.image_of[row]]
        assert folds.pairs.text_index[row] == pairs.text_index[folds.caption_of[row]]
        if row >= len(own):
            assert folds.pairs.image_index[row] != pairs.image_index[folds.caption_of[row]]
    for place, kind in enumerate(KINDS):
        assert folds.of_kind(kind).tolist() == [row for row, k in enumerate(folds.kind.tolist()) if k == place + 1]
    for fold in range(3):
        held_out = [row for row, k in enumerate(folds.fold.tolist()) if k == fold]
        assert folds.held_out(fold).tolist() == held_out
        assert sorted(folds.trained_on(fold).tolist() + held_out) == list(range(len(folds.pairs)))


def test_what_is_known_of_the_truth_is_dropped_and_changes_nothing():
    pairs, _ = made_pairs(120, truth=True)
    with_truth = make_folds(pairs, folds=2, synthetic_share=0.03, seed=0)
    assert with_truth.pairs.true_image is None and with_truth.pairs.mismatched is None
    assert with_truth.pairs.labels is None and with_truth.pairs.true_labels is None
    without = make_folds(pairs.without_truth(), folds=2, synthetic_share=0.03, seed=0)
    for name in ("fold", "image_of", "caption_of", "kind"):
        assert np.array_equal(getattr(with_truth, name), getattr(without, name))


@pytest.mark.parametrize(
    ("pairs", "synthetic_share", "random", "near"),
    [
        (100_000, 0.03, 0.03, 0.03),
        (12_000, 0.03, 0.03, 0.03),
        (6000, 0.03, 0.05, 0.05),  # 300
        (1000, 0.03, 0.1, 0.1),  # not above 10 %
        (1000, 0.2, 0.2, 0.2),  # unless it is asked for
        (100, 0.03, 0.24, 0.1),  # at least 24 random ones: the verdict needs 20
        (60, 0.5, 0.5, 0.5),
    ],
)
def test_how_many_are_added(pairs, synthetic_share, random, near):
    assert share_added("random", pairs, synthetic_share) == pytest.approx(random)
    assert share_added("near", pairs, synthetic_share) == pytest.approx(near)


@pytest.mark.parametrize(("images", "each"), [(60, 1), (30, 2), (100, 1), (400, 1), (1000, 5)])
def test_there_are_enough_known_mismatches_for_a_verdict(images, each):
    folds = make_folds(made_pairs(images, each=each)[0], folds=3, synthetic_share=0.03, seed=0)
    for kind in KINDS:
        share = share_added(kind, images * each, 0.03)
        wanted = sum(max(1, round(share * int((folds.fold[: folds.given] == k).sum()))) for k in range(3))
        assert 0.9 * wanted <= len(folds.of_kind(kind)) <= wanted
    assert len(folds.of_kind("random")) >= 20


def test_near_ones_are_nearer_than_random_ones():
    pairs, kind = made_pairs(600)
    folds = make_folds(pairs, folds=3, synthetic_share=0.2, seed=0)
    same = [
        (kind[folds.image_of[rows]] == kind[folds.caption_of[rows]]).mean()
        for rows in (folds.of_kind("random"), folds.of_kind("near"))
    ]
    assert same[0] < 0.3 and same[1] > 0.8


@pytest.mark.parametrize(
    ("images", "each", "options", "message"),
    [
        (59, 1, {}, "59 pairs are too few"),
        (5, 20, {}, "5 images cannot be dealt out to 3 folds"),
        (100, 1, {"folds": 1}, "1 folds; expected at least 2"),
        (100, 1, {"synthetic_share": 0.0}, "synthetic_share is 0.0"),
        (100, 1, {"synthetic_share": 1.0}, "synthetic_share is 1.0"),
        (100, 1, {"synthetic_share": math.nan}, "synthetic_share is nan"),
    ],
)
def test_what_cannot_be_folded_is_refused(images, each, options, message):
    with pytest.raises(InputError, match=message):
        make_folds(made_pairs(images, each=each)[0], **({"folds": 3, "synthetic_share": 0.03, "seed": 0} | options))


def test_captions_that_cannot_be_mismatched_are_refused_before_training():
    with pytest.raises(InputError, match="all say the same"):
        make_folds(made_pairs(100, captions=["a thing"] * 100)[0], folds=2, synthetic_share=0.03, seed=0)
    captions = ["a thing"] * 99 + ["another"]
    with pytest.raises(InputError, match="only \\d+ could be mismatched on purpose, at least 20"):
        make_folds(made_pairs(100, captions=captions)[0], folds=2, synthetic_share=0.03, seed=0)


# --- Options ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("pairs", "epochs"),
    [(100, 40), (1600, 25), (3999, 10), (4000, 16), (8000, 8), (12_800, 6), (1_000_000, 6), (128 * 50, 10)],
)
def test_epochs_are_about_500_steps_of_few_pairs_320_within_bounds(pairs, epochs):
    assert CrossFitting().epochs_for(pairs) == epochs
    assert CrossFitting(epochs=3).epochs_for(pairs) == 3


@pytest.mark.parametrize(("pairs", "width"), [(100, 128), (3999, 128), (4000, 256), (1_000_000, 256)])
def test_few_pairs_get_a_smaller_model(pairs, width):
    assert CrossFitting().width_for(pairs) == width
    assert CrossFitting(width=32).width_for(pairs) == 32


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"folds": 1}, "folds is 1"),
        ({"epochs": 0}, "epochs is 0"),
        ({"synthetic_share": math.nan}, "synthetic_share is nan"),
        ({"width": 4}, "width is 4"),
        ({"batch_size": 1}, "batch_size is 1"),
    ],
)
def test_odd_options_are_refused(options, message):
    with pytest.raises(InputError, match=message):
        CrossFitting(**options)
