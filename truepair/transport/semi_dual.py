"""Newton's method on the semi-dual: one potential per column, those of the many rows eliminated in closed form.

The plan of column potentials ψ (in units of ε) is P_ij = a_i softmax_j(ψ_j − C_ij/ε), so every row has its mass. What
is left is to raise the concave function Σ_j b_j ψ_j − Σ_i a_i logsumexp_j(ψ_j − C_ij/ε) of m numbers, whose gradient
is b − Σ_i P_i and whose Hessian is −(diag(Σ_i P_i) − Σ_i P_i P_iᵀ/a_i) (Cuturi and Peyré 2018, "Semidual regularized
optimal transport"). All sums run over blocks of rows in float64: besides the costs, the working memory is a few
blocks of `BLOCK` numbers and a few m × m matrices, about 20 MB and never a second matrix of the costs' size.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

BLOCK = 2**19  # numbers: 4 MB in float64
ARMIJO = 1e-4
SHORTEST_STEP = 2.0**-12
ROUNDING = 1e-13
LARGEST_DAMPING = 1e8


@dataclass(frozen=True)
class SemiDual:
    """One problem whose rows and columns all have mass.

    Attributes:
        cost: (n, m), finite or +inf, any float dtype.
        rows, columns: (n,) and (m,) masses > 0, float64, of equal totals.
        epsilon: > 0.
    """

    cost: Tensor
    rows: Tensor
    columns: Tensor
    epsilon: float

    def maximise(self, start: Tensor, *, tolerance: float, most_steps: int) -> Maximum:
        """Damped Newton steps from potentials `start`, (m,), until Σ |marginal − wanted| is a small share of the mass.

        Ends early where no step along the Newton direction raises the function: then the error says so.
        """
        total = float(self.rows.sum())
        now = self._survey(start)
        for step in range(most_steps):
            error = float((self.columns - now.column_sums).abs().sum()) / total
            if error <= tolerance:
                return Maximum(now.potential, step, error)
            after = self._climb(now, damping=min(error, 1.0) * 1e-3)
            if after is None:
                return Maximum(now.potential, step, error)
            now = after
        error = float((self.columns - now.column_sums).abs().sum()) / total
        return Maximum(now.potential, most_steps, error)

    def write_plan(self, potential: Tensor, into: Tensor) -> None:
        """Write the plan of potentials (m,) into a matrix (n, m) of any float dtype."""
        for block, x, top in self._blocks(potential):
            x.sub_(top).exp_()
            into[block] = x.mul_((self.rows[block, None]) / x.sum(dim=1, keepdim=True))

    def spread(self) -> float:
        """The range of the finite costs."""
        highest = float(self.cost.amax())
        if highest == torch.inf:
            highest = float(self.cost.masked_fill(self.cost == torch.inf, -torch.inf).amax())
        return highest - float(self.cost.amin())

    def balanced_columns(self, potential: Tensor) -> Tensor:
        """Potentials (m,) after one step of Sinkhorn's iteration in the log domain."""
        sums = torch.full_like(potential, -torch.inf)
        for block, x, top in self._blocks(potential):
            log_share = self.rows[block].log()[:, None] - top - (x - top).exp_().sum(dim=1, keepdim=True).log_()
            sums = torch.logaddexp(sums, x.add_(log_share).logsumexp(dim=0))
        return potential + self.columns.log() - sums

    def _climb(self, now: _Survey, damping: float) -> _Survey | None:
        gradient = self.columns - now.column_sums
        distance = float(gradient.abs().sum())
        direction = self._direction(now, gradient, damping)
        if direction is None:
            return None
        slope = float(gradient @ direction)
        length = 1.0
        slack = ROUNDING * (1 + abs(now.value))
        while length >= SHORTEST_STEP:
            after = self._survey(now.potential + length * direction)
            left = float((self.columns - after.column_sums).abs().sum())
            if after.value >= now.value + ARMIJO * length * slope + slack or left <= 0.9 * distance:
                return after
            length /= 2
        return None

    def _direction(self, now: _Survey, gradient: Tensor, damping: float) -> Tensor | None:
        """The Newton direction, with as much damping as makes the matrix safely positive."""
        hessian = torch.diag(now.column_sums) - now.gram
        # A constant added to all potentials changes nothing; this pins it.
        hessian += float(self.columns.mean()) / len(gradient)
        damping = max(damping, 1e-14)
        while damping <= LARGEST_DAMPING:
            factor, failed = torch.linalg.cholesky_ex(hessian + torch.diag(damping * self.columns))
            if not int(failed):
                return torch.cholesky_solve(gradient[:, None], factor)[:, 0]
            damping *= 10
        return None

    def _survey(self, potential: Tensor) -> _Survey:
        count = len(potential)
        value = float(self.columns @ potential)
        sums, gram = torch.zeros_like(potential), potential.new_zeros(count, count)
        for block, x, top in self._blocks(potential):
            x.sub_(top).exp_()
            row_sums = x.sum(dim=1, keepdim=True)
            value -= float(self.rows[block] @ (top + row_sums.log())[:, 0])
            root = self.rows[block].sqrt()
            x.mul_(root[:, None] / row_sums)
            sums.addmv_(x.T, root)
            gram.addmm_(x.T, x)
        return _Survey(potential, value, sums, gram)

    def _blocks(self, potential: Tensor) -> Iterator[tuple[slice, Tensor, Tensor]]:
        """(rows, ψ − C/ε of these rows, to be overwritten, and its row maxima)."""
        height = max(1, BLOCK // len(potential))
        for first in range(0, len(self.cost), height):
            block = slice(first, first + height)
            x = self.cost[block].to(torch.float64, copy=True, memory_format=torch.contiguous_format)
            x.mul_(-1 / self.epsilon).add_(potential)
            yield block, x, x.amax(dim=1, keepdim=True)


@dataclass(frozen=True)
class Maximum:
    """Potentials (m,), the steps to them, and Σ |marginal − wanted| as a share of the mass."""

    potential: Tensor
    steps: int
    error: float


@dataclass(frozen=True)
class _Survey:
    """What one pass over the costs tells about some potentials."""

    potential: Tensor
    value: float
    column_sums: Tensor
    gram: Tensor
