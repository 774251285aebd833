"""Every loss against a plain float64 loop written from the equations, on random, extreme and degenerate input."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from truepair.correspondence import matching_probability
from truepair.errors import InputError
from truepair.losses import (
    active_complementary,
    complementary_contrastive,
    hinge_ranking,
    info_nce,
    robust_complementary,
)

SIZES = [1, 2, 7, 32]


def random_similarity(size, seed=0, dtype=torch.float64):
    generator = torch.Generator().manual_seed(seed)
    return (torch.rand(size, size, generator=generator, dtype=torch.float64) * 2 - 1).to(dtype)


def extreme(kind, size, dtype=torch.float64):
    return {
        "all one": torch.ones(size, size, dtype=dtype),
        "all minus one": -torch.ones(size, size, dtype=dtype),
        "perfect": 2 * torch.eye(size, dtype=dtype) - 1,
        "perfectly wrong": 1 - 2 * torch.eye(size, dtype=dtype),
    }[kind]


def loop_probability(row, temperature):
    """Softmax of one list of similarities."""
    largest = max(row)
    powers = [math.exp((value - largest) / temperature) for value in row]
    return [power / sum(powers) for power in powers]


def loop_log_probability(row, temperature, index):
    largest = max(row)
    total = sum(math.exp((value - largest) / temperature) for value in row)
    return (row[index] - largest) / temperature - math.log(total)


def rows_and_columns(similarity):
    rows = similarity.double().tolist()
    return rows, [list(column) for column in zip(*rows, strict=True)]


def loop_info_nce(similarity, temperature):
    rows, columns = rows_and_columns(similarity)
    return [
        -(loop_log_probability(rows[i], temperature, i) + loop_log_probability(columns[i], temperature, i)) / 2
        for i in range(len(rows))
    ]


def loop_hinge(similarity, margin, negatives):
    rows, columns = rows_and_columns(similarity)
    margins = margin.tolist() if isinstance(margin, torch.Tensor) else [margin] * len(rows)
    losses = []
    for i in range(len(rows)):
        total = 0.0
        for line in (rows[i], columns[i]):
            hinges = sorted(
                (max(0.0, margins[i] - rows[i][i] + line[j]) for j in range(len(rows)) if j != i), reverse=True
            )
            if not hinges:
                continue
            if negatives is None:
                total += sum(hinges)
            else:
                hardest = hinges[:negatives]
                total += sum(hardest) / len(hardest)
        losses.append(total)
    return losses


def loop_active_complementary(similarity, labels, temperature, scale, active_weight=1.0, exponent=None):
    rows, columns = rows_and_columns(similarity)
    losses = []
    for i, label in enumerate(labels.tolist()):
        active = complementary = 0.0
        for line in (rows[i], columns[i]):
            p = loop_probability(line, temperature)
            active -= label * loop_log_probability(line, temperature, i)
            total = sum(math.tan(value) for value in p)
            complementary += sum(math.tan(p[j]) for j in range(len(p)) if j != i) / total ** (
                1 - label if exponent is None else exponent
            )
        losses.append(active_weight * active + scale * complementary)
    return losses


def loop_complementary_contrastive(similarity, form):
    """Σ φ(p) over the negatives of both directions; 1 − p is summed, as a difference would lose its digits."""
    phi = {
        "log": lambda p, rest: -math.log(rest),
        "tan": lambda p, rest: math.tan(p),
        "exp": lambda p, rest: math.exp(-rest),
        "gce": lambda p, rest: (1 - rest**0.5) / 0.5,
        "mae": lambda p, rest: p,
    }[form]
    rows, columns = rows_and_columns(similarity)
    losses = []
    for i in range(len(rows)):
        loss = 0.0
        for line in (rows[i], columns[i]):
            p = loop_probability(line, 0.05)
            loss += sum(phi(p[j], sum(p[:j]) + sum(p[j + 1 :])) for j in range(len(p)) if j != i)
        losses.append(loss)
    return losses


def random_labels(size, seed=1, dtype=torch.float64):
    labels = torch.rand(size, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    labels[labels < 0.1] = 0  # as thresholded labels are
    return labels.to(dtype)


LOSSES = {
    "info_nce": (
        lambda s, _: info_nce(s, temperature=0.05),
        lambda s, _: loop_info_nce(s, 0.05),
    ),
    "hinge, hardest": (
        lambda s, _: hinge_ranking(s, margin=0.2),
        lambda s, _: loop_hinge(s, 0.2, 1),
    ),
    "hinge, three hardest": (
        lambda s, _: hinge_ranking(s, margin=0.2, negatives=3),
        lambda s, _: loop_hinge(s, 0.2, 3),
    ),
    "hinge, sum": (
        lambda s, _: hinge_ranking(s, margin=0.2, negatives=None),
        lambda s, _: loop_hinge(s, 0.2, None),
    ),
    "hinge, soft margins": (
        lambda s, y: hinge_ranking(s, margin=0.2 * y),
        lambda s, y: loop_hinge(s, 0.2 * y.double(), 1),
    ),
    "active complementary": (
        lambda s, y: active_complementary(s, y),
        lambda s, y: loop_active_complementary(s, y, 0.05, 5.0),
    ),
    "complementary alone": (
        lambda s, y: active_complementary(s, y, active_weight=0.0),
        lambda s, y: loop_active_complementary(s, y, 0.05, 5.0, active_weight=0.0),
    ),
    "complementary, q = 0": (
        lambda s, y: active_complementary(s, y, active_weight=0.0, exponent=0.0),
        lambda s, y: loop_active_complementary(s, y, 0.05, 5.0, active_weight=0.0, exponent=0.0),
    ),
    "complementary, q = 1": (
        lambda s, y: active_complementary(s, y, active_weight=0.0, exponent=1.0),
        lambda s, y: loop_active_complementary(s, y, 0.05, 5.0, active_weight=0.0, exponent=1.0),
    ),
    **{
        f"complementary contrastive, {form}": (
            lambda s, _, form=form: complementary_contrastive(s, form=form),
            lambda s, _, form=form: loop_complementary_contrastive(s, form),
        )
        for form in ("log", "tan", "exp", "gce", "mae")
    },
    "matching probability": (
        lambda s, _: matching_probability(s, temperature=0.05),
        lambda s, _: [
            (loop_probability(row, 0.05)[i] + loop_probability(column, 0.05)[i]) / 2
            for i, (row, column) in enumerate(zip(*rows_and_columns(s), strict=True))
        ],
    ),
}


@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float64, 1e-12), (torch.float32, 1e-6)])
def test_loss_equals_plain_loop(name, size, dtype, tolerance):
    loss, oracle = LOSSES[name]
    similarity, labels = random_similarity(size, dtype=dtype), random_labels(size, dtype=dtype)
    expected = torch.tensor(oracle(similarity, labels), dtype=torch.float64)
    found = loss(similarity, labels)
    assert found.dtype == dtype
    assert found.shape == (size,)
    # Relative to the size of the values: a float32 hinge over 31 summed negatives is of the order of 30.
    torch.testing.assert_close(
        found.double(), expected, rtol=tolerance, atol=tolerance * max(1.0, float(expected.max()))
    )


@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize("kind", ["all one", "all minus one", "perfect", "perfectly wrong"])
@pytest.mark.parametrize("label", [0.0, 1.0])
def test_loss_equals_plain_loop_at_the_extremes(name, kind, label):
    loss, oracle = LOSSES[name]
    similarity, labels = extreme(kind, 6), torch.full((6,), label, dtype=torch.float64)
    expected = torch.tensor(oracle(similarity, labels), dtype=torch.float64)
    torch.testing.assert_close(loss(similarity, labels), expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float64])
@pytest.mark.parametrize("kind", ["all one", "all minus one", "perfect", "perfectly wrong", "random"])
def test_loss_and_gradient_are_finite_at_512(name, dtype, kind):
    similarity = random_similarity(512, dtype=dtype) if kind == "random" else extreme(kind, 512, dtype)
    similarity.requires_grad_()
    for labels in (torch.zeros(512, dtype=dtype), torch.ones(512, dtype=dtype)):
        values = LOSSES[name][0](similarity, labels)
        assert torch.isfinite(values).all()
        (gradient,) = torch.autograd.grad(values.sum(), similarity)
        assert torch.isfinite(gradient).all()


@pytest.mark.parametrize("name", [name for name in LOSSES if name != "matching probability"])
@pytest.mark.parametrize("size", [1, 2, 5])
def test_gradient(name, size):
    similarity = random_similarity(size, seed=3).requires_grad_()
    labels = random_labels(size)
    # The temperature makes the function steep: the finite differences need small steps to agree.
    assert torch.autograd.gradcheck(lambda s: LOSSES[name][0](s, labels), (similarity,), eps=1e-7, atol=1e-5)


@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize("bad", [torch.nan, torch.inf, -torch.inf])
def test_similarity_that_is_not_finite_is_refused_and_named(name, bad):
    similarity = random_similarity(4)
    similarity[2, 1] = bad
    with pytest.raises(InputError, match=r"similarity\[2, 1\]"):
        LOSSES[name][0](similarity, torch.ones(4))


@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize("shape", [(0, 0), (2, 3), (4,), (2, 2, 2)])
def test_wrong_shape_is_refused(name, shape):
    with pytest.raises(InputError, match="expected"):
        LOSSES[name][0](torch.zeros(shape), torch.ones(shape[0]))


def test_integer_similarity_is_refused():
    with pytest.raises(InputError, match="floating"):
        info_nce(torch.ones(2, 2, dtype=torch.int64), temperature=1.0)


@pytest.mark.parametrize("temperature", [0.0, -1.0, math.nan])
def test_temperature_must_be_positive(temperature):
    with pytest.raises(InputError, match="temperature"):
        info_nce(random_similarity(3), temperature=temperature)


@pytest.mark.parametrize(
    "labels", [torch.tensor([0.5, 1.1]), torch.tensor([0.5, -0.1]), torch.tensor([0.5, torch.nan])]
)
def test_labels_outside_their_range_are_refused(labels):
    with pytest.raises(InputError, match=r"labels\[1\]"):
        active_complementary(random_similarity(2), labels)


def test_labels_of_another_number_are_refused():
    with pytest.raises(InputError, match="one per pair"):
        active_complementary(random_similarity(3), torch.ones(2))


def test_no_gradient_flows_into_labels():
    labels = torch.full((3,), 0.5, dtype=torch.float64, requires_grad=True)
    similarity = random_similarity(3).requires_grad_()
    active_complementary(similarity, labels).sum().backward()
    assert labels.grad is None
    assert similarity.grad is not None


# --- Properties that methods.md names -----------------------------------------------------------------------------


def random_probability(size, seed, sharpness=1.0):
    generator = torch.Generator().manual_seed(seed)
    return torch.softmax(sharpness * torch.randn(size, size, generator=generator, dtype=torch.float64), dim=1)


@settings(max_examples=30, deadline=None)
@given(size=st.integers(2, 40), seed=st.integers(0, 10**6), sharpness=st.floats(0.01, 30))
def test_normalised_complementary_loss_is_noise_tolerant(size, seed, sharpness):
    """CRCL, Lemma 1: at q = 1 the loss summed over every possible target is a constant, N − 1."""
    probability = random_probability(size, seed, sharpness)
    query = probability[0]
    total = 0.0
    for target in range(size):
        # The target stands on the diagonal: swap it with entry 0 in a matrix whose first row is the query.
        order = list(range(size))
        order[0], order[target] = target, 0
        matrix = probability.clone()
        matrix[0] = query[order]
        total += float(robust_complementary(matrix, torch.ones(size, dtype=torch.float64))[0])
    assert total == pytest.approx(size - 1, rel=1e-12)


def test_plain_complementary_loss_is_not_noise_tolerant():
    """The constant above must come from the exponent, not from the sum: at q = 0 it depends on p."""
    flat, sharp = torch.full((4, 4), 0.25, dtype=torch.float64), random_probability(4, 0, 20.0)
    zero = torch.zeros(4, dtype=torch.float64)
    flat_total, sharp_total = (
        sum(float(torch.tan(p[0]).sum() - torch.tan(p[0, k])) for k in range(4)) for p in (flat, sharp)
    )
    assert float(robust_complementary(flat, zero)[0]) == pytest.approx(flat_total / 4)
    assert abs(flat_total - sharp_total) > 0.1


@settings(max_examples=50, deadline=None)
@given(size=st.integers(1, 200), seed=st.integers(0, 10**6), sharpness=st.floats(0.0, 50))
def test_sum_of_tangents_is_bounded(size, seed, sharpness):
    """N tan(1/N) ≤ Σ tan(p_k) ≤ tan 1: the denominator of the loss never vanishes."""
    total = torch.tan(random_probability(size, seed, sharpness)).sum(dim=1)
    assert (total >= size * math.tan(1 / size) - 1e-12).all()
    assert (total <= math.tan(1.0) + 1e-12).all()


def test_hinge_counts_no_more_negatives_than_there_are():
    similarity = random_similarity(4)
    assert torch.equal(
        hinge_ranking(similarity, margin=0.2, negatives=3), hinge_ranking(similarity, margin=0.2, negatives=99)
    )
    with pytest.raises(InputError, match="negatives"):
        hinge_ranking(similarity, margin=0.2, negatives=0)


def test_a_single_pair_costs_nothing_in_ranking_and_nce():
    similarity = torch.tensor([[0.3]], dtype=torch.float64, requires_grad=True)
    for loss in (hinge_ranking(similarity, margin=0.2), info_nce(similarity, temperature=0.05)):
        assert loss.tolist() == [0.0]
        (gradient,) = torch.autograd.grad(loss.sum(), similarity)
        assert gradient.tolist() == [[0.0]]
