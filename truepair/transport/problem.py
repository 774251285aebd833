"""What a transport problem must be like, and what a solution tells besides the plan."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from truepair.errors import InputError

EQUAL_TOTALS = 1e-6
"""How far the totals of two marginals may differ, as a share: many times what float32 masses lose in rounding."""


class TransportWarning(RuntimeWarning):
    """A plan misses its marginals by more than was asked for."""


@dataclass(frozen=True)
class Solution:
    """A plan and how it was come by.

    Attributes:
        plan: (n, m) or (B, n, m), ≥ 0.
        iterations: steps of all solvers together; of a batch, those of the problem that took most.
        error: Σ |marginal − wanted| over rows and columns, as a share of the mass; of a batch, the largest.
        converged: whether the error is within the tolerance.
    """

    plan: Tensor
    iterations: int
    error: float
    converged: bool


@dataclass(frozen=True)
class Problem:
    """A batch of B ≥ 1 checked problems.

    Attributes:
        cost: (B, n, m), finite or +inf, in the dtype that was given.
        rows, columns: (B, n) and (B, m), ≥ 0, of equal totals, in the dtype that the solvers compute in.
        epsilon: > 0.
    """

    cost: Tensor
    rows: Tensor
    columns: Tensor
    epsilon: float

    def only(self, index: int) -> Problem:
        """Problem `index` of the batch, as a batch of one."""
        one = slice(index, index + 1)
        return Problem(self.cost[one], self.rows[one], self.columns[one], self.epsilon)


def check_problem(
    cost: Tensor, row_mass: Tensor, column_mass: Tensor, *, epsilon: float, equal_totals: bool = True
) -> Problem:
    """The problem with its batch dimension, in float64 where the device has it.

    Unless `equal_totals` is off, the columns are scaled to the very total of the rows, and every row and column with
    mass needs a cell to put it into.

    Raises:
        InputError: a shape, a dtype or ε does not fit, a cost is NaN or −inf, a mass is negative or not finite, all
            masses are zero, the totals differ, or a row or column with mass has no cell to put it into.
    """
    _check_shapes(cost, row_mass, column_mass)
    if not 0 < epsilon < math.inf:
        raise InputError(f"epsilon is {epsilon}; expected a number above 0, such as 0.05 of the range of the costs")
    costs = cost.detach().reshape(-1, *cost.shape[-2:])
    precise = torch.float64 if cost.device.type != "mps" else torch.float32
    rows = row_mass.detach().to(costs.device, precise).reshape(len(costs), -1)
    columns = column_mass.detach().to(costs.device, precise).reshape(len(costs), -1)
    _check_costs(costs)
    _check_masses("row_mass", rows)
    _check_masses("column_mass", columns)
    totals, others = rows.sum(dim=1, keepdim=True), columns.sum(dim=1, keepdim=True)
    if equal_totals:
        _check_totals(totals, others)
        columns = columns * (totals / others)
    problem = Problem(costs, rows, columns, epsilon)
    if equal_totals:
        check_allowed(problem)
    return problem


def _check_shapes(cost: Tensor, row_mass: Tensor, column_mass: Tensor) -> None:
    wanted = (cost.shape[:-1], cost.shape[:-2] + cost.shape[-1:])
    fits = cost.ndim in (2, 3) and (row_mass.shape, column_mass.shape) == wanted and cost.numel() > 0
    if not fits:
        raise InputError(
            f"cost has shape {tuple(cost.shape)}, row_mass {tuple(row_mass.shape)}, column_mass "
            f"{tuple(column_mass.shape)}; expected (n, m), (n,) and (m,), or (B, n, m), (B, n) and (B, m), none empty"
        )
    for name, values in (("cost", cost), ("row_mass", row_mass), ("column_mass", column_mass)):
        if not values.is_floating_point():
            raise InputError(f"{name} is {values.dtype}; expected a floating dtype")


def _check_costs(costs: Tensor) -> None:
    # amin hands NaN on and needs no second array.
    lowest = float(costs.amin())
    if math.isnan(lowest) or lowest == -math.inf:
        bad = (costs.isnan() | (costs == -torch.inf)).nonzero()[0].tolist()
        raise InputError(
            f"cost{bad[1:] if len(costs) == 1 else bad} is {costs[tuple(bad)].item()}; expected a number, "
            "or +inf where a cell is forbidden"
        )


def _check_masses(name: str, masses: Tensor) -> None:
    bad = ~((masses >= 0) & (masses < torch.inf))
    if bool(bad.any()):
        place = bad.nonzero()[0].tolist()
        raise InputError(
            f"{name}{place[1:] if len(masses) == 1 else place} is {masses[tuple(place)].item()}; expected a finite "
            "mass of at least 0"
        )
    if not bool((masses.sum(dim=1) > 0).all()):
        raise InputError(f"{name} is zero everywhere; expected some mass to transport")


def _check_totals(rows: Tensor, columns: Tensor) -> None:
    differ = (rows - columns).abs() > EQUAL_TOTALS * rows
    if bool(differ.any()):
        which = int(differ.nonzero()[0, 0])
        raise InputError(
            f"row_mass sums to {rows[which].item()} and column_mass to {columns[which].item()}; expected equal totals. "
            "Divide each by its sum, or use partial_transport"
        )


def check_allowed(problem: Problem) -> None:
    """Refuse a problem in which a row or column has mass and nowhere to put it.

    Raises:
        InputError: it does; the message names the first.
    """
    if float(problem.cost.amax()) < math.inf:
        return
    rows, columns = problem.rows > 0, problem.columns > 0
    usable = (problem.cost < torch.inf) & rows[:, :, None] & columns[:, None, :]
    for name, filled, allowed in (("row", rows, usable.any(dim=2)), ("column", columns, usable.any(dim=1))):
        stuck = filled & ~allowed
        if bool(stuck.any()):
            raise InputError(
                f"{name} {int(stuck.nonzero()[0, 1])} has mass and every cell it could go to is forbidden (cost +inf) "
                "or without mass; allow one, or take its mass away"
            )
