"""L2RM's losses against plain loops, and what a plan that is met costs."""

import math

import pytest
import torch

from tests.losses.test_losses import loop_info_nce, loop_probability, random_similarity, rows_and_columns
from truepair.errors import InputError
from truepair.losses.rematching import rematching, symmetric_cross_entropy

S = random_similarity(5, seed=3)
PLAN = torch.rand(5, 5, generator=torch.Generator().manual_seed(1), dtype=torch.float64) * 0.04
PLAN[torch.eye(5).bool()] = 0


@pytest.mark.parametrize("size", [1, 2, 7])
def test_the_warm_up_is_cross_entropy_and_its_reverse_with_10_to_the_minus_7_for_0(size):
    similarity = random_similarity(size, seed=size)
    expected = loop_info_nce(similarity, 0.05)
    for lines in rows_and_columns(similarity):
        for i, line in enumerate(lines):
            p = loop_probability(line, 0.05)
            expected[i] -= 0.5 * sum(p[j] * math.log(1e-7) for j in range(size) if j != i)
    assert symmetric_cross_entropy(similarity).tolist() == pytest.approx(expected, abs=1e-12, rel=1e-12)


def loop_rematching(similarity, plan, temperature, share, floor=1e-10):
    sides = zip(rows_and_columns(similarity), rows_and_columns(plan), strict=True)
    losses = [0.0] * len(similarity)
    for lines, plans in sides:
        for i, (line, moved) in enumerate(zip(lines, plans, strict=True)):
            p, target = loop_probability(line, temperature), [max(value, floor) for value in moved]
            target = [value / sum(target) for value in target]
            both = sum(t * math.log(t / q) + q * math.log(q / t) for t, q in zip(target, p, strict=True))
            losses[i] += 0.5 * both * (len(line) * sum(moved) if share else 1.0)
    return losses


@pytest.mark.parametrize("share", [True, False])
def test_rematching_is_both_divergences_of_both_directions(share):
    found = rematching(S, PLAN, temperature=0.2, share=share)
    assert found.tolist() == pytest.approx(loop_rematching(S, PLAN, 0.2, share), abs=1e-12, rel=1e-12)
    given = S.clone().requires_grad_()
    assert torch.autograd.gradcheck(lambda s: rematching(s, PLAN, temperature=0.2, share=share), given)
    assert torch.autograd.gradcheck(lambda s: symmetric_cross_entropy(s, temperature=0.2), given)


def test_probabilities_that_are_the_plan_cost_nothing():
    circulant = torch.stack([torch.tensor([0.5, 0.3, 0.2, 0.0]).roll(shift) for shift in range(4)]).double() + 1e-6
    circulant /= circulant.sum(dim=1, keepdim=True)  # rows and columns sum to 1: p and pᵀ both can be it
    found = rematching(circulant.log(), circulant / 4, temperature=1.0)
    torch.testing.assert_close(found, torch.zeros(4, dtype=torch.float64), rtol=0, atol=1e-12)
    assert bool((rematching(circulant.log(), circulant.roll(1, 1) / 4, temperature=1.0) > 0.1).all())


def test_order_does_not_matter():
    order = torch.tensor([3, 1, 4, 0, 2])
    moved = [matrix[order][:, order] for matrix in (S, PLAN)]
    torch.testing.assert_close(rematching(*moved), rematching(S, PLAN)[order], rtol=0, atol=1e-12)
    torch.testing.assert_close(symmetric_cross_entropy(moved[0]), symmetric_cross_entropy(S)[order], rtol=0, atol=1e-12)


@pytest.mark.parametrize(
    ("plan", "more"), [(-PLAN, {}), (PLAN[:3, :3], {}), (PLAN, {"floor": 0.0}), (PLAN, {"temperature": 0.0})]
)
def test_bad_values_are_refused(plan, more):
    with pytest.raises(InputError):
        rematching(S, plan, **more)
