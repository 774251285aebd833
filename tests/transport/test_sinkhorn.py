"""Plans of all the mass: marginals, a plain float64 oracle, POT, and what must not change them."""

import math
import warnings

import pytest
import torch

from truepair.errors import InputError
from truepair.transport import TransportWarning, sinkhorn
from truepair.transport import balanced as solving
from truepair.transport.balanced import solve
from truepair.transport.newton import newton, schedule
from truepair.transport.problem import check_problem
from truepair.transport.scaling import scale


def draw(n, m, *, kind="uniform", seed=0):
    """Costs (n, m) and masses that sum to 1, float64."""
    generator = torch.Generator().manual_seed(seed)

    def normal(*shape):
        return torch.randn(*shape, generator=generator, dtype=torch.float64)

    rows, columns = (torch.rand(k, generator=generator, dtype=torch.float64) ** 3 + 1e-4 for k in (n, m))
    cost = normal(n, m).abs()
    if kind == "geometry":
        cost = torch.cdist(normal(n, 3), normal(m, 3)) ** 2
    elif kind == "constant":
        cost = torch.full((n, m), 2.5, dtype=torch.float64)
    elif kind == "shifted":
        cost = cost - 1e3
    elif kind == "wide":
        cost = 1e3 * cost
    elif kind == "rank one":
        cost = normal(n, 1) + normal(1, m)
    return cost, rows / rows.sum(), columns / columns.sum()


def plain_sinkhorn(cost, rows, columns, epsilon, steps):
    """Sinkhorn's iteration in loops, in the log domain."""
    n, m = cost.shape
    f, g = [0.0] * n, [0.0] * m

    def log_sum(values):
        top = max(values)
        return top + math.log(sum(math.exp(value - top) for value in values))

    for _ in range(steps):
        f = [math.log(rows[i]) - log_sum([g[j] - cost[i, j].item() / epsilon for j in range(m)]) for i in range(n)]
        g = [math.log(columns[j]) - log_sum([f[i] - cost[i, j].item() / epsilon for i in range(n)]) for j in range(m)]
    plan = [[math.exp(f[i] + g[j] - cost[i, j].item() / epsilon) for j in range(m)] for i in range(n)]
    return torch.tensor(plan, dtype=torch.float64)


def assert_marginals(plan, rows, columns, tolerance=1e-6):
    assert bool((plan >= 0).all())
    for found, wanted in ((plan.sum(dim=-1), rows), (plan.sum(dim=-2), columns)):
        assert float((found - wanted).abs().sum(dim=-1).max()) <= tolerance * float(rows.sum(dim=-1).max())


def spread(cost):
    return max(float(cost.max() - cost.min()), 1e-3)


KINDS = ("uniform", "geometry", "constant", "shifted", "wide", "rank one")
SHAPES = ((40, 7), (7, 40), (30, 30), (1, 5), (5, 1), (1, 1), (300, 2), (260, 200))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("share", [0.05, 1e-3])
def test_marginals_hold(kind, shape, share):
    cost, rows, columns = draw(*shape, kind=kind, seed=sum(shape))
    plan = sinkhorn(cost, rows, columns, epsilon=share * spread(cost))
    assert_marginals(plan, rows, columns)


@pytest.mark.parametrize("kind", ["uniform", "geometry", "rank one"])
@pytest.mark.parametrize("shape", [(9, 4), (4, 9), (6, 6)])
def test_the_plan_is_that_of_the_plain_iteration(kind, shape):
    cost, rows, columns = draw(*shape, kind=kind)
    epsilon = 0.1 * spread(cost)
    plan = sinkhorn(cost, rows, columns, epsilon=epsilon, tolerance=1e-12)
    expected = plain_sinkhorn(cost, rows, columns, epsilon, steps=400)
    assert torch.allclose(plan, expected, atol=1e-9, rtol=0)


