"""UGNCL's evidential loss against plain float64 loops, and its divergence against 50 digits."""

import math

import mpmath
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from truepair.errors import InputError
from truepair.losses import evidential
from truepair.losses.evidential import divergence_from_uniform


def some_alpha(rows, columns, seed=0, dtype=torch.float64, log_scale=2.0):
    generator = torch.Generator().manual_seed(seed)
    evidence = torch.exp(log_scale * torch.randn(rows, columns, generator=generator, dtype=torch.float64))
    evidence[torch.rand(rows, columns, generator=generator) < 0.2] = 0
    return (evidence + 1).to(dtype)


def some_target(rows, columns, seed=1, dtype=torch.float64):
    generator = torch.Generator().manual_seed(seed)
    target = torch.rand(rows, columns, generator=generator, dtype=torch.float64)
    target[torch.rand(rows, columns, generator=generator) < 0.5] = 0
    return target.to(dtype)


def loop_divergence(alpha):
    """Eq. 13 as printed, with 50 digits."""
    with mpmath.workdps(50):
        alpha = [mpmath.mpf(value) for value in alpha]
        strength = mpmath.fsum(alpha)
        value = mpmath.loggamma(strength) - mpmath.loggamma(len(alpha))
        value -= mpmath.fsum(mpmath.loggamma(a) for a in alpha)
        value += mpmath.fsum((a - 1) * (mpmath.digamma(a) - mpmath.digamma(strength)) for a in alpha)
        return float(value)


def loop_evidential(alpha, target, kl_weight):
    losses = []
    for parameters, wanted in zip(alpha.double().tolist(), target.double().tolist(), strict=True):
        strength = math.fsum(parameters)
        error = math.fsum(
            (y - a / strength) ** 2 + a * (strength - a) / (strength**2 * (strength + 1))
            for a, y in zip(parameters, wanted, strict=True)
        )
        adjusted = [y + (1 - y) * a for a, y in zip(parameters, wanted, strict=True)]
        losses.append(error + kl_weight * loop_divergence(adjusted))
    return losses


@pytest.mark.parametrize("shape", [(1, 1), (2, 2), (7, 7), (3, 20)])
@pytest.mark.parametrize("kl_weight", [0.0, 0.1, 2.0])
@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float64, 1e-12), (torch.float32, 1e-6)])
def test_loss_equals_plain_loop(shape, kl_weight, dtype, tolerance):
    alpha, target = some_alpha(*shape, dtype=dtype), some_target(*shape, dtype=dtype)
    found = evidential(alpha, target, kl_weight=kl_weight)
    expected = torch.tensor(loop_evidential(alpha, target, kl_weight), dtype=torch.float64)
    assert found.dtype == dtype and found.shape == (shape[0],)
    torch.testing.assert_close(found.double(), expected, rtol=tolerance, atol=tolerance)


def test_weight_of_the_paper_is_the_default():
    alpha, target = some_alpha(4, 4), some_target(4, 4)
    assert torch.equal(evidential(alpha, target), evidential(alpha, target, kl_weight=0.1))


def test_soft_target_on_the_diagonal():
    """As UGNCL uses it: ỹ_i on the diagonal, a noisy pair (ỹ = 0) leaves all evidence to the divergence."""
    alpha, labels = some_alpha(5, 5), torch.tensor([1.0, 0.0, 0.5, 0.0, 1.0], dtype=torch.float64)
    found = evidential(alpha, torch.diag(labels))
    expected = loop_evidential(alpha, torch.diag(labels), 0.1)
    assert found.tolist() == pytest.approx(expected, rel=1e-12)
    assert float(divergence_from_uniform(alpha)[1]) > 0


@pytest.mark.parametrize("evidence", [0.0, 1e-12, 1e-3, 1.0, 14.9, 15.0, 15.1, 100.0, math.exp(10), 1e9, 1e17, 1e35])
@pytest.mark.parametrize("candidates", [1, 2, 16, 17, 512])
def test_divergence_of_any_evidence_against_50_digits(evidence, candidates):
    """The printed formula in float64 is wrong in every digit from about 1e17 on, in float32 from about 1e4 on."""
    alpha = torch.full((1, candidates), evidence + 1, dtype=torch.float64)
    expected = loop_divergence(alpha[0].tolist())
    assert float(divergence_from_uniform(alpha)) == pytest.approx(expected, rel=1e-12, abs=5e-12)


@pytest.mark.parametrize("evidence", [15.0, 15.01, 16.0, 20.0, 50.0])
def test_the_series_is_exact_where_it_begins(evidence):
    alpha = torch.full((1, 2), evidence + 1, dtype=torch.float64)
    assert float(divergence_from_uniform(alpha)) == pytest.approx(loop_divergence(alpha[0].tolist()), rel=1e-14)


def test_printed_formula_in_float32_would_not_do():
    alpha = torch.full((512,), math.exp(10) + 1)
    total = alpha.sum()
    printed = torch.lgamma(total) - torch.lgamma(torch.tensor(512.0)) - torch.lgamma(alpha).sum()
    printed = printed + ((alpha - 1) * (torch.digamma(alpha) - torch.digamma(total))).sum()
    expected = loop_divergence(alpha.tolist())
    assert abs(float(printed) - expected) > 1.0
    found = evidential(alpha[None], torch.zeros(1, 512), kl_weight=1.0) - evidential(
        alpha[None], torch.zeros(1, 512), kl_weight=0.0
    )
    assert float(found) == pytest.approx(expected, rel=1e-6)


