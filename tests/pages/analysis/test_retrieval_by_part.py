"""Retrieval by part: chance is exact, the map brings out what a cosine cannot see, and only what is there."""

import numpy as np
import pytest
import torch

from truepair.data.pairs import Images, Pairs, Texts
from truepair.evaluation import recall
from truepair.evaluation.subspaces import EncodedParts
from truepair.pages.analysis.retrieval import chance, cosine_recall, exclusive, fit_on_pairs, invariant, mapped_recall
from truepair.pages.analysis.subject import Split

WIDTH = 12


def made(count, seed, captions=2, known=True):
    """Images and texts whose exclusive parts hold the same latents, turned differently (or nothing in common)."""
    generator = torch.Generator().manual_seed(seed)
    turns = torch.Generator().manual_seed(99)
    turn_image, turn_text = (torch.randn(WIDTH, WIDTH, generator=turns) for _ in range(2))
    latents = torch.randn(count, WIDTH, generator=generator)
    spoken = latents.repeat_interleave(captions, dim=0) + 0.05 * torch.randn(
        count * captions, WIDTH, generator=generator
    )
    strangers = torch.randn(count * captions, WIDTH, generator=generator)
    images = EncodedParts(latents, torch.nn.functional.normalize(latents, dim=1), latents @ turn_image)
    texts = EncodedParts(
        spoken, torch.nn.functional.normalize(spoken, dim=1), (spoken if known else strangers) @ turn_text
    )
    pairs = Pairs(
        Images(np.zeros((count, 3), dtype=np.float32), tuple(map(str, range(count)))),
        Texts(("a",) * count * captions, tuple(map(str, range(count * captions)))),
        image_index=np.repeat(np.arange(count), captions),
        text_index=np.arange(count * captions),
    )
    return Split(pairs, images, texts)


def moved(parts):
    return EncodedParts(parts.features, parts.invariant, parts.exclusive + 1000)


def test_a_cosine_of_turned_parts_is_chance_and_a_map_is_not():
    train, test = made(400, 1), made(100, 2)
    level = chance(test.pairs.image_of_text, 100)["rsum"]
    assert cosine_recall(test, invariant)["rsum"] > 590
    assert cosine_recall(test, exclusive)["rsum"] < 2.5 * level
    assert mapped_recall(test, exclusive, fit_on_pairs(train, exclusive, seed=0))["rsum"] > 590


def test_a_map_finds_nothing_where_nothing_is():
    train, test = made(400, 1, known=False), made(100, 2, known=False)
    level = chance(test.pairs.image_of_text, 100)["rsum"]
    assert mapped_recall(test, exclusive, fit_on_pairs(train, exclusive, seed=0))["rsum"] < 2.5 * level


def test_a_common_offset_does_not_hide_what_the_parts_know():
    """Exclusive parts may all point one way; what tells them apart is around their mean."""
    train, test = made(400, 1), made(100, 2)
    far = [Split(split.pairs, moved(split.images), moved(split.texts)) for split in (train, test)]
    assert mapped_recall(far[1], exclusive, fit_on_pairs(far[0], exclusive, seed=0))["rsum"] > 590


@pytest.mark.parametrize("counts", [[1, 1, 1, 1, 1, 1, 1], [5, 5, 5, 5], [0, 3, 1, 2, 7, 0, 1, 1, 1, 1, 1, 1]])
def test_chance_is_what_random_similarities_give_on_average(counts):
    owner = np.repeat(np.arange(len(counts)), counts)
    generator = torch.Generator().manual_seed(0)
    found = [recall(torch.rand(len(counts), len(owner), generator=generator), owner) for _ in range(2000)]
    expected = chance(owner, len(counts))
    for name, value in expected.items():
        mean = np.mean([one[name] for one in found])
        error = np.std([one[name] for one in found]) / 2000**0.5
        assert abs(mean - value) <= 4 * error + 1e-9, name


def test_chance_of_the_field_by_hand():
    owner = np.repeat(np.arange(1000), 5)
    level = chance(owner, 1000)
    assert level["t2i_r1"] == pytest.approx(0.1) and level["t2i_r10"] == pytest.approx(1.0)
    assert level["i2t_r1"] == pytest.approx(0.1)  # 5 of 5,000
    assert level["i2t_r5"] == pytest.approx(
        100 * (1 - 4995 * 4994 * 4993 * 4992 * 4991 / (5000 * 4999 * 4998 * 4997 * 4996))
    )
    assert level["rsum"] == pytest.approx(sum(value for name, value in level.items() if name != "rsum"))
