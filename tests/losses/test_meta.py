"""MSCN's margin and the loss of its head against plain loops."""

import math

import pytest
import torch

from truepair.errors import InputError
from truepair.losses.meta import meta_cross_entropy, score_margin

DRAW = torch.Generator().manual_seed(0)
SCORES = torch.rand(9, generator=DRAW, dtype=torch.float64)
LOGITS = 3 * torch.randn(6, 6, generator=DRAW, dtype=torch.float64)


def test_the_margin_is_its_formula():
    expected = [0.2 / (1 + (s / (1 - s)) ** -2) for s in SCORES.tolist()]
    assert score_margin(SCORES, 0.2).tolist() == pytest.approx(expected, abs=1e-12)


def test_margins_of_a_score_and_of_its_complement_add_up():
    torch.testing.assert_close(
        score_margin(SCORES, 0.2) + score_margin(1 - SCORES, 0.2), torch.full((9,), 0.2, dtype=torch.float64)
    )
    assert score_margin(torch.tensor([0.0, 0.5, 1.0]), 0.2).tolist() == pytest.approx([0, 0.1, 0.2])


def test_no_gradient_flows_into_scores_and_odd_ones_are_refused():
    assert not score_margin(SCORES.clone().requires_grad_(), 0.2).requires_grad
    with pytest.raises(InputError):
        score_margin(torch.tensor([1.5]), 0.2)


def test_the_meta_loss_is_that_of_a_plain_loop():
    total = 0.0
    for i in range(6):
        known, wrong = float(LOGITS[i, i]), float(LOGITS[i, (i + 1) % 6])
        total += -math.log(1 / (1 + math.exp(-known))) - math.log(1 - 1 / (1 + math.exp(-wrong)))
    assert float(meta_cross_entropy(LOGITS)) == pytest.approx(total / 12, abs=1e-12)
    assert torch.autograd.gradcheck(meta_cross_entropy, LOGITS.clone().requires_grad_())


def test_the_meta_loss_is_finite_for_any_logit_and_refuses_what_is_not_square():
    assert math.isfinite(float(meta_cross_entropy(1e4 * LOGITS)))
    with pytest.raises(InputError):
        meta_cross_entropy(LOGITS[:4])
