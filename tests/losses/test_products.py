"""Products that a softmax reads are not rounded under autocast."""

import pytest
import torch
from torch.nn.functional import normalize

from truepair.losses.products import products
from truepair.losses.relation import relations
from truepair.losses.semi_paired import mined_matching, uniformity
from truepair.methods.in2r.prototypes import nearest_partners

DRAW = torch.Generator().manual_seed(0)
IMAGES, TEXTS = (normalize(torch.randn(40, 64, generator=DRAW), dim=1) for _ in range(2))

READ_BY = {
    "mined_matching": lambda images, texts: mined_matching(images, texts, texts, images),
    "uniformity": lambda images, texts: uniformity(images),
    "relations": lambda images, texts: relations(images, texts),
    "nearest_partners": lambda images, texts: nearest_partners(
        images, texts, texts, torch.zeros(40, 40, dtype=torch.bool), 3
    ),
}


@pytest.mark.parametrize("name", READ_BY)
def test_autocast_changes_nothing(name):
    plain = READ_BY[name](IMAGES, TEXTS)
    with torch.autocast("cpu", torch.bfloat16):
        assert (IMAGES @ TEXTS.T).dtype == torch.bfloat16  # what would be rounded
        mixed = READ_BY[name](IMAGES, TEXTS)
    assert mixed.dtype == torch.float32 and torch.equal(mixed, plain)


def test_the_wider_type_counts():
    assert products(IMAGES.double(), TEXTS).dtype == torch.float64
    assert products(IMAGES.bfloat16(), TEXTS.half()).dtype == torch.float32
    torch.testing.assert_close(products(IMAGES, TEXTS), IMAGES @ TEXTS.T)
