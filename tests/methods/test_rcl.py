"""RCL: what its forms share and where they go over into each other; the oracle is in tests/losses/test_losses.py."""

import pytest
import torch

from tests.methods.test_baselines import SIMILARITY, GivenForward, prepared
from truepair.errors import InputError
from truepair.losses import complementary_contrastive
from truepair.losses.active_complementary import COMPLEMENTARY, active_complementary
from truepair.methods import build_method
from truepair.methods.base import EpochPosition

S = torch.rand(6, 6, generator=torch.Generator().manual_seed(2), dtype=torch.float64) * 2 - 1


@pytest.mark.parametrize("form", COMPLEMENTARY)
def test_the_gradient_is_that_of_the_value_and_the_order_of_pairs_does_not_matter(form):
    order = torch.tensor([3, 0, 5, 1, 4, 2])
    found = complementary_contrastive(S[order][:, order], form=form)
    torch.testing.assert_close(found, complementary_contrastive(S, form=form)[order], rtol=0, atol=1e-12)
    given = S.clone().requires_grad_()
    assert torch.autograd.gradcheck(lambda s: complementary_contrastive(s, temperature=0.3, form=form), given)


def test_mae_tolerates_noise():
    p, transposed = (S / 0.5).softmax(dim=1), (S / 0.5).softmax(dim=0)
    found = complementary_contrastive(S, temperature=0.5, form="mae")
    torch.testing.assert_close(found, 2 - p.diagonal() - transposed.diagonal(), rtol=0, atol=1e-12)
    # With every other text as the target in turn, the first image costs B − 1 in its direction, whatever p is.
    total = sum(1 - p[0, target] for target in range(6))
    assert float(total) == pytest.approx(5.0, abs=1e-12)


def test_gce_lies_between_log_and_mae():
    def loss(form, q=0.5):
        return complementary_contrastive(S, temperature=0.2, form=form, exponent=q)

    torch.testing.assert_close(loss("gce", 1.0), loss("mae"), rtol=0, atol=1e-12)
    torch.testing.assert_close(loss("gce", 1e-9), loss("log"), rtol=1e-7, atol=0)
    assert bool((loss("mae") < loss("gce")).all() and (loss("gce") < loss("log")).all())


def test_tan_is_the_complementary_part_of_crcl_at_q_0():
    expected = active_complementary(S, torch.zeros(6), active_weight=0.0, scale=1.0, exponent=0.0)
    torch.testing.assert_close(complementary_contrastive(S, form="tan"), expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("form", COMPLEMENTARY)
def test_a_network_that_is_sure_and_wrong_has_a_finite_loss(form):
    wrong = (torch.eye(4).roll(1, dims=1) * 2 - 1).requires_grad_()
    loss = complementary_contrastive(wrong, temperature=0.01, form=form)
    loss.sum().backward()
    assert bool(torch.isfinite(loss).all() and torch.isfinite(wrong.grad).all())


def test_the_method_is_its_loss():
    method, memory, stages = prepared("rcl", {"form": "gce", "exponent": 0.2, "temperature": 0.1})
    found = method.batch_loss(GivenForward(), EpochPosition(0, 1, stages), memory).per_pair
    expected = complementary_contrastive(SIMILARITY, temperature=0.1, form="gce", exponent=0.2)
    assert torch.equal(found, expected)
    assert method.belief(memory)[[2, 4]].tolist() == [1.0, 1.0]


def test_an_exponent_without_its_form_is_refused():
    with pytest.raises(InputError, match="exponent is 0.3, which only the form gce has, and form is tan"):
        build_method("rcl", {"form": "tan", "exponent": 0.3})
    with pytest.raises(InputError, match="expected a value in"):
        complementary_contrastive(S, form="gce", exponent=0.0)
