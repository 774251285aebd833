"""BiCro's consistency against a loop over anchors, and what it must not depend on."""

import math

import pytest
import torch

from truepair.correspondence.consistency import bidirectional_consistency
from truepair.errors import InputError

DRAW = torch.Generator().manual_seed(0)
IMAGES, TEXTS = (torch.randn(9, width, generator=DRAW, dtype=torch.float64) for width in (4, 6))
ANCHORS = torch.tensor([2, 5, 7])


def cosine(a, b):
    return sum(x * y for x, y in zip(a, b, strict=True)) / math.sqrt(sum(x * x for x in a) * sum(y * y for y in b))


def plain(images, texts, anchors):
    images, texts, found = images.tolist(), texts.tolist(), []
    for image, text in zip(images, texts, strict=True):
        by_image = max(anchors, key=lambda k: cosine(image, images[k]))
        by_text = max(anchors, key=lambda k: cosine(text, texts[k]))
        pairs = [
            (cosine(image, images[by_image]), cosine(text, texts[by_image])),
            (cosine(text, texts[by_text]), cosine(image, images[by_text])),
        ]
        value = sum(min(a / b, b / a) for a, b in pairs) / 2
        found.append(min(max(value, 0.0), 1.0))
    return found


def test_it_is_that_of_a_plain_loop():
    found = bidirectional_consistency(IMAGES, TEXTS, ANCHORS)
    assert found.tolist() == pytest.approx(plain(IMAGES, TEXTS, ANCHORS.tolist()), abs=1e-12)
    assert 0 < float((found > 0).double().mean()) < 1


def test_texts_that_are_rotated_images_are_all_consistent():
    rotation = torch.linalg.qr(torch.randn(4, 4, generator=DRAW, dtype=torch.float64)).Q
    found = bidirectional_consistency(IMAGES, IMAGES @ rotation, ANCHORS)
    torch.testing.assert_close(found, torch.ones(9, dtype=torch.float64), rtol=0, atol=1e-9)


def test_sides_lengths_and_order_do_not_matter():
    found = bidirectional_consistency(IMAGES, TEXTS, ANCHORS)
    torch.testing.assert_close(bidirectional_consistency(TEXTS, IMAGES, ANCHORS), found)
    torch.testing.assert_close(bidirectional_consistency(3 * IMAGES, TEXTS / 5, ANCHORS[[2, 0, 1]]), found)


def test_without_anchors_nothing_is_consistent():
    assert bidirectional_consistency(IMAGES, TEXTS, ANCHORS[:0]).tolist() == [0.0] * 9


def test_vectors_of_zero_are_finite():
    assert bool(torch.isfinite(bidirectional_consistency(0 * IMAGES, TEXTS, ANCHORS)).all())


def test_unequal_numbers_are_refused():
    with pytest.raises(InputError, match="one vector an item"):
        bidirectional_consistency(IMAGES[:3], TEXTS, ANCHORS)
