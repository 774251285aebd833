"""L2RM: which pairs learn what, and a plan that finds partners planted elsewhere."""

import math

import pytest
import torch

import truepair
from tests.losses.test_rematching import loop_rematching
from tests.methods.given import GivenForward, GivenNetwork, check_order_does_not_matter, remembering
from tests.methods.test_ncr import plain_hinge
from truepair.engines.config import GlobalConfig
from truepair.losses.rematching import symmetric_cross_entropy
from truepair.methods import build_method
from truepair.methods.base import EpochPosition, Stage
from truepair.methods.l2rm.cost import LearnedCost
from truepair.training.setup import Setup
from truepair.transport import sinkhorn

PAIRS = 9
IDS = torch.randperm(PAIRS, generator=torch.Generator().manual_seed(0))
WEIGHT = torch.tensor([1.0, 0.25, 0.75, 0.5, 0.0, 1.0, 0.125, 0.375, 0.625])


def position(epoch=20):
    return EpochPosition(0, epoch, (Stage(25),))


def matrix(seed=1):
    return torch.rand(PAIRS, PAIRS, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


@pytest.mark.parametrize("options", [{}, {"targets": "full"}, {"rematch_weight": 0.7}, {"log_floor": -4.0}])
def test_losses_are_those_of_plain_loops(options):
    method, similarity = build_method("l2rm", options), matrix()
    memory = remembering(method, PAIRS, weight=WEIGHT)
    found = method.batch_loss(GivenForward([GivenNetwork(similarity)], IDS), position(), memory).per_pair
    weight = WEIGHT[IDS]
    expected = [h if w > 0.5 else 0.0 for w, h in zip(weight, plain_hinge(similarity, [1.0] * PAIRS), strict=True)]
    noisy = [row for row in range(PAIRS) if weight[row] <= 0.5]
    among = similarity[noisy][:, noisy]
    floor = math.exp(options["log_floor"]) if "log_floor" in options else 1e-10
    anew = loop_rematching(among, method.plan(1 - among), 0.05, options.get("targets") != "full", floor)
    for row, value in zip(noisy, anew, strict=True):
        expected[row] += value * options.get("rematch_weight", 1 / PAIRS)
    assert found.tolist() == pytest.approx(expected, abs=1e-12, rel=1e-12)


def test_the_plan_is_that_of_the_bordered_problem():
    """POT and a plain solver agree on `partial_transport` in tests/transport; here, what is asked of it."""
    method = build_method("l2rm", {"epsilon": 0.1, "mass": 0.3})
    similarity = matrix()[:5, :5]
    found = method.plan(1 - similarity)
    cost = (1 - similarity).fill_diagonal_(torch.inf)
    spread = float(cost[cost < torch.inf].max() - cost.min())
    bordered = torch.zeros(6, 6, dtype=torch.float64)
    bordered[:5, :5], bordered[5, 5] = cost, torch.inf
    mass = torch.tensor([0.2] * 5 + [0.7], dtype=torch.float64)
    expected = sinkhorn(bordered, mass, mass, epsilon=0.1 * spread, tolerance=1e-10)[:5, :5]
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-6)
    assert float(found.sum()) == pytest.approx(0.3, abs=1e-6)
    assert found.diagonal().tolist() == [0.0] * 5


@pytest.mark.parametrize("seed", range(4))
def test_with_hardly_any_entropy_the_plan_is_pots_partial_plan_without_the_diagonal(seed):
    partial = pytest.importorskip("ot.partial", reason="POT is not installed (pip install POT)")
    cost = 1 - matrix(seed)[:5, :5]
    found = build_method("l2rm", {"epsilon": 2e-4, "mass": 0.3}).plan(cost.clone())
    forbidden = cost.clone().fill_diagonal_(50.0).numpy()
    share = torch.full((5,), 0.2, dtype=torch.float64).numpy()
    expected = torch.from_numpy(partial.partial_wasserstein(share, share, forbidden, m=0.3))
    assert float((found * cost).sum()) == pytest.approx(float((expected * cost).sum()), abs=1e-4)
    torch.testing.assert_close(found, expected, rtol=0, atol=5e-3)


def learned_cost():
    cost = LearnedCost().double()
    cost.offset.data.fill_(1.5)
    cost.log_slope.data.fill_(math.log(4.0))
    return cost


