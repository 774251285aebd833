"""Opinions and their fusion against the definitions: exact fractions, and Dempster's rule over all pairs of sets."""

import math
from fractions import Fraction

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from truepair.correspondence import (
    bidirectional,
    exponential_evidence,
    fuse_evidence,
    fuse_opinions,
    opinions,
    softplus_evidence,
)
from truepair.errors import InputError

SIZES = [1, 2, 7, 32]


def some_evidence(rows, columns, seed=0, dtype=torch.float64, log_scale=3.0):
    """Evidence over several orders of magnitude, with zeros among it."""
    generator = torch.Generator().manual_seed(seed)
    evidence = torch.exp(log_scale * torch.randn(rows, columns, generator=generator, dtype=torch.float64))
    evidence[torch.rand(rows, columns, generator=generator) < 0.2] = 0
    return evidence.to(dtype)


def exact_opinion(evidence):
    """(beliefs, uncertainty) of one row, in fractions."""
    evidence = [Fraction(value) for value in evidence]
    strength = sum(value + 1 for value in evidence)
    return [value / strength for value in evidence], len(evidence) / strength


def dempster(first, second):
    """Dempster's rule by its definition: masses on the K candidates and on the frame, all pairs of them intersected."""
    frame = "frame"
    masses = [{**dict(enumerate(beliefs)), frame: uncertainty} for beliefs, uncertainty in (first, second)]
    combined, conflict = {}, Fraction(0)
    for one, mass_1 in masses[0].items():
        for two, mass_2 in masses[1].items():
            if one == frame:
                meet = two
            elif two in (frame, one):
                meet = one
            else:
                conflict += mass_1 * mass_2
                continue
            combined[meet] = combined.get(meet, 0) + mass_1 * mass_2
    beliefs = [combined[k] / (1 - conflict) for k in range(len(first[0]))]
    return beliefs, combined[frame] / (1 - conflict)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float64, 1e-13), (torch.float32, 2e-6)])
def test_opinions_equal_exact_fractions(size, dtype, tolerance):
    evidence = some_evidence(size, size + 1, dtype=dtype)
    belief, uncertainty = opinions(evidence)
    assert belief.shape == (size, size + 1) and uncertainty.shape == (size,) and belief.dtype == dtype
    for row, values in enumerate(evidence.tolist()):
        beliefs, unknown = exact_opinion(values)
        assert belief[row].tolist() == pytest.approx([float(value) for value in beliefs], rel=tolerance)
        assert float(uncertainty[row]) == pytest.approx(float(unknown), rel=tolerance)
        assert sum(beliefs) + unknown == 1


@settings(max_examples=50, deadline=None)
@given(rows=st.integers(1, 20), columns=st.integers(1, 60), seed=st.integers(0, 10**6), spread=st.floats(0.1, 8))
def test_beliefs_and_uncertainty_sum_to_one(rows, columns, seed, spread):
    first, second = (some_evidence(rows, columns, seed + k, log_scale=spread) for k in (0, 1))
    for belief, uncertainty in (opinions(first), fuse_opinions(first, second)):
        assert (belief >= 0).all() and (uncertainty > 0).all() and (uncertainty <= 1).all()
        torch.testing.assert_close(belief.sum(dim=1) + uncertainty, torch.ones(rows, dtype=torch.float64))


@pytest.mark.parametrize("size", [1, 2, 5, 9])
@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float64, 1e-12), (torch.float32, 1e-5)])
def test_fusion_is_dempsters_rule(size, dtype, tolerance):
    first, second = some_evidence(size, size, 1, dtype), some_evidence(size, size, 2, dtype)
    belief, uncertainty = fuse_opinions(first, second)
    for row in range(size):
        beliefs, unknown = dempster(exact_opinion(first[row].tolist()), exact_opinion(second[row].tolist()))
        assert belief[row].tolist() == pytest.approx([float(value) for value in beliefs], rel=tolerance)
        assert float(uncertainty[row]) == pytest.approx(float(unknown), rel=tolerance)


