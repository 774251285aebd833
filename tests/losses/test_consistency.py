"""GSC's losses against plain float64 loops written from the equations."""

import math

import pytest
import torch

from truepair.errors import InputError
from truepair.losses import cross_modal_consistency, intra_modal_consistency

SIZES = [1, 2, 7, 32]


def uniform(size, seed, scale=1.0, dtype=torch.float64):
    generator = torch.Generator().manual_seed(seed)
    return (scale * (torch.rand(size, size, generator=generator, dtype=torch.float64) * 2 - 1)).to(dtype)


def some_labels(size, seed=1, dtype=torch.float64):
    labels = torch.rand(size, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    labels[labels < 0.2] = 0
    return labels.to(dtype)


def loop_log_softmax(values, index):
    largest = max(values)
    return values[index] - largest - math.log(sum(math.exp(value - largest) for value in values))


def loop_cross_modal(similarity, labels, temperature):
    s, y = similarity.double().tolist(), labels.double().tolist()
    size = len(s)
    losses = []
    for i in range(size):
        row = [s[i][j] / temperature for j in range(size)]
        column = [s[j][i] / temperature for j in range(size)]
        losses.append(-y[i] * (loop_log_softmax(row, i) + loop_log_softmax(column, i)) / 2)
    return losses


def loop_intra_modal(image_similarity, text_similarity, labels, temperature, believed=True):
    a, b, y = image_similarity.double().tolist(), text_similarity.double().tolist(), labels.double().tolist()
    size = len(a)
    losses = []
    for i in range(size):
        row = [
            math.fsum(y[k] * a[i][k] * y[k] * b[j][k] for k in range(size)) / temperature for j in range(size)
        ]  # image i against text j
        losses.append(-(y[i] if believed else 1) * loop_log_softmax(row, i))
    return losses


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("scale", [1.0, 50.0])
@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float64, 1e-12), (torch.float32, 2e-6)])
def test_losses_equal_plain_loops(size, scale, dtype, tolerance):
    similarity, images, texts = (uniform(size, seed, scale, dtype) for seed in (0, 1, 2))
    labels = some_labels(size, dtype=dtype)
    for found, oracle in (
        (
            cross_modal_consistency(similarity, labels, temperature=0.07),
            loop_cross_modal(similarity, labels, 0.07),
        ),
        (
            intra_modal_consistency(images, texts, labels, temperature=0.5),
            loop_intra_modal(images, texts, labels, 0.5),
        ),
        (
            intra_modal_consistency(images, texts, labels, temperature=0.5, believed=False),
            loop_intra_modal(images, texts, labels, 0.5, believed=False),
        ),
    ):
        expected = torch.tensor(oracle, dtype=torch.float64)
        assert found.dtype == dtype
        assert found.shape == (size,)
        largest = max(1.0, float(expected.abs().max()))
        torch.testing.assert_close(found.double(), expected, rtol=tolerance, atol=tolerance * largest)


def test_defaults_are_those_of_the_paper():
    similarity, labels = uniform(5, 0), some_labels(5)
    assert torch.equal(
        cross_modal_consistency(similarity, labels), cross_modal_consistency(similarity, labels, temperature=0.07)
    )
    assert torch.equal(
        intra_modal_consistency(similarity, similarity.T, labels),
        intra_modal_consistency(similarity, similarity.T, labels, temperature=1.0),
    )


@pytest.mark.parametrize("kind", ["ones", "minus ones", "perfect", "wrong"])
@pytest.mark.parametrize("label", [0.0, 1.0])
def test_losses_equal_plain_loops_at_the_extremes(kind, label):
    eye = torch.eye(6, dtype=torch.float64)
    matrix = {
        "ones": torch.ones_like(eye),
        "minus ones": -torch.ones_like(eye),
        "perfect": 2 * eye - 1,
        "wrong": 1 - 2 * eye,
    }[kind]
    labels = torch.full((6,), label, dtype=torch.float64)
    across = torch.tensor(loop_cross_modal(matrix, labels, 0.07), dtype=torch.float64)
    within = torch.tensor(loop_intra_modal(matrix, -matrix, labels, 1.0), dtype=torch.float64)
    torch.testing.assert_close(cross_modal_consistency(matrix, labels), across, rtol=1e-12, atol=1e-12)
    torch.testing.assert_close(intra_modal_consistency(matrix, -matrix, labels), within, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float64])
