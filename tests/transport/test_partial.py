"""Plans of a part of the mass: what they carry, what they leave, POT, and labels that come out right."""

import math

import pytest
import torch
from scipy.optimize import linprog

from truepair.errors import InputError
from truepair.transport import partial_transport, sinkhorn


def draw(n, m, seed=0):
    generator = torch.Generator().manual_seed(seed)
    cost = torch.rand(n, m, generator=generator, dtype=torch.float64)
    rows, columns = (torch.rand(k, generator=generator, dtype=torch.float64) + 0.05 for k in (n, m))
    return cost, rows / rows.sum(), columns / columns.sum()


def assert_partial(plan, rows, columns, mass):
    assert bool((plan >= 0).all())
    slack = 1e-6 * float(rows.sum() + columns.sum())
    assert float(plan.sum()) == pytest.approx(mass, abs=slack)
    assert float((plan.sum(dim=1) - rows).clamp(min=0).sum()) <= slack
    assert float((plan.sum(dim=0) - columns).clamp(min=0).sum()) <= slack


@pytest.mark.parametrize("shape", [(40, 7), (7, 40), (30, 30), (1, 4), (4, 1), (1, 1), (250, 200)])
@pytest.mark.parametrize("mass", [1e-3, 0.2, 0.8, 1.0])
@pytest.mark.parametrize("epsilon", [0.05, 1e-3])
def test_it_carries_the_mass_and_exceeds_no_marginal(shape, mass, epsilon):
    cost, rows, columns = draw(*shape, seed=sum(shape))
    for shifted in (cost, cost - 1e3):
        assert_partial(partial_transport(shifted, rows, columns, mass=mass, epsilon=epsilon), rows, columns, mass)


@pytest.mark.parametrize("totals", [(1.0, 3.0), (3.0, 1.0), (2.0, 2.0)])
@pytest.mark.parametrize("mass", [0.5, 1.0])
def test_totals_may_differ(totals, mass):
    cost, rows, columns = draw(20, 8, seed=1)
    rows, columns = totals[0] * rows, totals[1] * columns
    assert_partial(partial_transport(cost, rows, columns, mass=mass, epsilon=0.05), rows, columns, mass)


def test_it_solves_the_problem_with_the_border_written_out():
    cost, rows, columns = draw(9, 4, seed=2)
    bordered = torch.zeros(10, 5, dtype=torch.float64)
    bordered[:9, :4], bordered[9, 4] = cost, math.inf
    rest = torch.tensor([0.7], dtype=torch.float64)
    whole = sinkhorn(bordered, torch.cat([rows, rest]), torch.cat([columns, rest]), epsilon=0.1, tolerance=1e-11)
    plan = partial_transport(cost, rows, columns, mass=0.3, epsilon=0.1, tolerance=1e-11)
    assert torch.allclose(plan, whole[:9, :4], atol=1e-9)


def test_all_of_the_mass_is_the_balanced_plan():
    cost, rows, columns = draw(20, 8, seed=3)
    balanced = sinkhorn(cost, rows, columns, epsilon=0.05, tolerance=1e-11)
    for mass in (1.0, 1 + 1e-9, 1 - 1e-12):
        plan = partial_transport(cost, rows, columns, mass=mass, epsilon=0.05, tolerance=1e-11)
        assert torch.allclose(plan, balanced, atol=1e-8)


@pytest.mark.parametrize("mass", [0.3, 0.7, 0.95])
@pytest.mark.parametrize("shape", [(20, 6), (15, 15)])
def test_with_hardly_any_entropy_it_is_pots_partial_plan(shape, mass):
    partial = pytest.importorskip("ot.partial", reason="POT is not installed (pip install POT)")
    cost, rows, columns = draw(*shape, seed=4)
    expected = torch.from_numpy(partial.partial_wasserstein(rows.numpy(), columns.numpy(), cost.numpy(), m=mass))
    plan = partial_transport(cost, rows, columns, mass=mass, epsilon=1e-4, tolerance=1e-9)
    assert float((plan * cost).sum()) == pytest.approx(float((expected * cost).sum()), abs=1e-3)
    assert float((plan - expected).abs().max()) < 5e-3  # random costs: the exact plan is unique


def test_a_perfect_cost_gives_the_true_labels():
    labels = torch.randint(0, 5, (60,), generator=torch.Generator().manual_seed(5))
    true = torch.nn.functional.one_hot(labels, 5).double()
    rows, columns = torch.full((60,), 1 / 60, dtype=torch.float64), true.mean(dim=0)
    for mass in (0.3, 0.8, 1.0):
        plan = partial_transport(1 - true, rows, columns, mass=mass, epsilon=0.02)
        assert bool((plan.argmax(dim=1) == labels).all())
        assert float((plan * (1 - true)).sum()) < 1e-12
    assert torch.allclose(60 * plan, true, atol=1e-9)  # at mass 1


