"""RCSL's losses against plain loops."""

import math

import pytest
import torch
from torch.nn.functional import normalize

from tests.losses.test_losses import loop_probability
from truepair.errors import InputError
from truepair.losses.semi_paired import alignment, mined_matching, uniformity

DRAW = torch.Generator().manual_seed(0)
IMAGES, TEXTS, OF_IMAGES, OF_TEXTS = (
    normalize(torch.randn(6, 4, generator=DRAW, dtype=torch.float64), dim=1) for _ in range(4)
)


def distance(a, b):
    return sum((x - y) ** 2 for x, y in zip(a.tolist(), b.tolist(), strict=True))


def test_alignment_and_uniformity_are_their_formulas():
    assert alignment(IMAGES, TEXTS).tolist() == pytest.approx(
        [distance(v, t) for v, t in zip(IMAGES, TEXTS, strict=True)], abs=1e-12
    )
    powers = [math.exp(-2 * distance(IMAGES[i], IMAGES[j])) for i in range(6) for j in range(i + 1, 6)]
    assert float(uniformity(IMAGES)) == pytest.approx(math.log(sum(powers) / 15), abs=1e-12)
    assert torch.autograd.gradcheck(lambda x: uniformity(x), IMAGES.clone().requires_grad_())
    assert torch.autograd.gradcheck(lambda x: alignment(x, TEXTS), IMAGES.clone().requires_grad_())


def test_equal_vectors_are_the_least_uniform_and_one_alone_costs_nothing():
    assert float(uniformity(IMAGES[:1].expand(4, 4))) == pytest.approx(0.0, abs=1e-12)
    assert float(uniformity(IMAGES)) < 0 and float(uniformity(IMAGES[:1])) == 0


def plain_matching(rows):
    columns = [list(column) for column in zip(*rows, strict=True)]
    return [
        (2 - loop_probability(rows[i], 0.3)[i] - loop_probability(columns[i], 0.3)[i]) / 2 for i in range(len(rows))
    ]


def test_matching_is_half_of_what_is_not_believed_of_the_partners():
    found = mined_matching(IMAGES, TEXTS, OF_IMAGES, OF_TEXTS, temperature=0.3)
    first, second = plain_matching((IMAGES @ OF_IMAGES.T).tolist()), plain_matching((OF_TEXTS @ TEXTS.T).tolist())
    assert found.tolist() == pytest.approx([a + b for a, b in zip(first, second, strict=True)], abs=1e-12)
    assert float(found.min()) >= 0 and float(found.max()) <= 2
    given = IMAGES.clone().requires_grad_()
    assert torch.autograd.gradcheck(lambda v: mined_matching(v, TEXTS, OF_IMAGES, OF_TEXTS, temperature=0.3), given)


def test_over_all_targets_matching_does_not_depend_on_the_probabilities():
    """What makes it tolerant of wrong partners: with every candidate as the target in turn it sums to B − 1 a query."""
    total = torch.zeros((), dtype=torch.float64)
    for shift in range(6):
        moved = OF_IMAGES.roll(shift, dims=0)
        p = (IMAGES @ moved.T / 0.3).softmax(dim=1).diagonal()
        total = total + (1 - p)[0]
    assert float(total) == pytest.approx(5.0, abs=1e-12)


def test_bad_shapes_are_refused():
    with pytest.raises(InputError):
        alignment(IMAGES, TEXTS[:3])
    with pytest.raises(InputError):
        uniformity(IMAGES[0])
    with pytest.raises(InputError):
        uniformity(IMAGES, sharpness=0.0)