@pytest.mark.parametrize("size", SIZES)
def test_fusion_is_the_printed_reduced_rule(size):
    """b = (b¹b² + b¹u² + b²u¹)/(1 − C), u = u¹u²/(1 − C), e = b K/u, with C computed as the design names it."""
    first, second = some_evidence(size, size, 1, log_scale=1.0), some_evidence(size, size, 2, log_scale=1.0)
    (b1, u1), (b2, u2) = opinions(first), opinions(second)
    agreement = 1 - (b1.sum(dim=1) * b2.sum(dim=1) - (b1 * b2).sum(dim=1))
    belief, uncertainty = fuse_opinions(first, second)
    torch.testing.assert_close(belief, (b1 * b2 + b1 * u2[:, None] + b2 * u1[:, None]) / agreement[:, None])
    torch.testing.assert_close(uncertainty, u1 * u2 / agreement)
    evidence = belief * (size / uncertainty)[:, None]  # e_k = b_k K/u (eq. 7)
    torch.testing.assert_close(evidence, fuse_evidence(first, second))
    torch.testing.assert_close(agreement, u1 * u2 / size * (fuse_evidence(first, second) + 1).sum(dim=1))


def test_fusion_is_symmetric_and_no_evidence_changes_nothing():
    first, second = some_evidence(6, 6, 1), some_evidence(6, 6, 2)
    assert torch.equal(fuse_evidence(first, second), fuse_evidence(second, first))
    assert torch.equal(fuse_evidence(first, torch.zeros(6, 6, dtype=torch.float64)), first)
    (_, before), (_, after) = opinions(first), fuse_opinions(first, second)
    assert (after <= before).all()  # a second view never makes less certain


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_total_conflict_stays_finite(dtype):
    """Two views, each almost certain of another candidate: 1 − C is nothing but rounding."""
    first, second = torch.zeros(1, 128, dtype=dtype), torch.zeros(1, 128, dtype=dtype)
    first[0, 0] = second[0, 1] = 2e17
    (b1, _), (b2, _) = opinions(first), opinions(second)
    assert abs(1 - (b1.sum() * b2.sum() - (b1 * b2).sum())) < 2e-15
    belief, uncertainty = fuse_opinions(first.requires_grad_(), second)
    assert belief[0, :3].tolist() == pytest.approx([0.5, 0.5, 0.0])
    assert 0 < uncertainty.item() < 1e-15
    (gradient,) = torch.autograd.grad(belief[0, 0], first)
    assert torch.isfinite(gradient).all()


@pytest.mark.parametrize("size", [1, 2, 512])
@pytest.mark.parametrize("score", [-50.0, -1.0, 0.0, 1.0, 50.0])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float64])
@pytest.mark.parametrize("form", [exponential_evidence, softplus_evidence])
def test_everything_is_finite_at_the_extremes(form, size, score, dtype):
    scores = torch.full((size, size), score, dtype=dtype)
    scores[0, -1] = -score
    scores.requires_grad_()
    evidence = bidirectional(form(scores))
    belief, uncertainty = fuse_opinions(evidence, evidence.flip(0))
    for values in (evidence, belief, uncertainty):
        assert torch.isfinite(values).all()
    for values in (evidence, belief, uncertainty, fuse_evidence(evidence, evidence.flip(0))):
        (gradient,) = torch.autograd.grad(values.sum(), scores, retain_graph=True)
        assert torch.isfinite(gradient).all()
    torch.testing.assert_close(belief.sum(dim=1) + uncertainty, torch.ones(size, dtype=belief.dtype))


def test_evidence_functions_equal_plain_loops():
    scores = torch.tensor([[-1.0, 0.3], [0.9, 1.0]], dtype=torch.float64)
    for found, expected in (
        (exponential_evidence(scores), lambda s: math.exp(s / 0.1)),
        (exponential_evidence(scores, temperature=0.5), lambda s: math.exp(s / 0.5)),
        (softplus_evidence(scores), lambda s: math.exp(math.log1p(math.exp(s)) / 0.1)),
        (softplus_evidence(3 * scores, temperature=0.5), lambda s: math.exp(math.log1p(math.exp(3 * s)) / 0.5)),
    ):
        torch.testing.assert_close(
            found, torch.tensor([[expected(s) for s in row] for row in scores.tolist()], dtype=torch.float64)
        )


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("form", [exponential_evidence, softplus_evidence])
def test_larger_scores_are_more_evidence_however_large(form, dtype):
    """Not so with a cap: scores of 4.1 and 6 at τ = 0.1 would be one evidence, and the given partner foremost."""
    scores = torch.tensor([[3.8, 3.89, 3.91, 4.1, 6.0, 9.0, 15.0, 30.0]], dtype=dtype).expand(8, 8).clone()
    leaf = scores.requires_grad_()
    evidence = form(leaf)
    assert bool((evidence[0].diff() > 0).all()) and float(evidence.detach().max()) <= math.exp(40)
    fused = fuse_evidence(evidence, evidence)
    assert bool((fused[0].diff() > 0).all()) and bool(torch.isfinite(fused).all())
    (gradient,) = torch.autograd.grad(evidence.sum(), leaf)
    assert bool((gradient > 0).all()) and bool(torch.isfinite(gradient).all())


