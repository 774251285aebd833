"""Entropic transport against POT, and the label correction of one epoch at the sizes of UOT-RCL's paper.

python -m benchmarks.bench_transport

POT (`pip install POT`) is optional; its rows are left out where it is not installed.
"""

from __future__ import annotations

import importlib
import importlib.util
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import normalize, one_hot

from benchmarks.measure import extra_peak_bytes, median_seconds
from truepair.correspondence.class_costs import corrected_labels, label_cost
from truepair.correspondence.confident import confident_pairs
from truepair.transport import partial_transport, sinkhorn

Plan = Callable[[Tensor, float], Tensor]

SMALL = (
    (2174, 11, 0.1),
    (2174, 11, 0.005),
    (2174, 11, 0.001),
    (100, 100, 0.05),
    (100, 100, 0.005),
    (500, 500, 0.05),
    (500, 500, 0.005),
)
"""(rows, columns, ε as a share of the range of the costs): Wikipedia's labels; the relations of a batch."""
LARGE = ((32_000, 200), (100_000, 200))
EPOCHS = ((43_000, 10, 200), (32_000, 200, 150))
"""(pairs, classes, neighbours): INRIA-Websearch and XMediaNet, and 0.5 % of the pairs."""
WIDTH = 512
TOLERANCE = 1e-6
POT_ITERATIONS = 5_000
REPEATS = 5
FEW_CELLS = 50_000


@dataclass(frozen=True)
class Row:
    """One line of the table; `error` is Σ |marginal − wanted| over rows and columns, as a share of the mass."""

    problem: str
    way: str
    seconds: float
    times_faster: float | None
    error: float | None
    extra_peak_mb: float | None


def costs(rows: int, columns: int, dtype: torch.dtype = torch.float64) -> Tensor:
    """Squared distances of random points in eight dimensions, in [0, 1]."""
    draw = torch.Generator().manual_seed(0)
    distance = torch.cdist(torch.randn(rows, 8, generator=draw), torch.randn(columns, 8, generator=draw)).square()
    return (distance / distance.max()).to(dtype)


def uniform(count: int) -> Tensor:
    """Equal masses that sum to 1, float64."""
    return torch.full((count,), 1 / count, dtype=torch.float64)


def ours(cost: Tensor, epsilon: float) -> Tensor:
    """The plan as truepair finds it."""
    return sinkhorn(cost, uniform(len(cost)), uniform(cost.shape[1]), epsilon=epsilon, tolerance=TOLERANCE)


def pot(method: str, cost: Tensor, epsilon: float) -> Tensor:
    """The plan as POT finds it; its threshold is on the Euclidean norm of what the columns miss."""
    solver: Any = importlib.import_module("ot")
    columns = cost.shape[1]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of not having converged: the table says so
        plan = solver.sinkhorn(
            uniform(len(cost)).numpy(),
            uniform(columns).numpy(),
            cost.numpy(),
            epsilon,
            method=method,
            numItermax=POT_ITERATIONS,
            stopThr=TOLERANCE / columns**0.5,
        )
    return torch.from_numpy(plan)


def ways(cells: int) -> dict[str, Plan]:
    """POT first, where it is installed; its log domain, which takes minutes for many cells, only for few."""
    if importlib.util.find_spec("ot") is None:
        return {"truepair": ours}
    log = {"POT, log": partial(pot, "sinkhorn_log")} if cells <= FEW_CELLS else {}
    return {"POT": partial(pot, "sinkhorn"), **log, "truepair": ours}


def missed(plan: Tensor) -> float:
    """The error of a plan with uniform marginals of mass 1."""
    by_row, by_column = plan.double().sum(dim=1), plan.double().sum(dim=0)
    return float((by_row - 1 / len(by_row)).abs().sum() + (by_column - 1 / len(by_column)).abs().sum())


