"""UGNCL's trusted margins and ranking against plain float64 loops."""

import math
from itertools import pairwise

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from truepair.errors import InputError
from truepair.losses import (
    hardness,
    hinge_ranking,
    printed_hardness,
    soft_margin,
    trusted_margin,
    trusted_ranking,
)

SIZES = [1, 2, 7, 32]


def uniform(size, seed=0, scale=1.0, dtype=torch.float64):
    generator = torch.Generator().manual_seed(seed)
    return (scale * (torch.rand(size, size, generator=generator, dtype=torch.float64) * 2 - 1)).to(dtype)


def fractions(size, seed=1, dtype=torch.float64):
    return torch.rand(size, generator=torch.Generator().manual_seed(seed), dtype=torch.float64).to(dtype)


def some_negatives(size, seed=2):
    return torch.randint(0, size + 3, (size,), generator=torch.Generator().manual_seed(seed))


def loop_ranking(similarity, margin, negatives):
    s, margins, counts = similarity.double().tolist(), margin.double().tolist(), negatives.tolist()
    size, losses = len(s), []
    for i in range(size):
        total = 0.0
        for line in ([s[i][j] for j in range(size) if j != i], [s[j][i] for j in range(size) if j != i]):
            hardest = sorted(line, reverse=True)[: counts[i]]
            if hardest:
                total += sum(max(0.0, margins[i] - s[i][i] + other) for other in hardest) / len(hardest)
        losses.append(total)
    return losses


# --- Ranking ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("scale", [1.0, 50.0])
@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float64, 1e-12), (torch.float32, 1e-6)])
def test_ranking_equals_plain_loop(size, scale, dtype, tolerance):
    similarity, margin, negatives = (
        uniform(size, 0, scale, dtype),
        0.2 * fractions(size, dtype=dtype),
        some_negatives(size),
    )
    found = trusted_ranking(similarity, margin=margin, negatives=negatives)
    expected = torch.tensor(loop_ranking(similarity, margin, negatives), dtype=torch.float64)
    assert found.shape == (size,) and found.dtype == dtype
    torch.testing.assert_close(found.double(), expected, rtol=tolerance, atol=tolerance * scale)


@pytest.mark.parametrize("kind", ["ones", "minus ones", "perfect", "wrong"])
def test_ranking_equals_plain_loop_at_the_extremes(kind):
    eye = torch.eye(6, dtype=torch.float64)
    matrix = {
        "ones": torch.ones_like(eye),
        "minus ones": -torch.ones_like(eye),
        "perfect": 2 * eye - 1,
        "wrong": 1 - 2 * eye,
    }
    negatives = torch.tensor([0, 1, 2, 3, 5, 9])
    margin = torch.linspace(0, 0.2, 6, dtype=torch.float64)
    expected = torch.tensor(loop_ranking(matrix[kind], margin, negatives), dtype=torch.float64)
    torch.testing.assert_close(trusted_ranking(matrix[kind], margin=margin, negatives=negatives), expected)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("hardest", [1, 3, 99])
def test_ranking_with_one_number_for_all_is_hinge_ranking(size, hardest):
    similarity, margin = uniform(size), 0.2 * fractions(size)
    torch.testing.assert_close(
        trusted_ranking(similarity, margin=margin, negatives=torch.full((size,), hardest)),
        hinge_ranking(similarity, margin=margin, negatives=hardest),
    )


@pytest.mark.parametrize("size", [1, 2, 5])
def test_ranking_gradient(size):
    similarity = uniform(size, 3).requires_grad_()
    margin, negatives = fractions(size), some_negatives(size)
    assert torch.autograd.gradcheck(
        lambda s: trusted_ranking(s, margin=margin, negatives=negatives), (similarity,), eps=1e-8, atol=1e-5
    )


