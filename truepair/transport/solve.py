"""Which solver a transport problem gets: scaling while it is quick, then Newton, then scaling for as long as it takes.

With ε at 0.05 of the range of the costs scaling is done in 10 to 30 steps; each is two products of the kernel and a
vector. At 0.005 and below it takes hundreds to many thousands, and Newton's method a dozen.
"""

from __future__ import annotations

import warnings

import torch
from torch import Tensor

from truepair.errors import InputError
from truepair.transport.annealing import newton
from truepair.transport.problem import Problem, Solution, TransportWarning
from truepair.transport.scaling import Scaled, scale, schedule

LARGEST_NEWTON_SIDE = 513  # 512 and the extra column of a partial problem
LARGEST_KERNEL = 2**20  # numbers; beyond, Newton's blocks are quicker than a kernel that leaves the cache
QUICK_STEPS = 100
STAGE_TOLERANCE = 1e-2
STAGE_STEPS = 100
STAGE_FACTOR = 4.0
FIRST_SHARE = 1 / 8  # of the spread of the costs: the first ε of scaling in stages


def solve(problem: Problem, *, tolerance: float, most_iterations: int) -> Solution:
    """The plan of a batch, (B, n, m) in the dtype of the costs.

    The longer side of the plan has its masses to rounding, the shorter one to the tolerance.

    Raises:
        InputError: `tolerance` or `most_iterations` is not positive.
    """
    if not tolerance > 0 or most_iterations < 1:
        raise InputError(f"tolerance is {tolerance}, most_iterations {most_iterations}; expected both above 0")
    _, n, m = problem.cost.shape
    if n < m:
        turned = Problem(problem.cost.mT, problem.columns, problem.rows, problem.epsilon)
        found = solve(turned, tolerance=tolerance, most_iterations=most_iterations)
        return Solution(found.plan.mT, found.iterations, found.error, found.converged)
    can_newton = m <= LARGEST_NEWTON_SIDE and problem.rows.dtype == torch.float64
    if can_newton and n * m > LARGEST_KERNEL:
        parts = [
            _solve_one(problem.only(index), None, tolerance=tolerance, most_iterations=most_iterations)
            for index in range(len(problem.cost))
        ]
        return _together(parts, tolerance)
    quick = scale(
        log_kernel(problem),
        problem.rows,
        problem.columns,
        tolerance=tolerance,
        most_iterations=min(QUICK_STEPS, most_iterations),
        hopeful=False,
    )
    if float(quick.errors.amax()) <= tolerance or quick.iterations >= most_iterations:
        return _solution(quick, problem, quick.iterations, tolerance)
    parts = [
        _solution(part, one, part.iterations, tolerance)
        if float(part.errors) <= tolerance
        else _solve_one(one, part, tolerance=tolerance, most_iterations=most_iterations)
        for one, part in ((problem.only(index), quick.only(index)) for index in range(len(problem.cost)))
    ]
    return _together(parts, tolerance)


def warn_unless_converged(solution: Solution, tolerance: float) -> None:
    if not solution.converged:
        warnings.warn(
            f"the plan misses its marginals by {solution.error:.1e} of the mass after {solution.iterations} "
            f"iterations (tolerance {tolerance:.1e}); raise epsilon or most_iterations, and see that the cells that "
            "are not forbidden can hold the masses",
            TransportWarning,
            stacklevel=3,
        )


def log_kernel(problem: Problem) -> Tensor:
    """−(cost − least cost)/ε, (B, n, m) in the dtype of the masses; −inf where there is no mass to put."""
    kernel = problem.cost.to(problem.rows.dtype, copy=True)
    kernel = kernel.sub_(kernel.amin(dim=(1, 2), keepdim=True)).mul_(-1 / problem.epsilon)
    for masses, spread in ((problem.rows, (slice(None), slice(None), None)), (problem.columns, (slice(None), None))):
        vacant = masses == 0
        if bool(vacant.any()):
            kernel.masked_fill_(vacant[spread], -torch.inf)
    return kernel


def _solve_one(problem: Problem, quick: Scaled | None, *, tolerance: float, most_iterations: int) -> Solution:
    """One problem that the quick steps did not finish, or that is too large for them."""
    done = quick.iterations if quick else 0
    found = None
    if problem.cost.shape[2] <= LARGEST_NEWTON_SIDE and problem.rows.dtype == torch.float64:
        start = quick.column_potential[0] if quick else None
        error = float(quick.errors[0]) if quick else float("inf")
        found = newton(problem, start, error, tolerance=tolerance, most_steps=most_iterations - done)
        done += found.iterations
        if found.converged or done >= most_iterations:
            return Solution(found.plan, done, found.error, found.converged)
    scaled = _scale_in_stages(problem, tolerance, most_iterations - done)
    slow = _solution(scaled, problem, done + scaled.iterations, tolerance)
    return slow if found is None or slow.error <= found.error else found


def _scale_in_stages(problem: Problem, tolerance: float, most_iterations: int) -> Scaled:
    """Scaling with an ε that falls to the one wanted: from afar, large steps come first."""
    kernel = log_kernel(problem)
    deepest = -float(kernel.masked_fill(kernel == -torch.inf, 0.0).amin())
    potential, used = torch.zeros_like(problem.columns), 0
    factors = schedule(deepest * FIRST_SHARE, STAGE_FACTOR)
    for factor in factors[:-1]:
        stage = scale(
            kernel / factor,
            problem.rows,
            problem.columns,
            tolerance=STAGE_TOLERANCE,
            most_iterations=min(STAGE_STEPS, most_iterations),
            start=potential / factor,
        )
        potential, used = stage.column_potential * factor, used + stage.iterations
    last = scale(
        kernel,
        problem.rows,
        problem.columns,
        tolerance=tolerance,
        most_iterations=max(1, most_iterations - used),
        start=potential,
    )
    return Scaled(last.plan, last.column_potential, used + last.iterations, last.errors)


def _solution(scaled: Scaled, problem: Problem, iterations: int, tolerance: float) -> Solution:
    error = float(scaled.errors.amax())
    return Solution(scaled.plan.to(problem.cost.dtype), iterations, error, error <= tolerance)


def _together(parts: list[Solution], tolerance: float) -> Solution:
    error = max(part.error for part in parts)
    plan = parts[0].plan if len(parts) == 1 else torch.cat([part.plan for part in parts])
    return Solution(plan, max(part.iterations for part in parts), error, error <= tolerance)
