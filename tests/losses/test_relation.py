"""UOT-RCL's relation alignment: relations, their cost and the loss, each against loops."""

import math

import pytest
import torch

from truepair.correspondence.confident import jensen_shannon
from truepair.errors import InputError
from truepair.losses.relation import relation_alignment, relation_cost, relations
from truepair.transport import sinkhorn


def draw(*shape, seed=0, scale=1.0):
    return scale * torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


# ---- relations ----


@pytest.mark.parametrize("temperature", [1.0, 0.05])
def test_relations_are_a_softmax_of_the_negative_cosines(temperature):
    vectors, confident = draw(4, 3, seed=1), draw(5, 3, seed=2)
    found = relations(vectors, confident, temperature=temperature)
    for i in range(4):
        weights = []
        for g in range(5):
            a, b = vectors[i].tolist(), confident[g].tolist()
            cosine = sum(x * y for x, y in zip(a, b, strict=True)) / (math.hypot(*a) * math.hypot(*b))
            weights.append(math.exp(-cosine / temperature))
        assert found[i].tolist() == pytest.approx([weight / sum(weights) for weight in weights], abs=1e-12)


def test_the_most_alike_has_the_smallest_share():
    confident = torch.eye(3)
    assert relations(torch.tensor([[0.0, 2.0, 0.0]]), confident).argmin() == 1


# ---- cost ----


def plain_divergence(p, q):
    total = 0.0
    for a, b in zip(p.tolist(), q.tolist(), strict=True):
        middle = (a + b) / 2
        total += (a * math.log(a / middle) if a else 0) / 2 + (b * math.log(b / middle) if b else 0) / 2
    return total


@pytest.mark.parametrize(("batch", "group"), [(7, 4), (5, 1), (1, 3), (6, 50)])
@pytest.mark.parametrize("scale", [1e-3, 1.0, 40.0])
def test_cost_is_the_divergence_of_every_image_from_every_text(batch, group, scale):
    images, texts = (torch.softmax(draw(batch, group, seed=seed, scale=scale), dim=1) for seed in (3, 4))
    images[0] = torch.eye(group, dtype=torch.float64)[0]
    found = relation_cost(images, texts)
    expected = [[plain_divergence(p, q) for q in texts] for p in images]
    assert torch.allclose(found, torch.tensor(expected, dtype=torch.float64), atol=1e-13, rtol=0)
    assert torch.allclose(found.diagonal(), jensen_shannon(images, texts), atol=1e-13, rtol=0)
    for memory_bytes in (1, 3 * 8 * batch * group * 2):
        assert torch.allclose(relation_cost(images, texts, memory_bytes=memory_bytes), found, atol=1e-15)


def test_cost_at_its_ends():
    same = torch.softmax(draw(3, 6, seed=5), dim=1).float()
    cost = relation_cost(same, same.roll(1, dims=0))
    assert cost.dtype == torch.float32 and float(cost.min()) == 0 and float(cost[1, 2]) < 1e-14
    alike = torch.softmax(draw(40, 100, seed=18), dim=1)
    assert float(relation_cost(alike, alike * (1 + 1e-9 * draw(40, 100, seed=19))).min()) == 0  # no rounding below
    far = relation_cost(torch.tensor([[1.0, 0.0]]), torch.tensor([[0.0, 1.0]]))
    assert float(far) == pytest.approx(math.log(2), abs=1e-7)


def test_small_divergences_keep_their_order_in_float32():
    """Relations at temperature 1 are nearly uniform: their divergences are small, and their differences smaller."""
    images, texts = (torch.softmax(draw(6, 500, seed=seed, scale=0.05), dim=1).float() for seed in (6, 7))
    exact = relation_cost(images.double(), texts.double())
    assert torch.allclose(relation_cost(images, texts).double(), exact, rtol=1e-6, atol=0)


def test_the_cost_has_no_gradient():
    images = torch.softmax(draw(3, 4), dim=1).requires_grad_()
    assert not relation_cost(images, images).requires_grad


# ---- loss ----


def plain_alignment(similarity, plan, temperature):
    count = len(plan)
    losses = []
    for i in range(count):
        loss = 0.0
        for mass, logits in (
            ([float(plan[i, j]) for j in range(count)], [float(similarity[i, j]) for j in range(count)]),
            ([float(plan[j, i]) for j in range(count)], [float(similarity[j, i]) for j in range(count)]),
        ):
            top = max(logits) / temperature
            normaliser = top + math.log(sum(math.exp(value / temperature - top) for value in logits))
            for share, value in zip(mass, logits, strict=True):
                loss -= share / (sum(mass) or 1.0) * (value / temperature - normaliser)
        losses.append(loss)
    return losses


@pytest.mark.parametrize("temperature", [1.0, 0.05])
@pytest.mark.parametrize("count", [1, 2, 8])
def test_alignment_is_that_of_loops(temperature, count):
    similarity, plan = draw(count, count, seed=8), draw(count, count, seed=9).abs()
    found = relation_alignment(similarity, plan, temperature=temperature)
    assert found.tolist() == pytest.approx(plain_alignment(similarity, plan, temperature), rel=1e-12)
    scaled = relation_alignment(similarity, 7 * plan, temperature=temperature)
    assert torch.allclose(scaled, found)  # only the ratios within a row and a column count


