"""Newton's method with an ε that falls in stages, the early ones on a sample of the rows."""

from __future__ import annotations

import torch
from torch import Tensor

from truepair.transport.problem import Problem, Solution
from truepair.transport.scaling import schedule
from truepair.transport.semi_dual import Maximum, SemiDual

FIRST_SHARE = 1 / 8  # of the spread of the costs: the first ε
FACTOR = 4.0
STAGE_TOLERANCE = 1e-2
STAGE_STEPS = 25
LAST_STEPS = 100
CLOSE = 0.2  # an error from which no stages are needed: up to 2.5 times faster; from 0.4 on, some are slower
SAMPLE = 4096  # rows; of problems of four times as many and more
HEAVY = 16.0  # times the mean mass: a row that no sample may miss


def newton(problem: Problem, start: Tensor | None, error: float, *, tolerance: float, most_steps: int) -> Solution:
    """The plan of a single problem, (1, n, m), of at least as many rows as columns.

    Args:
        start: (m,) column potentials in units of ε, and `error`, what a plan of them misses of the marginals as a
            share of the mass; None for none.
        tolerance: of that error.
        most_steps: of all stages together.
    """
    filled_rows, filled_columns = problem.rows[0] > 0, problem.columns[0] > 0
    whole = SemiDual(problem.cost[0], problem.rows[0], problem.columns[0], problem.epsilon)
    vacant = not bool(filled_rows.all() & filled_columns.all())
    if vacant:
        cost = whole.cost[filled_rows][:, filled_columns]
        whole = SemiDual(cost, whole.rows[filled_rows], whole.columns[filled_columns], problem.epsilon)
        start = start if start is None else start[filled_columns]
    found = _maximise(whole, start if error <= CLOSE else None, tolerance, most_steps)
    plan = torch.zeros_like(problem.cost)
    if vacant:
        inner = torch.empty_like(whole.cost)
        whole.write_plan(found.potential, inner)
        plan[0, filled_rows.nonzero(), filled_columns.nonzero().T] = inner
    else:
        whole.write_plan(found.potential, plan[0])
    return Solution(plan, found.steps, found.error, found.error <= tolerance)


def _maximise(whole: SemiDual, start: Tensor | None, tolerance: float, most_steps: int) -> Maximum:
    done = 0
    if start is None:
        start = torch.zeros_like(whole.columns)
        sample = _sample(whole)
        factors = schedule(whole.spread() / whole.epsilon * FIRST_SHARE, FACTOR)
        for factor in factors if sample is not whole else factors[:-1]:
            stage = SemiDual(sample.cost, sample.rows, sample.columns, whole.epsilon * factor)
            found = stage.maximise(
                stage.balanced_columns(start / factor),
                tolerance=STAGE_TOLERANCE,
                most_steps=min(STAGE_STEPS, most_steps - done),
            )
            start, done = found.potential * factor, done + found.steps
        start = whole.balanced_columns(start)
    last = whole.maximise(start, tolerance=tolerance, most_steps=min(LAST_STEPS, most_steps - done))
    return Maximum(last.potential, done + last.steps, last.error)


def _sample(whole: SemiDual) -> SemiDual:
    """The problem itself, or one of about `SAMPLE` of its rows: the heavy ones, and of the others every so many."""
    count = len(whole.rows)
    if count < 4 * SAMPLE:
        return whole
    heavy = whole.rows > HEAVY * whole.rows.mean()
    chosen = torch.zeros_like(heavy)
    chosen[:: count // SAMPLE] = True
    chosen &= ~heavy
    cost, rows = whole.cost[chosen | heavy], whole.rows.clone()
    if not bool(chosen.any()) or not bool((cost < torch.inf).any(dim=0).all()):
        return whole
    rows[chosen] *= rows[~heavy].sum() / rows[chosen].sum()
    return SemiDual(cost, rows[chosen | heavy], whole.columns, whole.epsilon)
