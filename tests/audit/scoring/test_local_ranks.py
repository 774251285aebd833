"""Local ranks: against plain loops, on spaces of known noise, and on degenerate ones."""

from collections import Counter

import numpy as np
import pytest
import torch

from tests.audit.scoring.naive_ranks import naive_neighbours, naive_sum
from truepair.audit.scoring import local_ranks as room
from truepair.audit.scoring.local_ranks import local_ranks, neighbours, ranks_of, ranks_of_spaces
from truepair.audit.verdict.near_share import near_share
from truepair.correspondence.mixture_proportion import Estimate

EVERYTHING = 2.0  # no cosine is as large: nothing is the same


def local_share(spaces, rng):
    ranks = ranks_of_spaces(spaces, rng)
    return near_share(ranks, Estimate(0.0, 0.0, 0.0, 0.0, 0.5)) if ranks else None


def unit(rows):
    return torch.nn.functional.normalize(torch.as_tensor(rows, dtype=torch.float32), dim=1)


def made(count, *, noise=0.0, within=None, seed=0, width=32, blur=0.6):
    """Unit vectors of pairs of 40 kinds; a share of the captions moved, anywhere or among pairs of the same kind.

    Image and text of a pair are its own direction, blurred; directions of a kind lie close together.
    """
    rng = np.random.default_rng(seed)
    kind = rng.integers(0, 40, count)
    own = 1.2 * rng.normal(size=(40, width))[kind] + rng.normal(size=(count, width))
    images, texts = (own + blur * rng.normal(size=own.shape) for _ in range(2))
    caption, moved = np.arange(count), rng.permutation(count)[: round(noise * count)]
    if within is None:
        caption[moved] = np.roll(moved, 1)
    else:
        for one in range(40):
            here = moved[kind[moved] == one]
            caption[here] = np.roll(here, 1)
    return unit(images), unit(texts[caption])


# --- Against plain loops ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("same", [0.5, EVERYTHING])
def test_neighbours_as_plain_loops_say(same):
    images, texts = (
        unit(np.random.default_rng(0).normal(size=(40, 4))),
        unit(np.random.default_rng(1).normal(size=(40, 4))),
    )
    found = neighbours(images, texts, 6, same)
    expected = naive_neighbours(images.double().tolist(), texts.double().tolist(), 6, same)
    for side in range(2):
        kept = [[row for row in rows if row >= 0] for rows in found[side].tolist()]
        assert kept == [both[side] for both in expected]


@pytest.mark.parametrize("seed", range(3))
def test_ranks_as_plain_loops_say(seed, monkeypatch):
    monkeypatch.setattr(room, "ROWS_AT_ONCE", 7)
    rng = np.random.default_rng(seed)
    images, texts = unit(rng.normal(size=(50, 5))), unit(rng.normal(size=(50, 5)))
    texts[::5] = texts[0]  # equals
    near = neighbours(images, texts, 8)
    image, caption = torch.from_numpy(rng.integers(0, 50, 30)), torch.from_numpy(rng.integers(0, 50, 30))
    found = ranks_of(image, caption, images, texts, *near)
    sides = images.double().tolist(), texts.double().tolist()
    nearest = naive_neighbours(*sides, 8, room.SAME)
    expected = [naive_sum(i, c, *sides, nearest, 8) for i, c in zip(image.tolist(), caption.tolist(), strict=True)]
    np.testing.assert_allclose(found.numpy(), expected, atol=1e-6)


def test_equals_count_half_and_one_without_neighbours_is_in_the_middle():
    own, asking, side = (
        torch.tensor([0.5, 0.5, 0.2]),
        unit([[1.0, 0], [1, 0], [0, 1]]),
        torch.tensor([[0.5, 0.1], [0.5, -0.9], [0.7, 0.3], [0.1, 0.2]]),
    )
    near = torch.tensor([[0, 1, 2, 3], [3, 0, -1, -1], [-1, -1, -1, -1]])
    assert room.rank(own, asking, side, near).tolist() == [(0.5 + 0.5 + 0 + 1) / 4, (1 + 0.5) / 2, 0.5]


