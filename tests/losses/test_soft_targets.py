"""DisNCL's soft alignment against plain float64 loops, and what theorem 3 rests on."""

import math

import pytest
import torch

from truepair.errors import InputError
from truepair.losses import reverse_cross_entropy, soft_alignment
from truepair.losses.soft_targets import soft_targets

FLOOR = -4.0


def random_similarity(size, seed=0, scale=1.0, dtype=torch.float64):
    values = torch.rand(size, size, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    return (scale * (2 * values - 1)).to(dtype)


def loop_softmax(values):
    largest = max(values)
    powers = [math.exp(value - largest) for value in values]
    return [power / math.fsum(powers) for power in powers]


def loop_entropy(p, y, floor):
    return -math.fsum(a * (max(math.log(b), floor) if b > 0 else floor) for a, b in zip(p, y, strict=True))


def loop_soft_alignment(similarity, temperature, given, floor=FLOOR):
    s = similarity.double().tolist()
    size = len(s)
    losses = []
    for i in range(size):
        to_text = loop_softmax([s[i][j] / temperature for j in range(size)])
        to_image = loop_softmax([s[j][i] / temperature for j in range(size)])
        own = [1.0 if j == i else 0.0 for j in range(size)]
        text_target = [given * own[j] + (1 - given) * to_image[j] for j in range(size)]
        image_target = [given * own[j] + (1 - given) * to_text[j] for j in range(size)]
        losses.append(loop_entropy(to_text, text_target, floor) + loop_entropy(to_image, image_target, floor))
    return losses


@pytest.mark.parametrize("size", [1, 2, 7, 64])
@pytest.mark.parametrize("given", [0.0, 0.5, 1.0])
@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float64, 1e-12), (torch.float32, 1e-5)])
def test_soft_alignment_equals_a_plain_loop(size, given, dtype, tolerance):
    similarity = random_similarity(size, dtype=dtype)
    found = soft_alignment(similarity, temperature=0.1, given=given)
    expected = torch.tensor(loop_soft_alignment(similarity, 0.1, given), dtype=torch.float64)
    assert torch.allclose(found.double(), expected, atol=tolerance)


@pytest.mark.parametrize("given", [0.0, 0.5, 1.0])
def test_without_a_floor_every_target_counts_as_it_is(given):
    """As printed: at the floor of −4 nearly all targets of a batch count as 0.018."""
    similarity = random_similarity(32)
    found = soft_alignment(similarity, given=given, log_floor=-100.0)
    expected = torch.tensor(loop_soft_alignment(similarity, 0.05, given, -math.inf if given < 1 else -100.0))
    assert torch.allclose(found, expected.double(), atol=1e-9)
    assert bool((found > soft_alignment(similarity, given=given)).all())


def test_every_class_together_costs_the_same_whatever_is_believed():
    """Theorem 3: with one-hot targets the sum over all of them is −A (K − 1), for any p."""
    classes = 6
    for seed in range(3):
        p = torch.softmax(5 * random_similarity(classes, seed), dim=1)
        total = sum(
            reverse_cross_entropy(p, torch.eye(classes, dtype=p.dtype)[torch.full((classes,), k)])
            for k in range(classes)
        )
        assert torch.allclose(total, torch.full_like(total, -FLOOR * (classes - 1)), atol=1e-12)


def test_it_is_bounded_and_finite_at_the_extremes():
    for similarity in (torch.ones(512, 512), -torch.ones(512, 512), 2 * torch.eye(512) - 1, 1 - 2 * torch.eye(512)):
        loss = soft_alignment(similarity.requires_grad_(), temperature=0.05)
        (gradient,) = torch.autograd.grad(loss.sum(), similarity)
        assert bool(torch.isfinite(gradient).all())
        assert 0 <= float(loss.detach().min()) <= float(loss.detach().max()) <= -2 * FLOOR + 1e-4


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float64])
@pytest.mark.parametrize("size", [1, 2])
def test_small_batches_are_finite_at_the_extremes(size, dtype):
    ones, eye = torch.ones(size, size, dtype=dtype), torch.eye(size, dtype=dtype)
    for similarity in (ones, -ones, 2 * eye - ones, ones - 2 * eye):
        for given in (0.0, 0.5, 1.0):
            leaf = similarity.clone().requires_grad_()
            loss = soft_alignment(leaf, temperature=0.05, given=given)
            (gradient,) = torch.autograd.grad(loss.sum(), leaf)
            assert bool(torch.isfinite(gradient).all())
            assert 0 <= float(loss.detach().min()) <= float(loss.detach().max()) <= -2 * FLOOR + 1e-4
    one = soft_alignment(torch.tensor([[-1.0]], dtype=dtype), temperature=0.05)
    assert one.tolist() == [0.0]  # the only candidate is the right one


def test_gradients_flow_into_the_probabilities_alone():
    similarity = random_similarity(5).requires_grad_()
    targets = [soft_targets(0.5, torch.softmax(s / 0.3, dim=1)) for s in (similarity.T, similarity)]
    assert not any(target.requires_grad for target in targets)

    def with_fixed_targets(s):
        to_text, to_image = torch.softmax(s / 0.3, dim=1), torch.softmax(s.T / 0.3, dim=1)
        return reverse_cross_entropy(to_text, targets[0]) + reverse_cross_entropy(to_image, targets[1])

    torch.autograd.gradcheck(with_fixed_targets, (similarity,))
    found, expected = (
        torch.autograd.grad(loss.sum(), similarity)[0]
        for loss in (soft_alignment(similarity, temperature=0.3), with_fixed_targets(similarity))
    )
    assert torch.allclose(found, expected, atol=1e-14)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: reverse_cross_entropy(torch.ones(2, 2) / 2, torch.ones(2, 3) / 3), r"shape \(2, 2\)"),
        (lambda: reverse_cross_entropy(torch.ones(2, 2) / 2, torch.ones(2, 2) / 2, log_floor=0.0), "log_floor"),
        (lambda: reverse_cross_entropy(torch.tensor([[0.5, math.nan]]), torch.ones(1, 2) / 2), r"probability\[0, 1\]"),
        (lambda: reverse_cross_entropy(torch.ones(1, 2) / 2, torch.tensor([[-0.5, 1.5]])), r"target\[0, 0\]"),
        (lambda: soft_alignment(torch.eye(2), given=1.5), "weight of the given"),
        (lambda: soft_alignment(torch.full((2, 2), math.nan)), r"similarity\[0, 0\]"),
        (lambda: soft_alignment(torch.eye(2), temperature=0.0), "temperature"),
    ],
)
def test_bad_input_is_named(call, message):
    with pytest.raises(InputError, match=message):
        call()