@pytest.mark.parametrize("kind", ["uniform", "geometry", "shifted", "constant"])
@pytest.mark.parametrize("share", [0.1, 0.01])
@pytest.mark.parametrize("forbidden", [False, True])
def test_both_solvers_find_the_same_plan(kind, share, forbidden):
    cost, rows, columns = draw(60, 12, kind=kind, seed=3)
    if forbidden:
        cost[torch.rand(60, 12, generator=torch.Generator().manual_seed(1)) < 0.1] = math.inf
    problem = check_problem(cost, rows, columns, epsilon=share * spread(cost.masked_fill(cost == math.inf, 0.0)))
    by_newton = newton(problem, None, tolerance=1e-11, most_steps=100)
    assert by_newton.error <= 1e-11
    scaled = scale(problem, tolerance=1e-11, most_iterations=20_000).plan
    assert torch.allclose(by_newton.plan, scaled, atol=1e-9, rtol=0)
    assert not by_newton.plan[cost == math.inf].any()
    assert_marginals(by_newton.plan, rows, columns)


@pytest.mark.parametrize("share", [0.1, 0.03])
def test_it_agrees_with_pot(share):
    ot = pytest.importorskip("ot", reason="POT is not installed (pip install POT)")
    cost, rows, columns = draw(50, 20, kind="geometry", seed=1)
    epsilon = share * spread(cost)
    expected = ot.sinkhorn(
        rows.numpy(), columns.numpy(), cost.numpy(), epsilon, method="sinkhorn_log", numItermax=20_000, stopThr=1e-13
    )
    plan = sinkhorn(cost, rows, columns, epsilon=epsilon, tolerance=1e-11)
    assert torch.allclose(plan, torch.from_numpy(expected), atol=1e-8, rtol=0)


@pytest.mark.parametrize("shape", [(30, 8), (25, 25)])
def test_with_hardly_any_entropy_it_is_the_exact_plan(shape):
    ot = pytest.importorskip("ot", reason="POT is not installed (pip install POT)")
    cost, rows, columns = draw(*shape, seed=2)
    plan = sinkhorn(cost, rows, columns, epsilon=2e-4, tolerance=1e-9)
    exact = torch.from_numpy(ot.emd(rows.numpy(), columns.numpy(), cost.numpy()))
    assert float((plan * cost).sum()) == pytest.approx(float((exact * cost).sum()), abs=1e-3)
    assert float((plan - exact).abs().max()) < 5e-3  # random costs: the exact plan is unique


def test_a_batch_is_solved_as_its_problems_are_one_by_one():
    drawn = [draw(40, 30, kind=kind, seed=5) for kind in KINDS]
    cost, rows, columns = (torch.stack(parts) for parts in zip(*drawn, strict=True))
    rows[1, 4] = 0  # one problem with a row to leave out
    rows = rows / rows.sum(dim=1, keepdim=True)
    together = sinkhorn(cost, rows, columns, epsilon=0.1, tolerance=1e-10)
    assert together.shape == cost.shape
    for index, plan in enumerate(together):
        alone = sinkhorn(cost[index], rows[index], columns[index], epsilon=0.1, tolerance=1e-10)
        assert torch.allclose(plan, alone, atol=1e-8, rtol=0), KINDS[index]


@pytest.mark.parametrize("share", [0.3, 0.005])
def test_rows_and_columns_without_mass_are_left_out(share):
    cost, rows, columns = draw(40, 30, seed=12)
    cost[torch.rand(40, 30, generator=torch.Generator().manual_seed(1)) < 0.1] = math.inf
    rows[3] = columns[[0, 7]] = 0
    rows, columns = rows / rows.sum(), columns / columns.sum()
    plan = sinkhorn(cost, rows, columns, epsilon=share, tolerance=1e-10)
    assert not plan[3].any() and not plan[:, [0, 7]].any() and not plan[cost == math.inf].any()
    assert_marginals(plan, rows, columns, tolerance=1e-10)
    filled = sinkhorn(
        cost[rows > 0][:, columns > 0], rows[rows > 0], columns[columns > 0], epsilon=share, tolerance=1e-10
    )
    assert torch.allclose(plan[rows > 0][:, columns > 0], filled, atol=1e-12, rtol=0)


