"""Newton's method on the semi-dual: one potential per column, those of the many rows eliminated in closed form.

The plan of column potentials ψ (in units of ε) is P_ij = a_i softmax_j(ψ_j − C_ij/ε), so every row has its mass. What
is left is to raise the concave function Σ_j b_j ψ_j − Σ_i a_i logsumexp_j(ψ_j − C_ij/ε) of m numbers, whose gradient
is b − Σ_i P_i and whose Hessian is −(diag(Σ_i P_i) − Σ_i P_i P_iᵀ/a_i) (Cuturi and Peyré 2018, "Semidual regularized
optimal transport"). All sums run over blocks of rows in float64: besides the costs, the working memory is a few
blocks of `BLOCK` numbers and a few m × m matrices, about 20 MB and never a second matrix of the costs' size.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

import torch
from torch import Tensor

from truepair.transport.problem import Problem, Solution

BLOCK = 2**19  # numbers: 4 MB in float64
ARMIJO = 1e-4
SHORTEST_STEP = 2.0**-12
ROUNDING = 1e-13
LARGEST_DAMPING = 1e8
FIRST_SHARE, FACTOR = 1 / 8, 4.0  # the first ε as a share of the spread of the costs, and how it falls
STAGE_TOLERANCE, STAGE_STEPS, LAST_STEPS = 1e-2, 25, 100
SAMPLE = 4096  # rows for the stages of problems of four times as many and more
HEAVY = 16.0  # times the mean mass: a row that no sample may miss


class _Survey(NamedTuple):
    """What one pass over the costs tells about some potentials."""

    potential: Tensor
    value: float
    column_sums: Tensor
    gram: Tensor


def newton(problem: Problem, start: Tensor | None, *, tolerance: float, most_steps: int) -> Solution:
    """The plan of a problem of at least as many rows as columns, all with mass.

    Args:
        start: (m,) column potentials in units of ε, near the solution. None: ε falls to the one wanted in stages,
            those of long problems on a sample of the rows.
        tolerance: of the error. It ends early where no step raises the function.
        most_steps: of all stages together.
    """
    done = 0
    if start is None:
        start = torch.zeros_like(problem.columns)
        sample = _sample(problem)
        factors = schedule(_spread(problem.cost) / problem.epsilon * FIRST_SHARE, FACTOR)
        for factor in factors[:-1] if sample is problem else factors:
            stage = replace(sample, epsilon=problem.epsilon * factor)
            steps = min(STAGE_STEPS, most_steps - done)
            found, used, _ = _maximise(stage, _balanced_columns(stage, start / factor), STAGE_TOLERANCE, steps)
            start, done = found * factor, done + used
        start = _balanced_columns(problem, start)
    potential, used, error = _maximise(problem, start, tolerance, min(LAST_STEPS, most_steps - done))
    plan = torch.empty_like(problem.cost)
    for block, x, top in _blocks(problem, potential):
        x.sub_(top).exp_()
        plan[block] = x.mul_((problem.rows[block, None]) / x.sum(dim=1, keepdim=True))
    return Solution(plan, potential, done + used, error)


def schedule(steepness: float, factor: float) -> list[float]:
    """Falling multiples of ε that end at 1: from `steepness`, each about a `factor`th of the one before."""
    if steepness <= 1:
        return [1.0]
    stages = math.ceil(math.log(steepness) / math.log(factor))
    return [steepness ** (1 - stage / stages) for stage in range(stages)] + [1.0]


def _sample(problem: Problem) -> Problem:
    """The problem itself, or one of about `SAMPLE` of its rows: the heavy ones, and of the others every so many."""
    count = len(problem.rows)
    if count < 4 * SAMPLE:
        return problem
    heavy = problem.rows > HEAVY * problem.rows.mean()
    chosen = torch.zeros_like(heavy)
    chosen[:: count // SAMPLE] = True
    chosen &= ~heavy
    cost, rows = problem.cost[chosen | heavy], problem.rows.clone()
    if not bool(chosen.any()) or not bool((cost < torch.inf).any(dim=0).all()):
        return problem
    rows[chosen] *= rows[~heavy].sum() / rows[chosen].sum()
    return Problem(cost, rows[chosen | heavy], problem.columns, problem.epsilon)


def _maximise(problem: Problem, start: Tensor, tolerance: float, most_steps: int) -> tuple[Tensor, int, float]:
    """Potentials (m,) after damped Newton steps, how many, and the error."""
    total = float(problem.rows.sum())
    now, step = _survey(problem, start), 0
    while True:
        error = float((problem.columns - now.column_sums).abs().sum()) / total
        if error <= tolerance or step == most_steps:
            return now.potential, step, error
        after = _climb(problem, now, damping=min(error, 1.0) * 1e-3)
        if after is None:
            return now.potential, step, error
        now, step = after, step + 1


def _climb(problem: Problem, now: _Survey, damping: float) -> _Survey | None:
    gradient = problem.columns - now.column_sums
    distance = float(gradient.abs().sum())
    direction = _direction(problem, now, gradient, damping)
    if direction is None:
        return None
    slope = float(gradient @ direction)
    length = 1.0
    slack = ROUNDING * (1 + abs(now.value))
    while length >= SHORTEST_STEP:
        after = _survey(problem, now.potential + length * direction)
        left = float((problem.columns - after.column_sums).abs().sum())
        if after.value >= now.value + ARMIJO * length * slope + slack or left <= 0.9 * distance:
            return after
        length /= 2
    return None


def _direction(problem: Problem, now: _Survey, gradient: Tensor, damping: float) -> Tensor | None:
    """The Newton direction, with as much damping as makes the matrix safely positive."""
    hessian = torch.diag(now.column_sums) - now.gram
    # A constant added to all potentials changes nothing; this pins it.
    hessian += float(problem.columns.mean()) / len(gradient)
    damping = max(damping, 1e-14)
    while damping <= LARGEST_DAMPING:
        factor, failed = torch.linalg.cholesky_ex(hessian + torch.diag(damping * problem.columns))
        if not int(failed):
            return torch.cholesky_solve(gradient[:, None], factor)[:, 0]
        damping *= 10
    return None


def _survey(problem: Problem, potential: Tensor) -> _Survey:
    count = len(potential)
    value = float(problem.columns @ potential)
    sums, gram = torch.zeros_like(potential), potential.new_zeros(count, count)
    for block, x, top in _blocks(problem, potential):
        x.sub_(top).exp_()
        row_sums = x.sum(dim=1, keepdim=True)
        value -= float(problem.rows[block] @ (top + row_sums.log())[:, 0])
        root = problem.rows[block].sqrt()
        x.mul_(root[:, None] / row_sums)
        sums.addmv_(x.T, root)
        gram.addmm_(x.T, x)
    return _Survey(potential, value, sums, gram)


def _balanced_columns(problem: Problem, potential: Tensor) -> Tensor:
    """Potentials (m,) after one step of Sinkhorn's iteration in the log domain."""
    sums = torch.full_like(potential, -torch.inf)
    for block, x, top in _blocks(problem, potential):
        log_share = problem.rows[block].log()[:, None] - top - (x - top).exp_().sum(dim=1, keepdim=True).log_()
        sums = torch.logaddexp(sums, x.add_(log_share).logsumexp(dim=0))
    return potential + problem.columns.log() - sums


def _blocks(problem: Problem, potential: Tensor) -> Iterator[tuple[slice, Tensor, Tensor]]:
    """(rows, ψ − C/ε of these rows, to be overwritten, and its row maxima)."""
    height = max(1, BLOCK // len(potential))
    for first in range(0, len(problem.cost), height):
        block = slice(first, first + height)
        x = problem.cost[block].to(torch.float64, copy=True, memory_format=torch.contiguous_format)
        x.mul_(-1 / problem.epsilon).add_(potential)
        yield block, x, x.amax(dim=1, keepdim=True)


def _spread(cost: Tensor) -> float:
    """The range of the finite costs."""
    highest = float(cost.amax())
    if highest == torch.inf:
        highest = float(cost.masked_fill(cost == torch.inf, -torch.inf).amax())
    return highest - float(cost.amin())
