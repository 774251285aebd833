"""RINCE against its formula in plain exponentials, and its two limits."""

import math

import pytest
import torch

from truepair.errors import InputError
from truepair.losses import info_nce, robust_info_nce


def matrix(size, seed=0):
    return torch.rand(size, size, generator=torch.Generator().manual_seed(seed), dtype=torch.float64) * 2 - 1


def loop(similarity, temperature, q, density, largest=1.0):
    rows, losses = similarity.tolist(), []
    for i in range(len(rows)):
        total = 0.0
        for line in (rows[i], [row[i] for row in rows]):
            powers = [math.exp(value / temperature) for value in line]
            total += -(powers[i] ** q) / q + (density * sum(powers)) ** q / q
        losses.append(total / 2 * temperature * math.exp(-q * largest / temperature))
    return losses


@pytest.mark.parametrize("size", [1, 2, 5])
@pytest.mark.parametrize(("temperature", "q", "density"), [(0.07, 0.1, 0.01), (0.3, 1.0, 0.25), (0.1, 0.6, 2.0)])
def test_it_is_its_formula(size, temperature, q, density):
    similarity = matrix(size, size)
    found = robust_info_nce(similarity, temperature=temperature, exponent=q, density=density)
    assert found.tolist() == pytest.approx(loop(similarity, temperature, q, density), abs=1e-12)
    given = similarity.clone().requires_grad_()
    assert torch.autograd.gradcheck(
        lambda s: robust_info_nce(s, temperature=temperature, exponent=q, density=density), given
    )


@pytest.mark.parametrize("q", [0.1, 1.0])
def test_a_scale_of_the_models_own_does_not_overflow(q):
    """Cosines times 100, as a trained CLIP has them: S is up to 100 τ."""
    similarity = 7 * matrix(5)
    found = robust_info_nce(similarity, exponent=q, largest=7.0)
    assert found.tolist() == pytest.approx(loop(similarity, 0.07, q, 0.01, 7.0), abs=1e-12)
    extreme = torch.full((6, 6), 7.0, requires_grad=True)  # float32, vectors that are all the same
    robust_info_nce(extreme, exponent=q, largest=7.0).sum().backward()
    assert torch.isfinite(extreme.grad).all() and extreme.grad.abs().max() <= 1


def test_towards_q_0_it_is_info_nce():
    similarity = matrix(6)
    found = robust_info_nce(similarity, temperature=0.2, exponent=1e-9, density=0.01) / 0.2
    expected = info_nce(similarity, temperature=0.2) + math.log(0.01)
    torch.testing.assert_close(found, expected, rtol=1e-7, atol=1e-7)


def test_at_q_1_it_tolerates_noise():
    """The sum over all choices of the target does not depend on the similarities: it is 0 for λ = 1/B."""
    similarity, total = matrix(5), torch.zeros(5, dtype=torch.float64)
    for shift in range(5):
        moved = similarity.roll(shift, dims=1)  # row i, candidate i + shift on the diagonal
        to_text = robust_info_nce(moved, temperature=0.5, exponent=1.0, density=0.2)
        to_image = robust_info_nce(moved.T, temperature=0.5, exponent=1.0, density=0.2)
        assert torch.equal(to_text, to_image)
        total += to_text
    assert float(total.sum()) == pytest.approx(0.0, abs=1e-12)
    assert float(robust_info_nce(similarity, temperature=0.5, exponent=0.5, density=0.2).sum()) != pytest.approx(0.0)


def test_pairs_in_another_order_have_the_same_losses():
    similarity, order = matrix(7), torch.randperm(7, generator=torch.Generator().manual_seed(1))
    found = robust_info_nce(similarity[order][:, order])
    torch.testing.assert_close(found, robust_info_nce(similarity)[order], rtol=0, atol=1e-14)


@pytest.mark.parametrize("similarity", [torch.ones(4, 4), 2 * torch.eye(4) - 1, 1 - 2 * torch.eye(4)])
@pytest.mark.parametrize("q", [0.01, 1.0])
def test_extremes_are_finite(similarity, q):
    given = similarity.clone().requires_grad_()
    loss = robust_info_nce(given, temperature=0.01, exponent=q)
    loss.sum().backward()
    assert bool(torch.isfinite(loss).all()) and bool(torch.isfinite(given.grad).all())


@pytest.mark.parametrize("bad", [{"exponent": 0.0}, {"exponent": 1.5}, {"density": 0.0}, {"temperature": 0.0}])
def test_bad_values_are_refused(bad):
    with pytest.raises(InputError):
        robust_info_nce(torch.eye(3), **bad)