def test_totals_that_differ_by_rounding_are_made_equal():
    cost, rows, columns = draw(40, 6, seed=13)
    plan = sinkhorn(cost, rows, columns * (1 + 5e-7), epsilon=0.1, tolerance=1e-10)
    assert torch.allclose(plan, sinkhorn(cost, rows, columns, epsilon=0.1, tolerance=1e-10), atol=1e-9)


@pytest.mark.parametrize("shape", [(50, 9), (40, 40), (9, 50)])
@pytest.mark.parametrize("share", [0.05, 1e-3])
def test_float32_agrees_with_float64(shape, share):
    cost, rows, columns = draw(*shape, kind="geometry", seed=6)
    cost = cost.float().double()  # the same costs in both
    rows, columns = rows.float(), columns.float()
    single = sinkhorn(cost.float(), rows, columns, epsilon=share * spread(cost))
    double = sinkhorn(cost, rows.double(), columns.double(), epsilon=share * spread(cost))
    assert single.dtype == torch.float32 and double.dtype == torch.float64
    assert torch.allclose(single.double(), double, atol=1e-6, rtol=0)
    assert_marginals(single.double(), rows.double(), columns.double(), tolerance=2e-6)


def test_a_constant_added_to_the_costs_changes_nothing():
    cost, rows, columns = draw(40, 6, seed=7)
    plan = sinkhorn(cost, rows, columns, epsilon=0.05, tolerance=1e-11)
    for constant in (1e3, -1e3):
        assert torch.allclose(sinkhorn(cost + constant, rows, columns, epsilon=0.05, tolerance=1e-11), plan, atol=1e-9)


def test_order_does_not_matter():
    cost, rows, columns = draw(40, 6, seed=8)
    plan = sinkhorn(cost, rows, columns, epsilon=0.02, tolerance=1e-11)
    p, q = (torch.randperm(k, generator=torch.Generator().manual_seed(k)) for k in cost.shape)
    permuted = sinkhorn(cost[p][:, q], rows[p], columns[q], epsilon=0.02, tolerance=1e-11)
    assert torch.allclose(permuted, plan[p][:, q], atol=1e-9)
    assert torch.allclose(sinkhorn(cost.T, columns, rows, epsilon=0.02, tolerance=1e-11), plan.T, atol=1e-9)


def test_constant_costs_spread_the_mass_evenly():
    cost, rows, columns = draw(12, 5, kind="constant")
    assert torch.allclose(sinkhorn(cost, rows, columns, epsilon=0.1), torch.outer(rows, columns), atol=1e-7)


def test_large_problems_go_to_newton_and_start_on_a_sample(monkeypatch):
    cost, rows, columns = draw(4 * 4096 + 77, 6, kind="geometry", seed=9)
    rows[17] = 0.4  # no sample may miss it
    rows /= rows.sum()
    small = sinkhorn(cost, rows, columns, epsilon=0.1, tolerance=1e-10)
    monkeypatch.setattr(solving, "LARGEST_KERNEL", 1)
    large = sinkhorn(cost, rows, columns, epsilon=0.1, tolerance=1e-10)
    assert torch.allclose(large, small, atol=1e-9)
    assert float((large.sum(dim=1) - rows).abs().max()) < 1e-15  # the longer side, to rounding


def test_two_long_sides_are_scaled(monkeypatch):
    monkeypatch.setattr(solving, "LARGEST_NEWTON_SIDE", 10)
    cost, rows, columns = draw(60, 50, kind="geometry", seed=10)
    epsilon = 0.01 * spread(cost)
    plan = sinkhorn(cost, rows, columns, epsilon=epsilon, tolerance=1e-9)
    monkeypatch.undo()
    assert torch.allclose(plan, sinkhorn(cost, rows, columns, epsilon=epsilon, tolerance=1e-9), atol=1e-7)


