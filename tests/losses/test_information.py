"""DisNCL's information terms: the estimator's closed form, the reversed gradient, derangements, the divergence."""

import math

import pytest
import torch
from torch.distributions import Independent, Normal, kl_divergence

from truepair.errors import InputError
from truepair.losses import jensen_shannon, reverse_gradient, unit_gaussian_divergence
from truepair.losses.information import blurred, derangement


def test_the_estimate_equals_its_closed_form_for_a_fixed_discriminator():
    joint, marginal = [2.0, -1.0, 0.5], [-3.0, 1.0]

    def d(logit):
        return 1 / (1 + math.exp(-logit))

    expected = sum(math.log(d(z)) for z in joint) / 3 + sum(math.log(1 - d(z)) for z in marginal) / 2
    found = jensen_shannon(torch.tensor(joint).double(), torch.tensor(marginal).double())
    assert float(found) == pytest.approx(expected, abs=1e-12)


def test_it_is_zero_for_a_perfect_discriminator_and_twice_log_half_for_a_blind_one():
    assert float(jensen_shannon(torch.full((4,), 500.0), torch.full((4,), -500.0))) == pytest.approx(0, abs=1e-12)
    assert float(jensen_shannon(torch.zeros(4), torch.zeros(4))) == pytest.approx(-2 * math.log(2))
    wrong = jensen_shannon(torch.full((4,), -500.0).requires_grad_(), torch.full((4,), 500.0))
    assert math.isfinite(float(wrong.detach()))


def test_a_reversed_gradient_has_the_other_sign_and_the_scale():
    x = torch.tensor([1.0, -2.0], dtype=torch.float64, requires_grad=True)
    weight = torch.tensor([3.0, 5.0], dtype=torch.float64)
    passed = reverse_gradient(x, scale=0.5)
    assert torch.equal(passed, x)
    (gradient,) = torch.autograd.grad((passed * weight).sum(), x)
    assert torch.equal(gradient, -0.5 * weight)


def test_strangers_are_a_permutation_that_leaves_nobody_in_place():
    for count in (2, 3, 17):
        for seed in range(20):
            partner = derangement(count, torch.Generator().manual_seed(seed))
            assert sorted(partner.tolist()) == list(range(count))
            assert not bool((partner == torch.arange(count)).any())
    every = {tuple(derangement(4, torch.Generator().manual_seed(seed)).tolist()) for seed in range(200)}
    assert len(every) == 6  # all cycles through four


def test_the_divergence_is_that_of_unit_gaussians_in_both_directions():
    a, b = torch.randn(2, 5, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(0))

    def unit_normal(mean):
        return Independent(Normal(mean, torch.ones_like(mean)), 1)

    found = unit_gaussian_divergence(a, b)
    assert torch.allclose(found, kl_divergence(unit_normal(a), unit_normal(b)), atol=1e-12)
    assert torch.allclose(found, unit_gaussian_divergence(b, a))
    assert float(unit_gaussian_divergence(a, a).abs().max()) == 0


@pytest.mark.parametrize("count", [1, 2, 5])
def test_gradients(count):
    draws = torch.Generator().manual_seed(count)
    joint, marginal = (
        torch.randn(n, dtype=torch.float64, generator=draws).mul(3).requires_grad_() for n in (count, count + 1)
    )
    assert torch.autograd.gradcheck(jensen_shannon, (joint, marginal))
    first, second = (torch.randn(count, 4, dtype=torch.float64, generator=draws).requires_grad_() for _ in range(2))
    assert torch.autograd.gradcheck(unit_gaussian_divergence, (first, second))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float64])
@pytest.mark.parametrize("count", [1, 2, 512])
def test_they_are_finite_with_gradients_at_the_extremes(count, dtype):
    for logit in (1e4, -1e4, 0.0):
        logits = [torch.full((count, 1), sign * logit, dtype=dtype).requires_grad_() for sign in (1, -1)]
        value = jensen_shannon(*logits)
        assert bool(torch.isfinite(value)) and float(value.detach()) <= 0
        assert all(bool(torch.isfinite(gradient).all()) for gradient in torch.autograd.grad(value, logits))
    ends = [torch.full((count, 3), sign, dtype=dtype).requires_grad_() for sign in (1.0, -1.0)]
    assert unit_gaussian_divergence(*ends).tolist() == [6.0] * count  # ‖(2, 2, 2)‖²/2
    gradients = torch.autograd.grad(unit_gaussian_divergence(*ends).sum(), ends)
    assert [gradient.unique().tolist() for gradient in gradients] == [[2.0], [-2.0]]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: jensen_shannon(torch.zeros(0), torch.zeros(2)), "0 joint and 2 marginal"),
        (lambda: derangement(1), "keeps its place"),
        (lambda: unit_gaussian_divergence(torch.zeros(2, 3), torch.zeros(2, 4)), "expected"),
        (lambda: jensen_shannon(torch.tensor([0.0, math.nan]), torch.zeros(2)), r"joint logits\[1\] is nan"),
        (
            lambda: jensen_shannon(torch.zeros(2, 1), torch.tensor([[math.inf], [0.0]])),
            r"marginal logits\[0, 0\] is inf",
        ),
        (lambda: jensen_shannon(torch.tensor(math.nan), torch.zeros(2)), "joint logits is nan"),
        (
            lambda: unit_gaussian_divergence(torch.zeros(1, 2), torch.tensor([[0.0, math.nan]])),
            r"second\[0, 1\] is nan",
        ),
    ],
)
def test_bad_input_is_named(call, message):
    with pytest.raises(InputError, match=message):
        call()


def test_discriminators_see_parts_spread_out_and_blurred():
    """Neither a shift of a part nor its scale hides anything; the noise is of the size that was asked for."""
    part = torch.randn(4000, 5, generator=torch.Generator().manual_seed(0)) * torch.tensor([3.0, 1.0, 0.1, 1.0, 2.0])
    clear = blurred(part, 0.0)
    assert torch.allclose(clear.mean(dim=0), torch.zeros(5), atol=1e-6)
    assert float(clear.square().mean()) == pytest.approx(1.0, rel=1e-5)
    assert torch.allclose(blurred(0.01 * part + 3.0, 0.0), clear, atol=1e-3)
    noise = blurred(part, 0.5, torch.Generator().manual_seed(1)) - clear
    assert float(noise.std()) == pytest.approx(0.5, rel=0.02) and abs(float(noise.mean())) < 0.02
    assert not blurred(torch.ones(4, 5), 0.0).any()  # parts that are all alike tell nothing, and are no NaN
