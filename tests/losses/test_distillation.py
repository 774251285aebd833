"""Distillation of a batch against plain float64 loops, and what keeps it harmless where a pair is disbelieved."""

import math

import pytest
import torch

from truepair.errors import InputError
from truepair.losses import batch_distillation


def uniform(size, seed, dtype=torch.float64):
    values = torch.rand(size, size, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    return (2 * values - 1).to(dtype)


def some_left_out(size, seed=2):
    return torch.rand(size, generator=torch.Generator().manual_seed(seed)) < 0.4


def loop_softmax(values):
    largest = max(values)
    powers = [math.exp(value - largest) for value in values]
    return [power / math.fsum(powers) for power in powers]


def loop_distillation(similarity, target, temperature, target_temperature, left_out):
    s, t = similarity.double().tolist(), target.double().tolist()
    size, losses = len(s), []
    for i in range(size):
        others = [j for j in range(size) if j != i or not left_out[i]]
        total = 0.0
        for cell in (lambda matrix, j, i=i: matrix[i][j]), (lambda matrix, j, i=i: matrix[j][i]):
            if others:
                p = loop_softmax([cell(s, j) / temperature for j in others])
                q = loop_softmax([cell(t, j) / target_temperature for j in others])
                total += math.fsum(b * (math.log(b) - math.log(a)) for a, b in zip(p, q, strict=True) if b > 0)
        losses.append(total)
    return losses


@pytest.mark.parametrize("size", [1, 2, 7, 64])
@pytest.mark.parametrize("cut", [False, True])
@pytest.mark.parametrize("target_temperature", [None, 0.07])
@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float64, 1e-12), (torch.float32, 1e-4)])
def test_it_equals_a_plain_loop(size, cut, target_temperature, dtype, tolerance):
    similarity, target = uniform(size, 0, dtype), uniform(size, 1, dtype)
    left_out = some_left_out(size) if cut else None
    found = batch_distillation(
        similarity, target, temperature=0.1, target_temperature=target_temperature, left_out=left_out
    )
    cells = [False] * size if left_out is None else left_out.tolist()
    expected = loop_distillation(similarity, target, 0.1, target_temperature or 0.1, cells)
    assert found.dtype == dtype
    assert torch.allclose(found.double(), torch.tensor(expected, dtype=torch.float64), atol=tolerance)


def test_gradients_are_those_of_finite_differences_and_none_reaches_the_target():
    similarity, target = uniform(5, 0).requires_grad_(), uniform(5, 1).requires_grad_()
    left_out = torch.tensor([True, False, False, True, False])
    torch.autograd.gradcheck(
        lambda s: batch_distillation(s, target.detach(), temperature=0.3, left_out=left_out), (similarity,)
    )
    batch_distillation(similarity, target, temperature=0.3).sum().backward()
    assert target.grad is None


def test_it_is_zero_where_the_student_agrees_and_larger_everywhere_else():
    similarity = uniform(9, 0)
    assert torch.allclose(batch_distillation(similarity, similarity), torch.zeros(9, dtype=torch.float64), atol=1e-12)
    assert bool((batch_distillation(similarity, uniform(9, 1)) > 0).all())
    shifted = similarity + 0.3  # only differences within a row or column count
    assert torch.allclose(batch_distillation(similarity, shifted), torch.zeros(9, dtype=torch.float64), atol=1e-9)


def test_the_order_of_the_pairs_does_not_matter():
    order = torch.randperm(12, generator=torch.Generator().manual_seed(3))
    similarity, target, left_out = uniform(12, 0), uniform(12, 1), some_left_out(12)
    moved = batch_distillation(similarity[order][:, order], target[order][:, order], left_out=left_out[order])
    assert torch.allclose(moved, batch_distillation(similarity, target, left_out=left_out)[order], atol=1e-12)


def test_a_pair_left_out_makes_no_use_of_its_own_cell():
    similarity, target = uniform(6, 0).requires_grad_(), uniform(6, 1)
    left_out = torch.tensor([True, False, True, False, False, False])
    loss = batch_distillation(similarity, target, left_out=left_out)
    (gradient,) = torch.autograd.grad(loss.sum(), similarity)
    assert (gradient.diagonal() == 0).tolist() == left_out.tolist()
    changed = target.clone()
    changed[0, 0] += 5
    with torch.no_grad():
        other = similarity.clone()
        other[0, 0] -= 5
        assert torch.equal(batch_distillation(other, changed, left_out=left_out)[0], loss[0])


def test_the_gradient_of_a_pair_is_bounded():
    """By 1/τ a cell and 2/τ a row or column, for the most wrong student there can be."""
    temperature, size = 0.05, 128
    target = 2 * torch.eye(size, dtype=torch.float64) - 1
    for similarity in (-target, target.roll(1, dims=1), 1e3 * uniform(size, 0)):
        similarity.requires_grad_()
        (gradient,) = torch.autograd.grad(batch_distillation(similarity, target)[3], similarity)
        similarity.requires_grad_(False)
        assert bool(torch.isfinite(gradient).all())
        assert float(gradient.abs().max()) <= 2 / temperature + 1e-9  # the own cell is in a row and a column
        assert float(gradient.abs().sum()) <= 4 / temperature + 1e-9


def test_one_candidate_or_none_is_no_loss():
    lonely = torch.ones(1, 1, dtype=torch.float64, requires_grad=True)
    loss = batch_distillation(lonely, torch.zeros(1, 1), left_out=torch.tensor([True]))
    loss.sum().backward()
    assert (loss.tolist(), lonely.grad.tolist()) == ([0.0], [[0.0]])
    assert batch_distillation(uniform(2, 0), uniform(2, 1), left_out=torch.tensor([True, True])).tolist() == [0.0, 0.0]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: batch_distillation(torch.ones(2, 3), torch.ones(2, 3)), r"shape \(2, 3\)"),
        (lambda: batch_distillation(torch.eye(2), torch.eye(3)), r"target has shape \(3, 3\)"),
        (lambda: batch_distillation(torch.eye(2), torch.full((2, 2), math.nan)), r"similarity\[0, 0\]"),
        (lambda: batch_distillation(torch.eye(2), torch.eye(2), temperature=0.0), "temperature is 0"),
        (lambda: batch_distillation(torch.eye(2), torch.eye(2), target_temperature=-1.0), "temperature is -1"),
        (lambda: batch_distillation(torch.eye(2), torch.eye(2), left_out=torch.ones(2)), "left_out is torch.float32"),
        (lambda: batch_distillation(torch.eye(2), torch.eye(2), left_out=torch.ones(3).bool()), "left_out is .*3"),
    ],
)
def test_bad_input_is_named(call, message):
    with pytest.raises(InputError, match=message):
        call()