def test_the_stages_of_newton_end_at_the_epsilon_wanted():
    assert schedule(1.0, 4.0) == schedule(0.2, 4.0) == [1.0]
    stages = schedule(12.0, 4.0)
    assert stages[0] == 12.0 and stages[-1] == 1.0 and len(stages) == 3


def test_it_says_when_it_has_not_converged():
    cost, rows, columns = draw(30, 30, kind="geometry", seed=11)
    with pytest.warns(TransportWarning, match=r"misses its marginals by .* after 1 iterations .*; raise epsilon or"):
        plan = sinkhorn(cost, rows, columns, epsilon=0.01, most_iterations=1)
    assert bool(torch.isfinite(plan).all())
    found = solve(check_problem(cost, rows, columns, epsilon=0.01), tolerance=1e-6, most_iterations=1)
    missed = (plan.sum(dim=1) - rows).abs().sum() + (plan.sum(dim=0) - columns).abs().sum()
    assert found.error == pytest.approx(float(missed), rel=1e-6) and found.error > 1e-6


def test_masses_that_the_allowed_cells_cannot_hold_are_told():
    cost = torch.tensor([[0.0, math.inf], [0.0, math.inf], [0.0, 0.0]], dtype=torch.float64)
    rows, columns = torch.tensor([0.4, 0.4, 0.2]), torch.tensor([0.3, 0.7])
    with pytest.warns(TransportWarning, match="the cells that are not forbidden can hold the masses"):
        plan = sinkhorn(cost, rows, columns, epsilon=0.1, most_iterations=300)
    assert bool(torch.isfinite(plan).all())


def test_the_plan_has_no_gradient():
    cost, rows, columns = draw(5, 4)
    assert not sinkhorn(cost.requires_grad_(), rows, columns, epsilon=0.1).requires_grad


def wrong(**changes):
    cost, rows, columns = draw(4, 3)
    call = {"cost": cost, "row_mass": rows, "column_mass": columns, "epsilon": 0.1} | changes
    return lambda: sinkhorn(**call)


def with_value(tensor, index, value):
    changed = tensor.clone()
    changed[index] = value
    return changed


COST, ROWS, COLUMNS = draw(4, 3)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (wrong(cost=COST[0]), r"cost has shape \(3,\), .*expected \(n, m\), \(n,\) and \(m,\), or \(B, n, m\)"),
        (wrong(row_mass=ROWS[:2]), r"row_mass \(2,\)"),
        (wrong(cost=COST[:0], row_mass=ROWS[:0]), "none empty"),
        (wrong(cost=COST.long()), "cost is torch.int64; expected a floating dtype"),
        (wrong(epsilon=0.0), "epsilon is 0.0; expected a number above 0"),
        (wrong(epsilon=math.nan), "epsilon is nan"),
        (wrong(tolerance=0.0), "tolerance is 0.0"),
        (wrong(most_iterations=0), "most_iterations 0"),
        (wrong(cost=with_value(COST, (2, 1), math.nan)), r"cost\[2, 1\] is nan; expected a number, or \+inf"),
        (wrong(cost=with_value(COST, (2, 1), -math.inf)), r"cost\[2, 1\] is -inf"),
        (wrong(cost=with_value(COST, 2, math.inf)), r"row 2 has mass and every cell .* forbidden"),
        (wrong(row_mass=with_value(ROWS, 3, -0.1)), r"row_mass\[3\] is -0.1.*at least 0"),
        (wrong(column_mass=with_value(COLUMNS, 1, math.nan)), r"column_mass\[1\] is nan"),
        (wrong(column_mass=0 * COLUMNS), "column_mass is zero everywhere"),
        (
            wrong(column_mass=1.01 * COLUMNS),
            "row_mass sums to 1.* column_mass to 1.01.*equal totals.*partial_transport",
        ),
    ],
)
def test_bad_input_is_named(call, message):
    with warnings.catch_warnings(), pytest.raises(InputError, match=message):
        call()