def test_pairs_are_asked_whose_kind_of_caption_models_see_best():
    images, texts = made(200, noise=0.3, seed=7, blur=1.5)
    found = local_ranks(images, texts, np.random.default_rng(0))
    sides = images.double().tolist(), texts.double().tolist()
    nearest = naive_neighbours(*sides, room.LIKE, room.SAME)
    ranks = [naive_sum(i, i, *sides, nearest, room.NEIGHBOURS) for i in range(200)]
    seen = np.array([np.mean([ranks[j] for j in nearest[i][1]]) for i in range(200)])
    edge = np.sort(seen)[-60] + np.array([1e-6, -1e-6])
    sure, perhaps = (Counter(np.round(np.array(ranks)[seen > least], 4)) for least in edge)  # equals are at the edge
    chosen = Counter(np.round(found.given.astype(float), 4))
    assert chosen.total() == 60 and sure.total() > 50 and sure <= chosen <= perhaps
    assert 0.9 * room.SYNTHETIC_EACH * 60 <= len(found.synthetic) <= room.SYNTHETIC_EACH * 60


# --- Spaces of known noise ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("within", [None, "kind"])
@pytest.mark.parametrize("noise", [0.1, 0.4, 0.7])
def test_mismatches_are_counted_wherever_their_captions_come_from(noise, within):
    found = local_share([made(3000, noise=noise, within=within)], np.random.default_rng(0))
    assert found.share == pytest.approx(noise, abs=0.08 if within is None else 0.05)
    assert found.low <= noise <= found.high and found.pairs == 900


def test_clean_pairs_are_none():
    assert local_share([made(3000), made(2000, seed=1)], np.random.default_rng(0)).share < 0.02


def test_all_mismatched_are_all():
    images, texts = made(2000)
    assert local_share([(images, texts.flip(0))], np.random.default_rng(0)).share > 0.9


def test_several_spaces_count_as_one():
    first, second = made(1500, noise=0.5), made(1500, seed=1)
    both = local_share([first, second], np.random.default_rng(0))
    assert both.pairs == 900
    assert both.share == pytest.approx(0.25, abs=0.08)


def test_small_spaces_are_not_asked():
    assert local_share([made(999), made(10)], np.random.default_rng(0)) is None
    assert local_share([], np.random.default_rng(0)) is None
    assert local_share([made(999), made(1000)], np.random.default_rng(0)).pairs == 300


def test_several_captions_of_an_image_are_not_each_others_neighbours():
    images, texts = made(400)
    five = (
        images.repeat_interleave(5, dim=0),
        unit(texts.repeat_interleave(5, dim=0).numpy() + 0.05 * np.random.default_rng(0).normal(size=(2000, 32))),
    )
    near = neighbours(*five, 10)[1]
    assert (near // 5 != torch.arange(2000)[:, None] // 5).all()
    assert local_share([five], np.random.default_rng(0)).share < 0.05


# --- Degenerate spaces --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("count", [2, 3, 60])
def test_few_pairs(count):
    found = local_ranks(*made(count), np.random.default_rng(0))
    assert len(found.given) >= 1 and np.isfinite(found.given).all() and np.isfinite(found.synthetic).all()
    assert 0 <= near_share([found], Estimate(0.0, 0.0, 0.0, 0.0, 0.5)).share <= 1


def test_a_space_in_which_all_is_one_says_nothing():
    same = unit(np.ones((1200, 4)))
    found = local_share([(same, same)], np.random.default_rng(0))
    assert found.share == 0 and found.high == 1


def test_no_hidden_randomness():
    spaces = [made(1100, noise=0.3)]
    first, again = (local_share(spaces, np.random.default_rng(4)) for _ in range(2))
    assert first == again != local_share(spaces, np.random.default_rng(5))
