"""Entropic optimal transport of all the mass."""

from __future__ import annotations

import warnings
from dataclasses import replace
from functools import partial

import torch
from torch import Tensor

from truepair.errors import InputError
from truepair.transport.newton import newton
from truepair.transport.problem import Problem, Solution, TransportWarning, check_problem
from truepair.transport.scaling import scale

MOST_ITERATIONS = 10_000
LARGEST_NEWTON_SIDE = 513  # 512 and the extra column of a partial problem
LARGEST_KERNEL = 2**20  # numbers; beyond, Newton's blocks are quicker than a kernel that leaves the cache
QUICK_STEPS = 100
CLOSE = 0.2  # an error from which Newton needs no stages: up to 2.5 times faster; from 0.4 on, some are slower


@torch.no_grad()
def sinkhorn(
    cost: Tensor,
    row_mass: Tensor,
    column_mass: Tensor,
    *,
    epsilon: float,
    tolerance: float = 1e-6,
    most_iterations: int = MOST_ITERATIONS,
) -> Tensor:
    """The plan that moves the row masses to the column masses, in the shape and dtype of the cost; it has no gradient.

    It minimises Σ P (C + ε (log P − 1)) over P ≥ 0 with these marginals (Cuturi 2013; UOT-RCL, eq. 17 for the batch).
    It is computed in float64, and the longer side has its masses to rounding. Scaling is done in 10 to 30 iterations
    where ε is 0.05 of the range of the costs; from 0.01 down it takes hundreds to many thousands, and Newton's method
    a dozen, where the shorter side is at most 512. The latter needs about 20 MB beside cost and plan however long the
    other side is; the former two more matrices.

    Args:
        cost: (n, m), or (B, n, m) for B problems one after another. +inf forbids a cell. A constant added to it changes
            nothing.
        row_mass: (n,) or (B, n), ≥ 0, not all zero.
        column_mass: (m,) or (B, m), of the same total.
        epsilon: > 0, in units of the cost. The smaller, the fewer cells share the mass, and the longer it takes.
        tolerance: the largest Σ |marginal − wanted| over rows and columns, as a share of the mass.
        most_iterations: steps of all solvers; then the plan is what it is, and a `TransportWarning` says so.

    Raises:
        InputError: a shape or dtype does not fit, ε, the tolerance or the iterations are not above 0, a cost is NaN or
            −inf, a mass is negative or not finite, all are zero, the totals differ, or a row or column with mass has
            all its cells forbidden.

    Example:
        >>> cost, mass = torch.tensor([[0.0, 1.0], [1.0, 0.0]]), torch.ones(2)
        >>> sinkhorn(cost, mass, mass, epsilon=0.1).round(decimals=3)
        tensor([[1., 0.],
                [0., 1.]])

    See Also:
        partial_transport: where only a part of the mass is to move.
    """
    if cost.ndim == 3 and len(cost) == len(row_mass) == len(column_mass) > 0:
        one = partial(sinkhorn, epsilon=epsilon, tolerance=tolerance, most_iterations=most_iterations)
        return torch.stack([one(*parts) for parts in zip(cost, row_mass, column_mass, strict=True)])
    problem = check_problem(cost, row_mass, column_mass, epsilon=epsilon)
    return plan_of(problem, tolerance=tolerance, most_iterations=most_iterations).to(cost.device)


def plan_of(problem: Problem, *, tolerance: float, most_iterations: int) -> Tensor:
    """The plan of a checked problem, (n, m) in the dtype of the costs; a warning where it misses its masses."""
    if not tolerance > 0 or most_iterations < 1:
        raise InputError(f"tolerance is {tolerance}, most_iterations {most_iterations}; expected both above 0")
    rows, columns = problem.rows > 0, problem.columns > 0
    if bool(rows.all() & columns.all()):
        solution = solve(problem, tolerance=tolerance, most_iterations=most_iterations)
        plan = solution.plan.to(problem.cost.dtype)
    else:
        filled = Problem(problem.cost[rows][:, columns], problem.rows[rows], problem.columns[columns], problem.epsilon)
        solution = solve(filled, tolerance=tolerance, most_iterations=most_iterations)
        plan = torch.zeros_like(problem.cost)
        plan[rows.nonzero(), columns.nonzero().T] = solution.plan.to(plan)
    if solution.error > tolerance:
        warnings.warn(
            f"the plan misses its marginals by {solution.error:.1e} of the mass after {solution.iterations} "
            f"iterations (tolerance {tolerance:.1e}); raise epsilon or most_iterations, and see that the cells that "
            "are not forbidden can hold the masses",
            TransportWarning,
            stacklevel=3,
        )
    return plan


def solve(problem: Problem, *, tolerance: float, most_iterations: int) -> Solution:
    """Scaling while it is quick, then Newton, then scaling for as long as it takes; all masses are above 0."""
    n, m = problem.cost.shape
    if n < m:
        turned = Problem(problem.cost.mT, problem.columns, problem.rows, problem.epsilon)
        found = solve(turned, tolerance=tolerance, most_iterations=most_iterations)
        return replace(found, plan=found.plan.mT)
    if m > LARGEST_NEWTON_SIDE:
        return scale(problem, tolerance=tolerance, most_iterations=most_iterations)
    start, done = None, 0
    if n * m <= LARGEST_KERNEL:
        most = min(QUICK_STEPS, most_iterations)
        quick = scale(problem, tolerance=tolerance, most_iterations=most, hopeful=False)
        start, done = quick.potential if quick.error <= CLOSE else None, quick.iterations
        if quick.error <= tolerance or done >= most_iterations:
            return quick
    found = newton(problem, start, tolerance=tolerance, most_steps=most_iterations - done)
    done += found.iterations
    if found.error > tolerance and done < most_iterations:
        slow = scale(problem, tolerance=tolerance, most_iterations=most_iterations - done)
        done += slow.iterations
        found = slow if slow.error <= found.error else found
    return replace(found, iterations=done)