@pytest.mark.parametrize("clean", [[], [3], [0, 2, 3, 7], list(range(PAIRS))])
def test_the_learned_cost_falls_with_the_similarity_and_learns_by_plain_loops(clean):
    cost, similarity = learned_cost(), matrix().requires_grad_()
    expected = [[math.log(1 + math.exp(1.5 - 4 * value)) for value in row] for row in similarity.tolist()]
    assert cost(similarity).tolist() == [pytest.approx(row, abs=1e-12) for row in expected]
    mask = torch.isin(torch.arange(PAIRS), torch.tensor(clean, dtype=torch.int64))
    loss = cost.loss(similarity, mask)
    own = [expected[i][i] for i in clean]
    wrong = [expected[i][j] - 1.5 + 4 * float(similarity[i, j].detach()) for i in clean for j in clean if i != j]
    assert float(loss.detach()) == pytest.approx(sum(own) / len(own) + sum(wrong) / len(wrong) if wrong else 0.0)
    loss.backward()
    assert similarity.grad is None and bool(cost.offset.grad != 0) == bool(wrong)
    assert torch.autograd.gradcheck(lambda *_: cost.loss(similarity.detach(), mask), (*cost.parameters(),))


def test_rematching_by_the_learned_cost_is_that_of_its_plan_and_leaves_the_engine_the_same_gradient():
    similarity, found = matrix(), {}
    for cost in ("distance", "learned"):
        method = build_method("l2rm", {"cost": cost})
        rows = similarity.clone().requires_grad_()
        forward = GivenForward([GivenNetwork(rows)], IDS, learned_cost() if cost == "learned" else None)
        memory = remembering(method, PAIRS, weight=WEIGHT)
        loss = method.batch_loss(forward, position(), memory).per_pair
        loss.mean().backward()
        clean = WEIGHT[IDS] > 0.5
        taught = forward.auxiliary.loss(similarity, clean).detach() if forward.auxiliary else 0.0
        found[cost] = (loss.detach() - taught)[clean], rows.grad[clean][:, clean]
    for one, other in zip(*found.values(), strict=True):
        torch.testing.assert_close(one, other, rtol=0, atol=1e-12)
    noisy = similarity[~clean][:, ~clean]
    assert not torch.allclose(method.plan(1 - noisy), method.plan(learned_cost()(noisy)), atol=1e-4)


def test_the_learned_cost_is_trained_beside_the_engine_at_a_rate_of_its_own(tiny, tmp_path):
    setup, built = Setup(model=GlobalConfig(width=8, word_width=8)), []
    method = build_method("l2rm", {"warm_up_epochs": 1, "cost": "learned", "mixture": "released"})
    build = method.auxiliary.build
    method.auxiliary.build = lambda *given: built.append(build(*given)) or built[-1]
    noisy = truepair.inject_noise(truepair.load(tiny), 0.4, seed=0)
    run = truepair.fit(noisy, method=method, setup=setup, out=tmp_path / "run", epochs=3, minimum_count=1)
    cost, new = built[-1], LearnedCost()
    assert all(float((a - b).detach().abs()) > 1e-3 for a, b in zip(cost.parameters(), new.parameters(), strict=True))
    groups = method.auxiliary.parameter_groups(run.model.engine, cost)
    assert [(len(parameters), rate) for parameters, rate in groups][1] == (2, 10.0)


def test_order_does_not_matter_to_the_learned_cost():
    forward = GivenForward([GivenNetwork(matrix())], IDS, learned_cost())
    method = build_method("l2rm", {"cost": "learned"})
    check_order_does_not_matter(method, forward, position(), {"weight": WEIGHT}, tolerance=1e-6)


def test_the_plan_finds_partners_that_were_exchanged():
    similarity = 0.1 * matrix() + 0.8 * torch.eye(PAIRS).roll(1, dims=1)
    plan = build_method("l2rm").plan(1 - similarity)
    assert plan.argmax(dim=1).tolist() == [*range(1, PAIRS), 0]


def test_the_warm_up_is_the_robust_loss_and_equal_costs_make_a_plan():
    method, similarity = build_method("l2rm"), matrix()
    given = GivenForward([GivenNetwork(similarity)], IDS)
    found = method.batch_loss(given, position(5), remembering(method, PAIRS)).per_pair
    assert torch.equal(found, symmetric_cross_entropy(similarity))
    plan = method.plan(torch.zeros(4, 4, dtype=torch.float64))
    torch.testing.assert_close(plan[~torch.eye(4).bool()], torch.full((12,), 0.1 / 12).double(), rtol=1e-4, atol=0)


@pytest.mark.parametrize("epoch", [3, 20])
def test_order_does_not_matter(epoch):
    given = GivenForward([GivenNetwork(matrix())], IDS)
    check_order_does_not_matter(build_method("l2rm"), given, position(epoch), {"weight": WEIGHT}, tolerance=1e-5)


@pytest.mark.parametrize("noisy", [0, 1, PAIRS])
def test_any_number_of_noisy_pairs_has_a_finite_gradient(noisy):
    method, weight = build_method("l2rm"), torch.ones(PAIRS)
    weight[:noisy] = 0
    similarity = matrix().requires_grad_()
    memory = remembering(method, PAIRS, weight=weight)
    loss = method.batch_loss(GivenForward([GivenNetwork(similarity)], IDS), position(), memory).per_pair
    loss.sum().backward()
    assert bool(torch.isfinite(similarity.grad).all()) and bool(similarity.grad.any())
