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
    """Where a solver came to: the plan (n, m), the potential (m,) of the columns in units of ε, the steps taken, and
    Σ |marginal − wanted| over rows and columns as a share of the mass.
    """

    plan: Tensor
    potential: Tensor
    iterations: int
    error: float


@dataclass(frozen=True)
class Problem:
    """One checked problem: the cost (n, m), finite or +inf, in the dtype that was given, masses (n,) and (m,) ≥ 0 of
    equal totals in float64, and ε > 0.
    """

    cost: Tensor
    rows: Tensor
    columns: Tensor
    epsilon: float


def check_problem(
    cost: Tensor, row_mass: Tensor, column_mass: Tensor, *, epsilon: float, equal_totals: bool = True
) -> Problem:
    """The problem, its masses in float64; on the CPU where the device has no float64. Errors are those of `sinkhorn`.

    Unless `equal_totals` is off, the columns are scaled to the very total of the rows, and every row and column with
    mass needs a cell to put it into.
    """
    if cost.ndim != 2 or (row_mass.shape, column_mass.shape) != (cost.shape[:1], cost.shape[1:]) or not cost.numel():
        raise InputError(
            f"cost has shape {tuple(cost.shape)}, row_mass {tuple(row_mass.shape)}, column_mass "
            f"{tuple(column_mass.shape)}; expected (n, m), (n,) and (m,), or (B, n, m), (B, n) and (B, m), none empty"
        )
    for name, values in (("cost", cost), ("row_mass", row_mass), ("column_mass", column_mass)):
        if not values.is_floating_point():
            raise InputError(f"{name} is {values.dtype}; expected a floating dtype")
    if not 0 < epsilon < math.inf:
        raise InputError(f"epsilon is {epsilon}; expected a number above 0, such as 0.05 of the range of the costs")
    cost = cost.detach()
    cost = cost.cpu() if cost.device.type == "mps" else cost
    lowest = float(cost.amin())  # amin hands NaN on and needs no second array
    if math.isnan(lowest) or lowest == -math.inf:
        place = (cost.isnan() | (cost == -torch.inf)).nonzero()[0].tolist()
        raise InputError(
            f"cost{place} is {cost[tuple(place)].item()}; expected a number, or +inf where a cell is forbidden"
        )
    rows, columns = (masses.detach().to(cost.device).double() for masses in (row_mass, column_mass))
    for name, masses in (("row_mass", rows), ("column_mass", columns)):
        bad = ~((masses >= 0) & (masses < torch.inf))
        if bool(bad.any()):
            index = int(bad.nonzero()[0])
            raise InputError(f"{name}[{index}] is {masses[index].item()}; expected a finite mass of at least 0")
        if not bool(masses.any()):
            raise InputError(f"{name} is zero everywhere; expected some mass to transport")
    if not equal_totals:
        return Problem(cost, rows, columns, epsilon)
    total, other = rows.sum(), columns.sum()
    if float((total - other).abs()) > EQUAL_TOTALS * float(total):
        raise InputError(
            f"row_mass sums to {total.item()} and column_mass to {other.item()}; expected equal totals. "
            "Divide each by its sum, or use partial_transport"
        )
    problem = Problem(cost, rows, columns * (total / other), epsilon)
    check_allowed(problem)
    return problem


def check_allowed(problem: Problem) -> None:
    """Refuse, with an InputError that names the first, a row or column that has mass and nowhere to put it."""
    if float(problem.cost.amax()) < math.inf:
        return
    rows, columns = problem.rows > 0, problem.columns > 0
    usable = (problem.cost < torch.inf) & rows[:, None] & columns
    for name, filled, allowed in (("row", rows, usable.any(dim=1)), ("column", columns, usable.any(dim=0))):
        stuck = filled & ~allowed
        if bool(stuck.any()):
            raise InputError(
                f"{name} {int(stuck.nonzero()[0])} has mass and every cell it could go to is forbidden (cost +inf) "
                "or without mass; allow one, or take its mass away"
            )
