"""Losses of methods that learn from class labels, against plain loops in float64."""

import math

import pytest
import torch

from truepair.errors import InputError
from truepair.losses.clustering import early_learning, multimodal_contrast, robust_clustering, soft_cross_entropy


def draw(*shape, seed=0, scale=1.0):
    return scale * torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


def unit(*shape, seed=0):
    return torch.nn.functional.normalize(draw(*shape, seed=seed), dim=1)


def probabilities(row):
    weights = [math.exp(value) for value in row]
    return [weight / sum(weights) for weight in weights]


@pytest.mark.parametrize(("batch", "classes"), [(1, 2), (2, 3), (37, 11)])
def test_soft_cross_entropy_equals_the_loop(batch, classes):
    logits, target = draw(batch, classes), draw(batch, classes, seed=1).abs()
    found = soft_cross_entropy(logits, target)
    for i in range(batch):
        p = probabilities(logits[i].tolist())
        expected = -sum(float(target[i, k]) * math.log(p[k]) for k in range(classes))
        assert float(found[i]) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize(("batch", "classes"), [(1, 2), (2, 3), (37, 11)])
def test_robust_clustering_equals_the_loop(batch, classes):
    logits = draw(batch, classes)
    labels = torch.arange(batch) % classes
    found = robust_clustering(logits, labels)
    for i in range(batch):
        p = probabilities(logits[i].tolist())
        assert float(found[i]) == pytest.approx(math.log(1 - p[int(labels[i])]), rel=1e-10)


def test_robust_clustering_stays_finite_where_one_minus_p_is_zero_in_floats():
    found = robust_clustering(torch.tensor([[200.0, 0.0, 0.0]]), torch.tensor([0]))
    assert float(found[0]) == pytest.approx(math.log(2) - 200, rel=1e-6)


def test_robust_clustering_pulls_the_better_fit_harder_and_cross_entropy_the_worse():
    logits = torch.tensor([[0.9, 0.0, 0.0], [-0.9, 0.0, 0.0]], dtype=torch.float64, requires_grad=True)
    robust_clustering(logits, torch.tensor([0, 0])).sum().backward()
    robust = logits.grad[:, 0].abs().clone()
    logits.grad = None
    soft_cross_entropy(logits, torch.eye(3, dtype=torch.float64)[[0, 0]]).sum().backward()
    plain = logits.grad[:, 0].abs()
    assert robust[0] > robust[1]
    assert plain[0] < plain[1]


@pytest.mark.parametrize(("batch", "temperature"), [(1, 1.0), (2, 0.5), (19, 1.0)])
def test_multimodal_contrast_equals_the_loop(batch, temperature):
    images, texts = unit(batch, 5), unit(batch, 5, seed=1)
    found = multimodal_contrast(images, texts, temperature=temperature)
    items = [*images.tolist(), *texts.tolist()]
    for i in range(batch):
        expected = 0.0
        for own, partner in ((i, batch + i), (batch + i, i)):
            scores = [
                math.exp(sum(a * b for a, b in zip(items[own], item, strict=True)) / temperature) for item in items
            ]
            expected -= math.log(scores[partner] / (sum(scores) - scores[own]))
        assert float(found[i]) == pytest.approx(expected, rel=1e-10, abs=1e-12)


@pytest.mark.parametrize("classes", [2, 7])
def test_early_learning_equals_the_loop(classes):
    probability = draw(9, classes).softmax(dim=1)
    target = 0.7 * draw(9, classes, seed=1).softmax(dim=1)
    found = early_learning(probability, target)
    for i in range(9):
        inner = sum(float(probability[i, k] * target[i, k]) for k in range(classes))
        assert float(found[i]) == pytest.approx(math.log(1 - inner), rel=1e-12)


def test_early_learning_of_two_equal_one_hot_rows_is_finite():
    one_hot = torch.eye(3)[:1]
    assert bool(torch.isfinite(early_learning(one_hot, one_hot)).all())


def test_gradients():
    logits, target = draw(4, 3).requires_grad_(), draw(4, 3, seed=1).softmax(dim=1)
    labels = torch.tensor([0, 2, 1, 2])
    sides = unit(4, 3).requires_grad_(), unit(4, 3, seed=1).requires_grad_()
    assert torch.autograd.gradcheck(lambda x: soft_cross_entropy(x, target), logits)
    assert torch.autograd.gradcheck(lambda x: robust_clustering(x, labels), logits)
    assert torch.autograd.gradcheck(lambda x: early_learning(x.softmax(dim=1), target), logits)
    assert torch.autograd.gradcheck(lambda a, b: multimodal_contrast(a, b, temperature=0.5), sides)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float64])
@pytest.mark.parametrize("batch", [1, 2, 512])
def test_cross_entropy_of_soft_labels_is_finite_at_the_extremes(batch, dtype):
    """Cosines of ±1 over a small temperature; labels of one class, of all, and of none."""
    for sign in (1, -1):
        logits = torch.full((batch, 4), -100.0 * sign, dtype=dtype)
        logits[:, 0] = 100.0 * sign
        for target in (torch.eye(4)[torch.zeros(batch, dtype=torch.int64)], torch.full((batch, 4), 0.25)):
            leaf = logits.clone().requires_grad_()
            loss = soft_cross_entropy(leaf, target.to(dtype))
            (gradient,) = torch.autograd.grad(loss.sum(), leaf)
            assert bool(torch.isfinite(loss).all()) and bool(torch.isfinite(gradient).all())
        nothing = soft_cross_entropy(logits.requires_grad_(), torch.zeros(batch, 4, dtype=dtype))
        (gradient,) = torch.autograd.grad(nothing.sum(), logits)
        assert not nothing.any() and not gradient.any()


def test_batches_of_512_are_finite():
    images, texts = unit(512, 8), unit(512, 8, seed=1)
    for temperature in (1.0, 0.01):
        assert bool(torch.isfinite(multimodal_contrast(images, images, temperature=temperature)).all())
        assert bool(torch.isfinite(multimodal_contrast(images, texts, temperature=temperature)).all())


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: soft_cross_entropy(torch.full((2, 3), torch.nan), torch.zeros(2, 3)), "finite"),
        (lambda: soft_cross_entropy(torch.zeros(2, 3), torch.zeros(2, 2)), "shape"),
        (lambda: soft_cross_entropy(torch.zeros(1, 2), torch.tensor([[0.5, torch.nan]])), r"target\[0, 1\] is nan"),
        (lambda: soft_cross_entropy(torch.zeros(1, 2), torch.tensor([[-0.5, 1.5]])), r"target\[0, 0\] is -0.5"),
        (lambda: robust_clustering(torch.zeros(2, 1), torch.zeros(2, dtype=torch.int64)), "at least 2"),
        (lambda: robust_clustering(torch.zeros(2, 3), torch.tensor([0, 3])), "0 … 2"),
        (lambda: robust_clustering(torch.full((1, 3), torch.inf), torch.tensor([0])), "finite"),
        (lambda: multimodal_contrast(torch.zeros(2, 3), torch.zeros(3, 3)), "equal shapes"),
        (lambda: multimodal_contrast(torch.zeros(2, 3), torch.zeros(2, 3), temperature=0), "above 0"),
        (lambda: early_learning(torch.zeros(2, 3), torch.zeros(2, 2)), "shape"),
    ],
)
def test_bad_input_is_refused(call, message):
    with pytest.raises(InputError, match=message):
        call()
