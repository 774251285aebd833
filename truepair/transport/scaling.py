"""Sinkhorn's iteration by scaling a kernel that is rebuilt from its logarithm now and then.

Scaling (two products of a matrix and a vector) is tens of times cheaper than two passes of logsumexp, but overflows
where the costs are large against ε. So the scalings are absorbed into potentials in the log domain and the kernel is
built anew (Schmitzer 2019, "Stabilized sparse scaling algorithms for entropy regularized transport problems",
algorithm 2). Where scaling still breaks down, steps in the log domain are taken instead.
"""

from __future__ import annotations

import math

import torch

from truepair.transport.problem import Problem, Solution

ROUND = 200  # steps before the kernel is built anew
CHECK = 10  # steps between two looks at the error: each makes a GPU wait
LARGEST_SCALING = 1e100  # what underflowed in the kernel (1e-308) is still nothing after two of these


def scale(problem: Problem, *, tolerance: float, most_iterations: int, hopeful: bool = True) -> Solution:
    """Scale the rows and columns of exp(−C/ε) to their masses, all above 0, until the error is within the tolerance.

    The rows of the plan, in float64, have their masses to rounding. It may take up to `CHECK` iterations too many.
    Unless `hopeful`, it also ends as soon as the pace says that the iterations will not do.
    """
    rows, columns = problem.rows, problem.columns
    kernel = problem.cost.to(torch.float64, copy=True)
    kernel = kernel.sub_(kernel.amin()).mul_(-1 / problem.epsilon)  # its logarithm
    log_rows, log_columns, total = rows.log(), columns.log(), rows.sum()
    by_row, by_column = torch.zeros_like(rows), torch.zeros_like(columns)
    done, plain, hopeless = 0, True, False
    while True:
        if not plain:
            by_column = log_columns - (kernel + by_row[:, None]).logsumexp(dim=0)
            by_row = log_rows - (kernel + by_column).logsumexp(dim=1)
            done += 1
        plan = (kernel + by_row[:, None]).add_(by_column).exp_()
        u, v, before = torch.ones_like(rows), torch.ones_like(columns), math.inf
        good = None if plain else (u, v)
        if plain:
            u = rows / (plan @ v)
        plain = False
        for step in range(ROUND + 1):
            sums = plan.T @ u
            if step % CHECK == 0:
                largest = max(float(u.amax()), float(v.amax()))
                error = float((sums * v - columns).abs().sum() / total)
                if not (largest < LARGEST_SCALING and error < math.inf):
                    break
                good = (u, v)
                hopeless = not hopeful and _steps_left(before, error, tolerance) > most_iterations - done
                if error <= tolerance or done >= most_iterations or hopeless:
                    break
                before = error
            if step < ROUND:
                v = columns / sums
                u = rows / (plan @ v)
                done += 1
        if good is None:
            continue  # the kernel alone, which mostly will do and costs no logsumexp, has underflowed
        u, v = good
        by_row, by_column = by_row + u.log(), by_column + v.log()
        error = float(((plan.T @ u) * v - columns).abs().sum() / total)
        if error <= tolerance or done >= most_iterations or hopeless:
            return Solution(plan.mul_(u[:, None]).mul_(v), by_column, done, error)


def _steps_left(before: float, now: float, tolerance: float) -> float:
    """How many more steps it will take at the pace of the last `CHECK`."""
    if before == math.inf or now <= tolerance:
        return 0.0
    if now >= before:
        return math.inf
    return CHECK * math.log(tolerance / now) / math.log(now / before)