def test_a_batch_is_solved_as_its_problems_are_one_by_one():
    drawn = [draw(20, 12, seed=seed) for seed in range(3)]
    cost, rows, columns = (torch.stack(parts) for parts in zip(*drawn, strict=True))
    rows[1] *= 2
    together = partial_transport(cost, rows, columns, mass=1.0, epsilon=0.05, tolerance=1e-10)
    for index, plan in enumerate(together):
        alone = partial_transport(cost[index], rows[index], columns[index], mass=1.0, epsilon=0.05, tolerance=1e-10)
        assert torch.allclose(plan, alone, atol=1e-8)


@pytest.mark.parametrize("surplus_cost", [0.0, 0.3])
def test_a_surplus_is_the_corner_of_the_border(surplus_cost):
    cost, rows, columns = draw(9, 4, seed=8)
    cost = cost - 0.5
    bordered = torch.zeros(10, 5, dtype=torch.float64)
    bordered[:9, :4], bordered[9, 4] = cost, surplus_cost
    rest = torch.tensor([0.7], dtype=torch.float64)
    whole = sinkhorn(bordered, torch.cat([rows, rest]), torch.cat([columns, rest]), epsilon=0.1, tolerance=1e-11)
    found = partial_transport(cost, rows, columns, mass=0.3, epsilon=0.1, surplus_cost=surplus_cost, tolerance=1e-11)
    assert torch.allclose(found, whole[:9, :4], atol=1e-9)
    assert float(found.sum()) > 0.31


@pytest.mark.parametrize(("level", "least"), [(-0.5, 0.2), (-2.0, 0.2), (1.0, 0.2), (-0.5, 1.0)])
def test_with_hardly_any_entropy_a_free_surplus_is_what_the_linear_program_moves(level, least):
    """UOT-RCL, eq. 10–13: the least Σ Y C with a mass of s + ε, where ε ≥ 0 is free."""
    cost, rows, columns = draw(15, 5, seed=9)
    cost = cost + level
    sums = [
        torch.eye(15, dtype=torch.float64).repeat_interleave(5, dim=1),
        torch.eye(5, dtype=torch.float64).repeat(1, 15),
    ]
    exact = linprog(
        cost.flatten().numpy(),
        A_ub=torch.cat([*sums, -torch.ones(1, 75, dtype=torch.float64)]).numpy(),
        b_ub=torch.cat([rows, columns, torch.tensor([-least], dtype=torch.float64)]).numpy(),
    )
    plan = partial_transport(cost, rows, columns, mass=least, epsilon=1e-4, surplus_cost=0.0, tolerance=1e-9)
    assert float((plan * cost).sum()) == pytest.approx(exact.fun, abs=1e-3)
    assert float(plan.sum()) == pytest.approx(exact.x.sum(), abs=1e-3)


def test_forbidden_rows_stay_behind_and_zero_masses_get_nothing():
    cost, rows, columns = draw(20, 6, seed=6)
    cost[4] = math.inf
    rows[7] = columns[2] = 0
    plan = partial_transport(cost, rows, columns, mass=0.5, epsilon=0.05)
    assert_partial(plan, rows, columns, 0.5)
    assert not plan[4].any() and not plan[7].any() and not plan[:, 2].any()


def test_float32_agrees_with_float64():
    cost, rows, columns = draw(50, 9, seed=7)
    cost, rows, columns = cost.float(), rows.float(), columns.float()
    single = partial_transport(cost, rows, columns, mass=0.6, epsilon=0.01)
    double = partial_transport(cost.double(), rows.double(), columns.double(), mass=0.6, epsilon=0.01)
    assert single.dtype == torch.float32
    assert torch.allclose(single.double(), double, atol=1e-7)


def with_forbidden_columns(cost):
    allowed = torch.tensor([False, False, True])
    return cost.masked_fill(~allowed, math.inf)


COST, ROWS, COLUMNS = draw(4, 3)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"mass": 0.0}, "mass is 0.0; expected above 0 and at most 1"),
        ({"mass": 1.01}, "mass is 1.01"),
        ({"mass": math.nan}, "mass is nan"),
        ({"surplus_cost": math.nan}, "surplus_cost is nan"),
        ({"surplus_cost": -math.inf}, "surplus_cost is -inf"),
        ({"row_mass": 0.4 * ROWS}, "mass is 0.5; expected above 0 and at most 0.4"),
        ({"epsilon": -1.0}, "epsilon is -1.0"),
        ({"cost": torch.full_like(COST, math.inf)}, "mass is 0.5, but rows with a cell that is not forbidden hold 0"),
        ({"cost": with_forbidden_columns(COST), "mass": 0.9}, "mass is 0.9, but columns with a cell that is not"),
    ],
)
def test_bad_input_is_named(changes, message):
    call = {"cost": COST, "row_mass": ROWS, "column_mass": COLUMNS, "mass": 0.5, "epsilon": 0.1} | changes
    with pytest.raises(InputError, match=message):
        partial_transport(**call)