def test_evidence_is_at_least_single_precision():
    assert exponential_evidence(torch.zeros(2, 2, dtype=torch.bfloat16)).dtype == torch.float32
    assert softplus_evidence(torch.zeros(2, 2, dtype=torch.float16)).dtype == torch.float32


@settings(max_examples=40, deadline=None)
@given(size=st.integers(1, 60), seed=st.integers(0, 10**6), scale=st.floats(0, 50), temperature=st.floats(0.02, 0.99))
def test_printed_evidence_never_leaves_a_third_uncertain(size, seed, scale, temperature):
    """UGNCL's eq. 3: evidence of at least 1 a cell, 2 in both directions, so u = B/L ≤ 1/3; its threshold is 0.5."""
    scores = scale * torch.randn(size, size, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    evidence = softplus_evidence(scores, temperature=temperature)
    assert (evidence >= 1).all()
    _, uncertainty = opinions(bidirectional(evidence))
    assert (uncertainty <= 1 / 3 + 1e-12).all()


def test_exponential_evidence_can_leave_everything_uncertain_and_nothing():
    _, uncertain = opinions(bidirectional(exponential_evidence(-torch.ones(128, 128, dtype=torch.float64))))
    assert (uncertain > 0.999).all()
    _, certain = opinions(bidirectional(exponential_evidence(torch.ones(128, 128, dtype=torch.float64))))
    assert (certain < 1e-4).all()


def test_bidirectional_adds_the_row_and_the_column():
    evidence = some_evidence(5, 5)
    found = bidirectional(evidence)
    for i in range(5):
        for k in range(5):
            assert found[i, k] == evidence[i, k] + evidence[k, i]


@pytest.mark.parametrize("size", [1, 2, 4])
def test_gradients(size):
    scores, others = (
        torch.rand(size, size, generator=torch.Generator().manual_seed(seed), dtype=torch.float64).requires_grad_()
        for seed in (0, 1)
    )
    for form in (exponential_evidence, softplus_evidence):

        def fused(first, second, form=form):
            return fuse_opinions(
                bidirectional(form(first, temperature=0.5)), bidirectional(form(second, temperature=0.5))
            )

        assert torch.autograd.gradcheck(fused, (scores, others))


# --- What is refused ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("bad", [-0.1, torch.nan, torch.inf])
def test_evidence_that_is_negative_or_not_finite_is_refused_and_named(bad):
    good, spoilt = some_evidence(3, 3), some_evidence(3, 3)
    spoilt[2, 1] = bad
    for use in (
        opinions,
        bidirectional,
        lambda e: fuse_evidence(e, good),
        lambda e: fuse_opinions(good, e),
    ):
        with pytest.raises(InputError, match=r"\[2, 1\]"):
            use(spoilt)


def test_wrong_shapes_are_refused():
    good = some_evidence(3, 4)
    for use, evidence in (
        (opinions, torch.ones(3)),
        (opinions, torch.ones(3, 0)),
        (bidirectional, good),
        (lambda e: fuse_evidence(e, good), torch.ones(3, 3)),
        (exponential_evidence, good),
        (softplus_evidence, good),
    ):
        with pytest.raises(InputError, match="expected"):
            use(evidence)


@pytest.mark.parametrize("form", [exponential_evidence, softplus_evidence])
def test_scores_that_are_not_finite_and_temperatures_that_are_not_positive_are_refused(form):
    scores = torch.zeros(3, 3)
    with pytest.raises(InputError, match="temperature"):
        form(scores, temperature=0.0)
    scores[0, 2] = torch.nan
    with pytest.raises(InputError, match=r"similarity\[0, 2\]"):
        form(scores)
