"""Sinkhorn's iteration on a batch, by scaling a kernel that is rebuilt from its logarithm now and then.

Scaling (two products of a matrix and a vector) is tens of times cheaper than two passes of logsumexp, but overflows
where the costs are large against ε. So the scalings are absorbed into potentials in the log domain and the kernel is
built anew (Schmitzer 2019, "Stabilized sparse scaling algorithms for entropy regularized transport problems",
algorithm 2). Where scaling still breaks down, steps in the log domain are taken instead.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

ROUND = 200  # steps before the kernel is built anew
CHECK = 10  # steps between two looks at the error: each makes a GPU wait
LARGEST_SCALING = 1e100  # what underflowed in the kernel (1e-308) is still nothing after two of these
LARGEST_SCALING_IN_FLOAT32 = 1e10


@dataclass(frozen=True)
class Scaled:
    """Where the iteration came to.

    Attributes:
        plan: (B, n, m); its rows have their mass to rounding.
        column_potential: (B, m), log v of plan = u · kernel · v.
        iterations: steps taken.
        errors: (B,) Σ |marginal − wanted| as a share of the mass.
    """

    plan: Tensor
    column_potential: Tensor
    iterations: int
    errors: Tensor

    def only(self, index: int) -> Scaled:
        """Problem `index` of the batch, as a batch of one."""
        one = slice(index, index + 1)
        return Scaled(self.plan[one], self.column_potential[one], self.iterations, self.errors[one])


def scale(
    log_kernel: Tensor,
    rows: Tensor,
    columns: Tensor,
    *,
    tolerance: float,
    most_iterations: int,
    start: Tensor | None = None,
    hopeful: bool = True,
) -> Scaled:
    """Scale the rows and columns of a kernel to their masses until the error of the batch is within the tolerance.

    Args:
        log_kernel: (B, n, m), −cost/ε; −inf where a cell is forbidden or its row or column has no mass.
        rows, columns: (B, n) and (B, m) masses.
        tolerance: of the error.
        most_iterations: it ends here, or up to `CHECK` steps later.
        start: (B, m) column potential.
        hopeful: when off, it also ends as soon as the pace says that the steps will not do.
    """
    log_rows, log_columns = rows.log(), columns.log()
    total = rows.sum(dim=1)
    no_row, no_column = (rows == 0).to(rows), (columns == 0).to(columns)
    wanted_rows, wanted_columns = rows + no_row, columns + no_column
    limit = LARGEST_SCALING if rows.dtype == torch.float64 else LARGEST_SCALING_IN_FLOAT32
    by_row, by_column = torch.zeros_like(rows), torch.zeros_like(columns)
    done, plain, hopeless = 0, start is None, False
    if start is not None:
        by_column = start
        by_row = _potential(log_rows, (log_kernel + by_column[:, None, :]).logsumexp(dim=2))
    while True:
        if not plain:
            by_column = _potential(log_columns, (log_kernel + by_row[:, :, None]).logsumexp(dim=1))
            by_row = _potential(log_rows, (log_kernel + by_column[:, None, :]).logsumexp(dim=2))
            done += 1
        plan = (log_kernel + by_row[:, :, None]).add_(by_column[:, None, :]).exp_()
        u, v, before = torch.ones_like(rows), torch.ones_like(columns), math.inf
        good = None if plain else (u, v)
        if plain:
            u = wanted_rows / (_times(plan, v) + no_row)
        plain = False
        for step in range(ROUND + 1):
            sums = _times(plan.mT, u)
            if step % CHECK == 0:
                largest = max(float(u.amax()), float(v.amax()))
                error = float(((sums * v - columns).abs().sum(dim=1) / total).amax())
                if not (largest < limit and error < math.inf):
                    break
                good = (u, v)
                if error <= tolerance or done >= most_iterations:
                    break
                if not hopeful and _steps_left(before, error, tolerance) > most_iterations - done:
                    hopeless = True
                    break
                before = error
            if step < ROUND:
                v = wanted_columns / (sums + no_column)
                u = wanted_rows / (_times(plan, v) + no_row)
                done += 1
        if good is None:
            continue  # the kernel alone, which mostly will do and costs no logsumexp, has underflowed
        u, v = good
        by_row, by_column = by_row + u.log(), by_column + v.log()
        errors = (_times(plan.mT, u) * v - columns).abs().sum(dim=1) / total
        if float(errors.amax()) <= tolerance or done >= most_iterations or hopeless:
            return Scaled(plan.mul_(u[:, :, None]).mul_(v[:, None, :]), by_column, done, errors)


def _potential(log_mass: Tensor, log_sum: Tensor) -> Tensor:
    return torch.where(log_mass > -torch.inf, log_mass - log_sum, 0.0)


def _times(matrices: Tensor, vectors: Tensor) -> Tensor:
    if matrices.shape[0] == 1:
        return torch.mv(matrices[0], vectors[0])[None]
    return torch.bmm(matrices, vectors[:, :, None])[:, :, 0]


def _steps_left(before: float, now: float, tolerance: float) -> float:
    """How many more steps it will take at the pace of the last `CHECK`."""
    if before == math.inf:
        return 0.0
    if now >= before:
        return math.inf
    return CHECK * math.log(tolerance / now) / math.log(now / before)


def schedule(steepness: float, factor: float) -> list[float]:
    """Falling multiples of ε that end at 1: from `steepness`, each about a `factor`th of the one before."""
    if steepness <= 1:
        return [1.0]
    stages = math.ceil(math.log(steepness) / math.log(factor))
    return [steepness ** (1 - stage / stages) for stage in range(stages)] + [1.0]
