"""Entropic optimal transport of all the mass."""

from __future__ import annotations

import torch
from torch import Tensor

from truepair.transport.problem import check_problem
from truepair.transport.solve import solve, warn_unless_converged

MOST_ITERATIONS = 10_000


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

    It minimises Σ P (C + ε (log P − 1)) over P ≥ 0 with these marginals (Cuturi 2013; UOT-RCL, eq. 18 for the batch).
    It is computed in float64 where the device has it, and the longer side has its masses to rounding. Most problems
    are solved by Sinkhorn's iteration; where that is slow, and the shorter side is at most 512, by Newton's method.
    The latter needs about 20 MB beside cost and plan however long the other side is; the former two more matrices.

    Args:
        cost: (n, m) or a batch (B, n, m). +inf forbids a cell. A constant added to it changes nothing.
        row_mass: (n,) or (B, n), ≥ 0, not all zero.
        column_mass: (m,) or (B, m), of the same total.
        epsilon: > 0, in units of the cost. The smaller, the fewer cells share the mass, and the longer it takes.
        tolerance: the largest Σ |marginal − wanted| over rows and columns, as a share of the mass.
        most_iterations: steps of all solvers; then the plan is what it is, and a `TransportWarning` says so.

    Raises:
        InputError: a shape or dtype does not fit, ε ≤ 0, a cost is NaN or −inf, a mass is negative or not finite, all
            are zero, the totals differ, or a row or column with mass has all its cells forbidden.

    Example:
        >>> cost, mass = torch.tensor([[0.0, 1.0], [1.0, 0.0]]), torch.ones(2)
        >>> sinkhorn(cost, mass, mass, epsilon=0.1).round(decimals=3)
        tensor([[1., 0.],
                [0., 1.]])

    See Also:
        partial_transport: where only a part of the mass is to move.
    """
    problem = check_problem(cost, row_mass, column_mass, epsilon=epsilon)
    solution = solve(problem, tolerance=tolerance, most_iterations=most_iterations)
    warn_unless_converged(solution, tolerance)
    return solution.plan.reshape(cost.shape)