def test_a_plan_on_the_diagonal_is_the_contrastive_loss():
    similarity = draw(5, 5, seed=10)
    expected = -(torch.log_softmax(similarity, 1) + torch.log_softmax(similarity, 0)).diagonal()
    assert torch.allclose(relation_alignment(similarity, torch.eye(5) / 5), expected)


def test_rows_without_mass_add_nothing_and_huge_similarities_are_no_trouble():
    plan = torch.zeros(3, 3)
    plan[0, 1] = 0.5
    similarity = torch.tensor([[1e4, -1e4, 0.0], [0.0, 1.0, 2.0], [0.0, 0.0, 0.0]], requires_grad=True)
    loss = relation_alignment(similarity, plan)
    assert loss.tolist() == pytest.approx(plain_alignment(similarity.detach(), plan, 1.0), rel=1e-6)
    assert float(loss[2].detach()) == 0
    (gradient,) = torch.autograd.grad(loss.sum(), similarity)
    assert bool(torch.isfinite(gradient).all())


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float64])
@pytest.mark.parametrize("count", [1, 2, 512])
def test_everything_is_finite_at_the_extremes(count, dtype):
    """Similarities of ±1, plans of one match, of all, and of none."""
    ones, eye = torch.ones(count, count, dtype=dtype), torch.eye(count, dtype=dtype)
    for similarity in (ones, -ones, 2 * eye - ones, ones - 2 * eye):
        for plan in (eye / count, ones / count**2, torch.zeros_like(ones)):
            leaf = similarity.clone().requires_grad_()
            loss = relation_alignment(leaf, plan, temperature=0.05)
            assert bool(torch.isfinite(loss).all()) and float(loss.detach().min()) >= -1e-2
            (gradient,) = torch.autograd.grad(loss.sum(), leaf)
            assert bool(torch.isfinite(gradient).all())
    nothing = relation_alignment(ones.requires_grad_(), torch.zeros_like(eye))
    assert nothing.tolist() == [0.0] * count
    vectors, confident = torch.ones(count, 3), torch.cat([torch.ones(1, 3), -torch.ones(1, 3)])
    relation = relations(vectors, confident, temperature=0.05)
    assert relation[:, 1].tolist() == pytest.approx([1.0] * count)
    assert relation_cost(relation, relation).abs().max() == 0


def test_gradients():
    plan = draw(4, 4, seed=11).abs()
    similarity = draw(4, 4, seed=12).requires_grad_()
    assert torch.autograd.gradcheck(lambda s: relation_alignment(s, plan, temperature=0.5), similarity)
    vectors, confident = draw(3, 4, seed=13).requires_grad_(), draw(5, 4, seed=14).requires_grad_()
    assert torch.autograd.gradcheck(lambda v, c: relations(v, c, temperature=0.5), (vectors, confident))
    plan.requires_grad_()
    relation_alignment(similarity, plan).sum().backward()
    assert plan.grad is None


def test_a_batch_from_vectors_to_loss():
    """What is right: pairs that stand alike to the confident pairs get the larger share of the plan."""
    confident = draw(20, 8, seed=15)
    vectors = draw(10, 8, seed=16)
    images = relations(vectors, confident, temperature=0.1)
    texts = relations(vectors + 0.05 * draw(10, 8, seed=17), confident, temperature=0.1)
    cost, mass = relation_cost(images, texts), torch.full((10,), 0.1, dtype=torch.float64)
    plan = sinkhorn(cost, mass, mass, epsilon=0.05 * float(cost.max() - cost.min()))
    assert bool((plan.argmax(dim=1) == torch.arange(10)).all())
    assert relation_alignment(torch.eye(10), plan).shape == (10,)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: relations(torch.ones(2, 3), torch.ones(4, 2)), r"\(2, 3\), those of the confident set \(4, 2\)"),
        (lambda: relations(torch.ones(2, 3), torch.ones(0, 3)), "at least one row each"),
        (lambda: relations(torch.ones(2, 3), torch.ones(1, 3), temperature=0.0), "temperature is 0.0"),
        (lambda: relations(torch.tensor([[0.0, math.nan]]), torch.ones(1, 2)), r"vectors\[0, 1\] is nan"),
        (lambda: relations(torch.ones(1, 1), torch.full((2, 1), math.inf)), r"confident_vectors\[0, 0\] is inf"),
        (lambda: relation_cost(torch.ones(2, 3), torch.ones(3, 3)), r"expected \(B, G\) twice"),
        (lambda: relation_cost(torch.ones(1, 1), torch.full((1, 1), math.nan)), r"text\[0, 0\] is nan"),
        (lambda: relation_alignment(torch.ones(2, 2), torch.ones(2, 3)), r"plan has shape \(2, 3\)"),
        (lambda: relation_alignment(torch.ones(2, 2), -torch.ones(2, 2)), r"plan\[0, 0\] is -1.0"),
        (lambda: relation_alignment(torch.ones(2, 2), torch.ones(2, 2), temperature=-1.0), "temperature is -1.0"),
        (lambda: relation_alignment(torch.full((1, 1), math.nan), torch.ones(1, 1)), r"similarity\[0, 0\] is nan"),
    ],
)
def test_bad_input_is_named(call, message):
    with pytest.raises(InputError, match=message):
        call()