def compare(rows: int, columns: int, share: float) -> list[Row]:
    """One row per way at one size; POT's plain iteration is what the others are compared with."""
    cost = costs(rows, columns)
    found: list[Row] = []
    for way, plan in ways(cost.numel()).items():
        seconds = median_seconds(partial(plan, cost, share), REPEATS)
        faster = found[0].seconds / seconds if found else None
        found.append(Row(f"{rows:,} × {columns}, ε {share}", way, seconds, faster, missed(plan(cost, share)), None))
    return found


def part_of_it(cost: Tensor) -> Tensor:
    """A plan of half the mass, as label correction asks for it."""
    return partial_transport(cost, uniform(len(cost)), uniform(cost.shape[1]), mass=0.5, epsilon=0.05)


def ready_for_part(rows: int, columns: int) -> Callable[[], object]:
    """What the memory is measured on; libraries are loaded before it counts."""
    part_of_it(costs(100, 10))
    return partial(part_of_it, costs(rows, columns, torch.float32))


def large(rows: int, columns: int) -> Row:
    """Half of the mass of a large problem, float32 costs."""
    seconds = median_seconds(ready_for_part(rows, columns), 1, warm_up=False)
    memory = extra_peak_bytes(partial(ready_for_part, rows, columns)) / 1e6
    return Row(f"{rows:,} × {columns}, half of it", "truepair", seconds, None, None, memory)


def correct_labels(pairs: int, classes: int, neighbours: int) -> Callable[[], Tensor]:
    """The label correction of one epoch: confident set, neighbours, costs and transport, on clustered random banks."""
    draw = torch.Generator().manual_seed(0)
    labels = torch.randint(0, classes, (pairs,), generator=draw)
    centres = torch.randn(classes, WIDTH, generator=draw)
    banks = [normalize(centres[labels] + 3 * torch.randn(pairs, WIDTH, generator=draw), dim=1) for _ in range(2)]
    prototypes = normalize(centres, dim=1)
    targets = one_hot(labels[torch.randperm(pairs, generator=draw)], classes).float()

    def correct() -> Tensor:
        probabilities = [torch.softmax(bank @ prototypes.T, dim=1) for bank in banks]
        confident = confident_pairs(probabilities[0], probabilities[1])
        cost = label_cost(banks[0], banks[1], targets, confident, neighbours=neighbours)
        return corrected_labels(cost, torch.ones(classes), mass=0.5)

    return correct


def epoch(pairs: int, classes: int, neighbours: int) -> Row:
    """One run: it takes long enough."""
    seconds = median_seconds(correct_labels(pairs, classes, neighbours), 1, warm_up=False)
    problem = f"labels of {pairs:,} pairs, {classes} classes, {neighbours} neighbours"
    return Row(problem, "truepair", seconds, None, None, None)


def table(rows: list[Row]) -> str:
    """The rows, aligned."""
    lines = [f"{'problem':<50}  {'way':<8} {'seconds':>9} {'ratio':>7} {'error':>8} {'extra peak':>11}"]
    for row in rows:
        ratio = "" if row.times_faster is None else f"{row.times_faster:.1f}x"
        error = "" if row.error is None else f"{row.error:.0e}"
        memory = "" if row.extra_peak_mb is None else f"{row.extra_peak_mb:.0f} MB"
        lines.append(f"{row.problem:<50}  {row.way:<8} {row.seconds:>9.4f} {ratio:>7} {error:>8} {memory:>11}".rstrip())
    return "\n".join(lines)


def measure() -> list[Row]:
    """All rows.

    Raises:
        SystemExit: a plan of ours misses its marginals.
    """
    rows = [row for problem in SMALL for row in compare(*problem)]
    if any(row.way == "truepair" and row.error is not None and row.error > 2 * TOLERANCE for row in rows):
        raise SystemExit("a plan misses its marginals")
    rows += [large(*size) for size in LARGE]
    return rows + [epoch(*size) for size in EPOCHS]


if __name__ == "__main__":
    print(table(measure()))
