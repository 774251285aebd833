"""Pairs mismatched on purpose: never by chance a match, of the right kind, and drawn in bounded memory."""

import time
import tracemalloc

import numpy as np
import pytest

from tests.audit.made_pairs import made_pairs
from truepair.audit.scoring import synthetic_mismatches as module
from truepair.audit.scoring.synthetic_mismatches import (
    KINDS,
    described_pairs,
    draw_mismatches,
    main_directions,
    most_alike,
    unit,
    word_directions,
)


def draw(kind, rows, count, *, images, captions, described=None, seed=0):
    return draw_mismatches(
        kind,
        np.asarray(rows, dtype=np.int64),
        count,
        images=np.asarray(images, dtype=np.int64),
        captions=captions,
        described=described,
        rng=np.random.default_rng(seed),
    )


def directions(count, width=6, seed=0):
    return unit(np.random.default_rng(seed).normal(size=(count, width)))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(3))
def test_no_mismatch_is_a_match(kind, seed):
    """Five captions an image, many of them said of several images, in other spaces and other case."""
    rng = np.random.default_rng(seed)
    images = np.repeat(np.arange(40), 5)
    said = rng.integers(0, 60, 200)
    captions = [(" A  thing {} ", "a THING {}", "a thing {}")[place % 3].format(n) for place, n in enumerate(said)]
    described = unit(directions(40, seed=seed)[images] + 0.01 * rng.normal(size=(200, 6)))
    rows = rng.permutation(1000)[:200]
    found = draw(kind, rows, 200, images=images, captions=captions, described=described, seed=seed)
    place = {int(row): at for at, row in enumerate(rows)}
    assert found.kind == kind and 150 < len(found) <= 200
    assert found.image_of.dtype == found.caption_of.dtype == np.int64
    assert len(set(found.image_of.tolist())) == len(found)  # each given pair lends its image once
    for image_row, caption_row in zip(found.image_of.tolist(), found.caption_of.tolist(), strict=True):
        a, b = place[image_row], place[caption_row]
        assert images[a] != images[b]
        assert said[b] not in said[images == images[a]]


@pytest.mark.parametrize("kind", KINDS)
def test_draws_are_those_of_their_generator(kind):
    images, captions, described = np.arange(50), [f"c{row}" for row in range(50)], directions(50)
    some = [draw(kind, images, 20, images=images, captions=captions, described=described, seed=s) for s in (1, 1, 2)]
    assert np.array_equal(some[0].image_of, some[1].image_of) and np.array_equal(some[0].caption_of, some[1].caption_of)
    assert not np.array_equal(some[0].image_of, some[2].image_of)
    assert len(some[0]) == 20


def test_random_mismatches_are_spread_over_all_captions():
    images, captions = np.arange(400), [f"c{row}" for row in range(400)]
    found = [draw("random", images, 400, images=images, captions=captions, seed=seed).caption_of for seed in range(25)]
    often = np.bincount(np.concatenate(found), minlength=400)
    assert often.var() == pytest.approx(25, rel=0.3)  # Poisson


def test_near_ones_are_of_the_same_kind_of_thing():
    pairs, kind = made_pairs(400)
    described = described_pairs(pairs, seed=0)
    same = {}
    for name in KINDS:
        found = draw(
            name, np.arange(400), 400, images=pairs.image_index, captions=pairs.texts.captions, described=described
        )
        same[name] = (kind[found.image_of] == kind[found.caption_of]).mean()
    assert same["random"] < 0.3 and same["near"] > 0.9


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("count", [0, 1])
def test_fewer_than_two_pairs_cannot_be_mismatched(kind, count):
    found = draw(
        kind, np.arange(count), 5, images=np.arange(count), captions=["a"] * count, described=directions(count)
    )
    assert len(found) == 0 and found.image_of.dtype == np.int64


@pytest.mark.parametrize("kind", KINDS)
def test_two_pairs_exchange_their_captions(kind):
    found = draw(kind, [7, 9], 5, images=[0, 1], captions=["a", "b"], described=directions(2))
    assert sorted(zip(found.image_of.tolist(), found.caption_of.tolist(), strict=True)) == [(7, 9), (9, 7)]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("images", "captions"),
    [
        (range(30), ["the same"] * 30),
        (range(30), ["The  same", "the same "] * 15),
        ([0] * 30, [f"c{row}" for row in range(30)]),
    ],
)
def test_where_all_fit_none_is_made(kind, images, captions):
    assert len(draw(kind, np.arange(30), 30, images=list(images), captions=captions, described=directions(30))) == 0


# --- What is near -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("count", [2, 5, 30, 700])
def test_the_most_alike_as_plain_loops_say(count, monkeypatch):
    monkeypatch.setattr(module, "ROWS_AT_ONCE", 8)
    described = directions(count)
    chosen = np.random.default_rng(1).permutation(count)[:20]
    found = most_alike(described, chosen, np.random.default_rng(0))
    wanted = min(max(5, round(0.02 * count)), count - 1)
    for place, row in enumerate(chosen.tolist()):
        alike = {other: float(described[row] @ described[other]) for other in range(count) if other != row}
        assert set(found[place].tolist()) == set(sorted(alike, key=alike.get, reverse=True)[:wanted])


