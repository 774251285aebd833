"""Entropic optimal transport of a chosen part of the mass: the cheapest part goes, the rest stays."""

from __future__ import annotations

from functools import partial

import torch
from torch import Tensor

from truepair.errors import InputError
from truepair.transport.balanced import MOST_ITERATIONS, plan_of
from truepair.transport.problem import Problem, check_allowed, check_problem

ROUNDING = 1e-6
"""How far the mass may exceed a total, as a share of it, and still means all of it."""


@torch.no_grad()
def partial_transport(
    cost: Tensor,
    row_mass: Tensor,
    column_mass: Tensor,
    *,
    mass: float,
    epsilon: float,
    surplus_cost: float = torch.inf,
    tolerance: float = 1e-6,
    most_iterations: int = MOST_ITERATIONS,
) -> Tensor:
    """The plan that moves `mass` and no more than there is of any row or column; it has no gradient.

    A row and a column of cost zero take what stays behind, the cell where they cross is forbidden, and the plan is the
    upper left block of the balanced one (Chapel et al. 2020, "Partial optimal transport with applications on
    positive-unlabeled learning", section 3.1). UOT-RCL prints this cell with cost zero (eq. 10–14), and then `mass` is
    the least that moves, not all: each cell of a cost below zero draws more, and so does entropy. Shape and dtype are
    those of the cost.

    Args:
        cost: (n, m), or (B, n, m) for B problems one after another. +inf forbids a cell; a row or column of them stays
            behind whole. Unless there is a surplus, a constant added to the costs changes nothing.
        row_mass: (n,) or (B, n), ≥ 0, not all zero.
        column_mass: (m,) or (B, m); the totals may differ.
        mass: above 0 and at most the smaller total.
        surplus_cost: of that cell, a unit of mass beyond `mass`; +inf: none moves beyond.
        epsilon, tolerance, most_iterations: as in `sinkhorn`; the error is that of the problem with row and column.

    Raises:
        InputError: as `sinkhorn` does, but for totals that differ, and where `mass` is out of range, or more than the
            rows or columns hold that have a cell which is not forbidden, or the surplus costs NaN or −inf.
    """
    if cost.ndim == 3 and len(cost) == len(row_mass) == len(column_mass) > 0:
        one = partial(
            partial_transport,
            mass=mass,
            epsilon=epsilon,
            surplus_cost=surplus_cost,
            tolerance=tolerance,
            most_iterations=most_iterations,
        )
        return torch.stack([one(*parts) for parts in zip(cost, row_mass, column_mass, strict=True)])
    inner = check_problem(cost, row_mass, column_mass, epsilon=epsilon, equal_totals=False)
    row_total, column_total = inner.rows.sum(), inner.columns.sum()
    least = float(torch.minimum(row_total, column_total))
    if not 0 < mass <= least * (1 + ROUNDING):
        raise InputError(f"mass is {mass}; expected above 0 and at most {least}, the smaller total of the masses")
    if not surplus_cost > -torch.inf:
        raise InputError(f"surplus_cost is {surplus_cost}; expected a number, or +inf for no surplus")
    _check_room(inner, mass)
    rows = torch.cat([inner.rows, _left(column_total, mass)])
    columns = torch.cat([inner.columns, _left(row_total, mass)])
    # What is left after rounding may differ by a hair on the two sides.
    problem = Problem(_with_border(inner.cost, surplus_cost), rows, columns * (rows.sum() / columns.sum()), epsilon)
    check_allowed(problem)
    return plan_of(problem, tolerance=tolerance, most_iterations=most_iterations)[:-1, :-1].to(cost.device)


def _check_room(problem: Problem, mass: float) -> None:
    if float(problem.cost.amax()) < torch.inf:
        return
    allowed = problem.cost < torch.inf
    for name, masses, usable in (
        ("rows", problem.rows, allowed.any(dim=1)),
        ("columns", problem.columns, allowed.any(dim=0)),
    ):
        room = float((masses * usable).sum())
        if mass > room * (1 + ROUNDING):
            raise InputError(
                f"mass is {mass}, but {name} with a cell that is not forbidden hold {room:.6g}; allow more cells, or "
                "move less"
            )


def _left(total: Tensor, mass: float) -> Tensor:
    """What stays behind, (1,); 0 where it is rounding."""
    left = total - mass
    return torch.where(left > ROUNDING * 1e-3 * total, left, 0.0)[None]


def _with_border(cost: Tensor, surplus_cost: float) -> Tensor:
    n, m = cost.shape
    bordered = cost.new_zeros(n + 1, m + 1)
    # Without a surplus the border may cost as much as the cheapest cell, not zero: the same plan, better in float32.
    bordered[:n, :m] = cost - cost.amin() if surplus_cost == torch.inf else cost
    bordered[n, m] = surplus_cost
    return bordered