def loop_divergence_gradient(alpha):
    """d KL / d α_j = (α_j − 1) ψ'(α_j) − (L − K) ψ'(L), with 50 digits."""
    with mpmath.workdps(50):
        alpha = [mpmath.mpf(value) for value in alpha]
        strength = mpmath.fsum(alpha)
        common = (strength - len(alpha)) * mpmath.polygamma(1, strength)
        return [float((a - 1) * mpmath.polygamma(1, a) - common) for a in alpha]


@pytest.mark.parametrize("log_scale", [1.0, 3.0, 10.0])
def test_gradient_of_the_divergence_against_50_digits(log_scale):
    alpha = some_alpha(1, 40, log_scale=log_scale).requires_grad_()
    (gradient,) = torch.autograd.grad(divergence_from_uniform(alpha).sum(), alpha)
    expected = torch.tensor([loop_divergence_gradient(alpha[0].tolist())], dtype=torch.float64)
    # PyTorch's own trigamma has a relative error of 5e-10 below 10.
    torch.testing.assert_close(gradient, expected, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("evidence", [math.exp(10), 1e9, 1e17])
def test_gradient_of_much_evidence_against_50_digits(evidence):
    """Where the printed formula subtracts two numbers close to 1 and float32 keeps two digits of 1/(2α)."""
    alpha = torch.full((1, 512), evidence + 1, dtype=torch.float64)
    alpha[0, ::2] /= 3
    (gradient,) = torch.autograd.grad(divergence_from_uniform(alpha.requires_grad_()).sum(), alpha)
    expected = torch.tensor([loop_divergence_gradient(alpha[0].tolist())], dtype=torch.float64)
    torch.testing.assert_close(gradient, expected, rtol=1e-8, atol=0)


@settings(max_examples=60, deadline=None)
@given(rows=st.integers(1, 6), columns=st.integers(1, 80), seed=st.integers(0, 10**6), spread=st.floats(0.0, 12.0))
def test_divergence_is_never_negative(rows, columns, seed, spread):
    assert (divergence_from_uniform(some_alpha(rows, columns, seed, log_scale=spread)) >= -1e-11).all()


@pytest.mark.parametrize("candidates", [1, 2, 16, 128, 512])
def test_divergence_of_no_evidence_is_zero(candidates):
    alpha = torch.ones(2, candidates, dtype=torch.float64)
    assert divergence_from_uniform(alpha).abs().max() < 1e-11
    assert divergence_from_uniform(1 + 0.1 * alpha).min() > 1e-6 or candidates == 1


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float64])
@pytest.mark.parametrize("evidence", [0.0, 1.0, math.exp(10), 1e35])
@pytest.mark.parametrize("size", [1, 2, 512])
def test_loss_and_gradient_are_finite(dtype, evidence, size):
    alpha = torch.full((size, size), evidence + 1, dtype=dtype).requires_grad_()
    for target in (torch.zeros(size, size), torch.eye(size), torch.ones(size, size)):
        values = evidential(alpha, target)
        assert values.dtype == dtype
        assert torch.isfinite(values).all() and (values > -1e-9).all()
        (gradient,) = torch.autograd.grad(values.sum(), alpha)
        assert torch.isfinite(gradient).all()


@pytest.mark.parametrize("size", [1, 2, 5])
@pytest.mark.parametrize("log_scale", [0.5, 3.0])
def test_gradient(size, log_scale):
    alpha = (some_alpha(size, size, seed=3, log_scale=log_scale) + 0.5).requires_grad_()
    target = some_target(size, size)
    assert torch.autograd.gradcheck(lambda a: evidential(a, target), (alpha,))


def test_right_evidence_is_rewarded_and_wrong_evidence_is_not():
    target = torch.eye(8, dtype=torch.float64)
    right = evidential(1 + 20 * target, target)
    none = evidential(torch.ones(8, 8, dtype=torch.float64), target)
    wrong = evidential(1 + 20 * target.roll(1, 0), target)
    assert (right < none).all() and (none < wrong).all()


def test_no_gradient_flows_into_the_target():
    alpha, target = some_alpha(3, 3).requires_grad_(), some_target(3, 3).requires_grad_()
    evidential(alpha, target).sum().backward()
    assert target.grad is None and alpha.grad is not None


@pytest.mark.parametrize("bad", [0.5, -1.0, torch.nan, torch.inf])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_impossible_alpha_is_refused_and_named(bad, dtype):
    alpha = torch.ones(3, 3, dtype=dtype)
    alpha[2, 1] = bad
    with pytest.raises(InputError, match=r"alpha\[2, 1\]"):
        evidential(alpha, torch.zeros(3, 3))


@pytest.mark.parametrize("bad", [-0.1, 1.1, torch.nan])
def test_impossible_target_is_refused_and_named(bad):
    target = torch.zeros(3, 3)
    target[0, 2] = bad
    with pytest.raises(InputError, match=r"target\[0, 2\]"):
        evidential(torch.ones(3, 3), target)


def test_wrong_shapes_dtypes_and_weights_are_refused():
    with pytest.raises(InputError, match="expected"):
        evidential(torch.ones(3), torch.ones(3))
    with pytest.raises(InputError, match="expected"):
        evidential(torch.ones(3, 3), torch.ones(3, 2))
    with pytest.raises(InputError, match="expected"):
        evidential(torch.ones(3, 0), torch.ones(3, 0))
    with pytest.raises(InputError, match="floating"):
        evidential(torch.ones(3, 3, dtype=torch.int64), torch.ones(3, 3))
    with pytest.raises(InputError, match="kl_weight"):
        evidential(torch.ones(3, 3), torch.ones(3, 3), kl_weight=-1.0)