@pytest.mark.parametrize("scale", [1.0, 50.0])
def test_losses_and_gradients_are_finite_at_512(dtype, scale):
    similarity, images, texts = (uniform(512, seed, scale, dtype).requires_grad_() for seed in (0, 1, 2))
    for labels in (torch.zeros(512), torch.ones(512)):
        values = cross_modal_consistency(similarity, labels) + intra_modal_consistency(images, texts, labels)
        assert torch.isfinite(values).all()
        gradients = torch.autograd.grad(values.float().sum(), (similarity, images, texts))
        assert all(torch.isfinite(gradient).all() for gradient in gradients)
        if not labels.any():
            assert not values.any()
            assert not any(gradient.any() for gradient in gradients)


@pytest.mark.parametrize("size", [1, 2, 5])
def test_gradient(size):
    similarity, images, texts = (uniform(size, seed).requires_grad_() for seed in (0, 1, 2))
    labels = some_labels(size)
    assert torch.autograd.gradcheck(lambda s: cross_modal_consistency(s, labels), (similarity,), eps=1e-7, atol=1e-5)
    assert torch.autograd.gradcheck(
        lambda a, b: intra_modal_consistency(a, b, labels, temperature=0.5), (images, texts), eps=1e-7, atol=1e-5
    )


def test_no_gradient_flows_into_labels():
    labels = torch.full((3,), 0.5, dtype=torch.float64, requires_grad=True)
    similarity = uniform(3, 0).requires_grad_()
    (
        cross_modal_consistency(similarity, labels) + intra_modal_consistency(similarity, similarity, labels)
    ).sum().backward()
    assert labels.grad is None
    assert similarity.grad is not None


def test_pairs_that_are_not_believed_leave_the_comparison():
    """A pair with label 0 changes nothing for the others as a neighbour k, whatever its similarities are."""
    images, texts, labels = uniform(6, 0), uniform(6, 1), some_labels(6)
    labels[4] = 0
    before = intra_modal_consistency(images, texts, labels)
    images[:, 4], texts[:, 4] = 9.0, -9.0
    assert torch.equal(intra_modal_consistency(images, texts, labels), before)
    labels[4] = 0.5
    assert not torch.allclose(intra_modal_consistency(images, texts, labels), before)


def test_intra_modal_loss_is_not_rounded_under_autocast():
    images, texts = uniform(64, 0, dtype=torch.float32), uniform(64, 1, dtype=torch.float32)
    plain = intra_modal_consistency(images, texts, torch.ones(64))
    with torch.autocast("cpu", torch.bfloat16):
        torch.testing.assert_close(intra_modal_consistency(images, texts, torch.ones(64)), plain)


@pytest.mark.parametrize("bad", [torch.nan, torch.inf])
def test_values_that_are_not_finite_are_refused_and_named(bad):
    good, labels = uniform(4, 0), torch.ones(4)
    spoilt = good.clone()
    spoilt[2, 1] = bad
    with pytest.raises(InputError, match=r"^similarity\[2, 1\]"):
        cross_modal_consistency(spoilt, labels)
    with pytest.raises(InputError, match=r"^image_similarity\[2, 1\]"):
        intra_modal_consistency(spoilt, good, labels)
    with pytest.raises(InputError, match=r"^text_similarity\[2, 1\]"):
        intra_modal_consistency(good, spoilt, labels)


def test_wrong_sizes_labels_and_temperatures_are_refused():
    good = uniform(4, 0)
    with pytest.raises(InputError, match="same pairs"):
        intra_modal_consistency(good, uniform(3, 0), torch.ones(4))
    with pytest.raises(InputError, match="image_similarity has shape"):
        intra_modal_consistency(torch.zeros(2, 3), good, torch.ones(4))
    for loss in (
        lambda y, t: cross_modal_consistency(good, y, temperature=t),
        lambda y, t: intra_modal_consistency(good, good, y, temperature=t),
    ):
        with pytest.raises(InputError, match="one per pair"):
            loss(torch.ones(3), 1.0)
        with pytest.raises(InputError, match=r"labels\[3\]"):
            loss(torch.tensor([0.0, 1.0, 0.5, 1.5]), 1.0)
        with pytest.raises(InputError, match="temperature"):
            loss(torch.ones(4), 0.0)