def test_very_many_pairs_are_compared_with_some(monkeypatch):
    monkeypatch.setattr(module, "MOST_CANDIDATES", 50)
    found = most_alike(directions(500), np.arange(500), np.random.default_rng(0))
    assert found.shape == (500, 5) and len(np.unique(found)) <= 50
    assert (found != np.arange(500)[:, None]).all()


def test_twenty_thousand_pairs_take_little_memory_and_time():
    described = directions(20_000, 64)
    chosen = np.arange(1024)
    tracemalloc.start()
    start = time.process_time()
    most_alike(described, chosen, np.random.default_rng(0))
    seconds, peak = time.process_time() - start, tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 150e6 and seconds < 2


# --- What a pair is like ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("regions", [0, 3])
@pytest.mark.parametrize("vectors", [False, True])
def test_pairs_are_described_by_both_sides_alike(regions, vectors):
    pairs, kind = made_pairs(120, each=2, regions=regions, vectors=vectors)
    found = described_pairs(pairs, seed=0)
    assert found.dtype == np.float32 and len(found) == 240
    np.testing.assert_allclose(np.linalg.norm(found, axis=1), 1, rtol=1e-5)
    alike, same = found @ found.T, kind[pairs.image_index][:, None] == kind[pairs.image_index]
    other = pairs.image_index[:, None] != pairs.image_index
    assert alike[same & other].mean() > alike[~same].mean() + 0.3
    width = 12 * max(regions, 1)
    np.testing.assert_allclose(np.linalg.norm(found[:, : min(64, width)], axis=1), 0.5**0.5, rtol=1e-5)


def test_descriptions_are_those_of_their_pairs_whatever_the_order():
    pairs, _ = made_pairs(80, each=2)
    order = np.random.default_rng(0).permutation(160)
    np.testing.assert_array_equal(described_pairs(pairs.take(order), seed=0), described_pairs(pairs, seed=0)[order])


@pytest.mark.parametrize("vectors", [False, True])
def test_each_half_is_of_the_image_and_the_text_of_the_pair(vectors):
    pairs, _ = made_pairs(80, each=2, vectors=vectors)
    pairs = pairs.take(np.random.default_rng(0).permutation(160))
    texts = main_directions(pairs.texts.features.astype(np.float32), 3) if vectors else None
    texts = word_directions(pairs.texts.captions, 3) if texts is None else texts
    found = described_pairs(pairs, seed=3) * 2**0.5
    np.testing.assert_allclose(found[:, :12], main_directions(pairs.images.features, 3)[pairs.image_index], rtol=1e-5)
    np.testing.assert_allclose(found[:, 12:], texts[pairs.text_index], rtol=1e-5)


@pytest.mark.parametrize("captions", [[""] * 40, ["!? ..."] * 40, [f"word{row}" for row in range(40)]])
def test_captions_that_share_no_word_say_nothing(captions):
    assert (word_directions(tuple(captions), 0) == 0).all()
    pairs, _ = made_pairs(40, captions=captions)
    found = described_pairs(pairs, seed=0)
    assert np.isfinite(found).all()
    np.testing.assert_allclose(np.linalg.norm(found, axis=1), 0.5**0.5, rtol=1e-5)


def test_the_same_words_are_the_same_direction():
    found = word_directions(("a red hat", "Hat, red!", "blue car", "blue car here", "nothing alike"), 0)
    np.testing.assert_allclose(found[0], found[1], atol=1e-6)
    np.testing.assert_allclose(found[0] @ found[2], 0, atol=1e-6)
    assert (found[4] == 0).all()


def test_many_words_become_64_directions():
    rng = np.random.default_rng(0)
    captions = tuple(" ".join(f"w{word}" for word in rng.integers(0, 300, 6)) for _ in range(500))
    found = word_directions(captions, 0)
    assert found.shape == (500, 64)
    np.testing.assert_allclose(np.linalg.norm(found, axis=1), 1, rtol=1e-5)
    few = word_directions(captions[:50] + captions[:50], 0)
    np.testing.assert_allclose(few[:50], few[50:], atol=1e-5)


@pytest.mark.parametrize("rows", [np.ones((30, 5)), np.zeros((30, 5)), np.ones((1, 5))])
def test_rows_that_are_all_the_same_have_no_directions(rows):
    assert (main_directions(rows.astype(np.float32), 0) == 0).all()


def test_half_precision_and_few_rows():
    rows = np.random.default_rng(0).normal(size=(6, 100)).astype(np.float16)
    found = main_directions(np.asarray(rows, dtype=np.float32), 0)
    assert found.shape == (6, 6) and np.isfinite(found).all()