def test_a_pair_without_negatives_has_no_term_at_all():
    """Neither value nor gradient of its own, where a margin of 0 would keep both; it stays a negative of others."""
    similarity = -torch.eye(4, dtype=torch.float64).requires_grad_()
    margin, negatives = torch.full((4,), 0.2, dtype=torch.float64), torch.tensor([3, 0, 1, 0])
    losses = trusted_ranking(similarity, margin=margin, negatives=negatives)
    assert (losses == 0).tolist() == [False, True, False, True]
    (own,) = torch.autograd.grad(losses[1], similarity, retain_graph=True)
    assert not own.any()
    (others,) = torch.autograd.grad(losses[0], similarity)
    assert others[0, 1] > 0 and others[1, 0] > 0
    with_margin_zero = trusted_ranking(similarity, margin=torch.zeros(4), negatives=torch.ones(4, dtype=torch.int64))
    assert (with_margin_zero > 0).all()


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float64])
@pytest.mark.parametrize("scale", [1.0, 50.0])
@pytest.mark.parametrize("size", [1, 2, 512])
def test_ranking_and_gradient_are_finite(dtype, scale, size):
    similarity = uniform(size, 0, scale, dtype).requires_grad_()
    for negatives in (torch.zeros(size, dtype=torch.int64), torch.full((size,), 5), torch.full((size,), 10**6)):
        values = trusted_ranking(similarity, margin=torch.full((size,), 0.2), negatives=negatives)
        assert torch.isfinite(values).all()
        (gradient,) = torch.autograd.grad(values.sum(), similarity)
        assert torch.isfinite(gradient).all()
        if size == 1 or not negatives.any():
            assert not values.any() and not gradient.any()


def test_no_gradient_flows_into_the_margin():
    margin, similarity = fractions(3).requires_grad_(), uniform(3).requires_grad_()
    trusted_ranking(similarity, margin=margin, negatives=torch.ones(3, dtype=torch.int64)).sum().backward()
    assert margin.grad is None and similarity.grad is not None


def test_bad_ranking_input_is_refused_and_named():
    similarity, margin, negatives = uniform(3), fractions(3), torch.ones(3, dtype=torch.int64)
    spoilt = similarity.clone()
    spoilt[2, 1] = torch.nan
    with pytest.raises(InputError, match=r"similarity\[2, 1\]"):
        trusted_ranking(spoilt, margin=margin, negatives=negatives)
    with pytest.raises(InputError, match="margin has shape"):
        trusted_ranking(similarity, margin=torch.ones(2), negatives=negatives)
    with pytest.raises(InputError, match=r"margin\[1\]"):
        trusted_ranking(similarity, margin=torch.tensor([0.1, torch.nan, 0.1]), negatives=negatives)
    with pytest.raises(InputError, match="negatives has shape"):
        trusted_ranking(similarity, margin=margin, negatives=torch.ones(2, dtype=torch.int64))
    with pytest.raises(InputError, match=r"negatives\[2\]"):
        trusted_ranking(similarity, margin=margin, negatives=torch.tensor([1, 1, -1]))
    for other in (torch.ones(3), torch.ones(3, dtype=torch.bool)):
        with pytest.raises(InputError, match="integer"):
            trusted_ranking(similarity, margin=margin, negatives=other)


# --- Margins ------------------------------------------------------------------------------------------------------


def loop_trusted_margin(label, uncertainty, margin, curve, sharpness, threshold):
    soft = (curve**label - 1) / (curve - 1) * margin
    if label > threshold:
        odds = math.inf if uncertainty == 0 else (1 - uncertainty) / uncertainty
    else:
        odds = math.inf if uncertainty == 1 else uncertainty / (1 - uncertainty)
    if odds == 0:
        return 0.0  # odds^(−Δ) is infinite
    return soft / (1 + odds ** (-sharpness))


@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float64, 1e-12), (torch.float32, 1e-5)])
def test_margins_equal_plain_loops(dtype, tolerance):
    labels = torch.cat([fractions(100, 1), torch.tensor([0.0, 0.0, 1.0, 1.0, 0.5, 0.5])]).to(dtype)
    unknown = torch.cat([0.02 + 0.96 * fractions(100, 2), torch.tensor([0.0, 1.0, 0.0, 1.0, 0.0, 1.0])]).to(dtype)
    soft = [(10**label - 1) / 9 * 0.2 for label in labels.double().tolist()]
    assert soft_margin(labels, 0.2).tolist() == pytest.approx(soft, rel=tolerance)
    for options in (
        {"margin": 0.2, "curve": 10.0, "sharpness": 10.0, "threshold": 0.5},
        {"margin": 0.5, "curve": 3.0, "sharpness": 1.0, "threshold": 0.1},
    ):
        found = trusted_margin(labels, unknown, **options)
        expected = [
            loop_trusted_margin(label, u, *options.values())
            for label, u in zip(labels.double().tolist(), unknown.double().tolist(), strict=True)
        ]
        assert found.dtype == dtype
        assert found.tolist() == pytest.approx(expected, rel=10 * tolerance, abs=1e-12)


def test_margins_of_the_paper_are_the_defaults():
    labels, unknown = fractions(9, 1), fractions(9, 2)
    assert torch.equal(soft_margin(labels, 0.2), soft_margin(labels, 0.2, 10.0))
    assert torch.equal(
        trusted_margin(labels, unknown),
        trusted_margin(labels, unknown, margin=0.2, curve=10.0, sharpness=10.0, threshold=0.5),
    )


def test_margins_do_what_the_paper_says_in_words():
    """Higher for matched pairs with low uncertainty and for mismatched ones with high, never above the soft margin."""
    clean, noisy = torch.full((5,), 0.8), torch.full((5,), 0.3)
    unknown = torch.tensor([0.0, 0.3, 0.5, 0.7, 1.0])
    falling, rising = trusted_margin(clean, unknown), trusted_margin(noisy, unknown)
    assert (falling.diff() < 0).all() and (rising.diff() > 0).all()
    assert falling[0] == soft_margin(clean, 0.2)[0] and falling[-1] == 0
    assert rising[-1] == soft_margin(noisy, 0.2)[0] and rising[0] == 0
    assert falling[2] == pytest.approx(float(soft_margin(clean, 0.2)[0]) / 2)


@settings(max_examples=100, deadline=None)
@given(label=st.floats(0, 1), unknown=st.floats(0, 1), sharpness=st.floats(0.01, 100), curve=st.floats(1.01, 1000))
def test_margins_lie_between_zero_and_the_margin(label, unknown, sharpness, curve):
    labels, uncertainty = torch.tensor([label]).double(), torch.tensor([unknown]).double()
    soft = soft_margin(labels, 0.2, curve)
    trusted = trusted_margin(labels, uncertainty, curve=curve, sharpness=sharpness)
    assert 0 <= float(trusted) <= float(soft) <= 0.2 + 1e-15


def test_margins_carry_no_gradient():
    labels, unknown = fractions(3).requires_grad_(), fractions(3).requires_grad_()
    assert not soft_margin(labels, 0.2).requires_grad
    assert not trusted_margin(labels, unknown).requires_grad


def test_bad_margin_input_is_refused_and_named():
    with pytest.raises(InputError, match=r"labels\[1\]"):
        soft_margin(torch.tensor([0.5, torch.nan]), 0.2)
    with pytest.raises(InputError, match="margin is -1"):
        soft_margin(torch.tensor([0.5]), -1.0)
    with pytest.raises(InputError, match="curve 1"):
        soft_margin(torch.tensor([0.5]), 0.2, 1.0)
    with pytest.raises(InputError, match="uncertainty.*1.5"):
        trusted_margin(torch.tensor([0.5]), torch.tensor([1.5]))
    with pytest.raises(InputError, match="uncertainty"):
        trusted_margin(torch.tensor([0.5]), torch.tensor([0.5, 0.5]))
    with pytest.raises(InputError, match="sharpness"):
        trusted_margin(torch.tensor([0.5]), torch.tensor([0.5]), sharpness=0.0)


# --- Hardness -----------------------------------------------------------------------------------------------------


@settings(max_examples=100, deadline=None)
@given(total=st.integers(1, 500), batch=st.integers(1, 300), least=st.integers(1, 20))
def test_hardness_falls_linearly_from_all_negatives_to_the_fewest(total, batch, least):
    values = [hardness(step, total, batch, least) for step in range(total + 3)]
    most = max(batch - 1, 1)
    fewest = min(least, most)
    assert values[0] == most
    assert values[total:] == [fewest] * 3
    assert all(before >= after for before, after in pairwise(values))
    for step, value in enumerate(values[:total]):
        assert most - (most - fewest) * step / total - 1e-9 <= value < most - (most - fewest) * step / total + 1


def test_hardness_without_a_warm_up_is_the_fewest():
    assert hardness(0, 0, 128) == 5
    with pytest.raises(InputError, match="step is -1"):
        hardness(-1, 10, 128)
    with pytest.raises(InputError, match="least 0"):
        hardness(1, 10, 128, 0)


def test_printed_hardness():
    assert [printed_hardness(epoch, 128) for epoch in (0, 1, 4, 40)] == [128, 127, 127, 118]
    assert printed_hardness(1000, 128) == 5
    assert printed_hardness(30, 128, 5.0, 3) == 3
