"""Milliseconds and memory of a step of AdamW: torch's own, and ours, which takes few parameters all at once.

python -m benchmarks.bench_optimizer
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from statistics import median

import torch
from torch import Tensor

from benchmarks.bench_training import SIZES, VOCABULARY, Size
from benchmarks.measure import extra_peak_bytes, median_seconds
from truepair.engines.config import GlobalConfig
from truepair.engines.global_engine import GlobalEngine
from truepair.optimizers import AdamW, all_at_once

STEPS = 20
REPEATS = 15
SMALL = Size("small, max", 16, 16, 16, "max", (5, 14))


@dataclass(frozen=True)
class Row:
    """One line of the table."""

    size: str
    way: str
    milliseconds: float
    times_faster: float
    extra_peak_mb: float
    same_weights: bool


WAYS: dict[str, type[torch.optim.AdamW]] = {"torch's AdamW": torch.optim.AdamW, "truepair": AdamW}


def parameters_of(size: Size) -> list[Tensor]:
    """The weights of the engine of a size, each with a gradient."""
    torch.manual_seed(0)
    words = 100 if size is SMALL else VOCABULARY
    engine = GlobalEngine(size.feature_width, words, GlobalConfig(width=size.width, pooling=size.pooling))
    parameters: list[Tensor] = [*engine.parameters()]
    for values in parameters:
        values.grad = torch.randn_like(values)
    return parameters


def stepping(way: str, parameters: list[Tensor], steps: int = 1) -> Callable[[], object]:
    """So many steps; the moments are there when it is returned."""
    together = all_at_once(parameters) if way == "truepair" else None
    optimizer = WAYS[way](parameters, lr=1e-3, weight_decay=1e-4, foreach=together)
    optimizer.step()

    def call() -> None:
        for _ in range(steps):
            optimizer.step()

    return call


def prepared(way: str, size: Size) -> Callable[[], object]:
    return stepping(way, parameters_of(size))


def compare(size: Size) -> list[Row]:
    """The ways take turns, so that what else the machine does, and what the allocator has, is the same for both."""
    calls, first, same = {}, list[Tensor](), {}
    for way in WAYS:
        parameters = parameters_of(size)
        calls[way] = stepping(way, parameters, STEPS)
        calls[way]()
        first = first or [values.detach().clone() for values in parameters]
        same[way] = all(torch.equal(ours, theirs) for ours, theirs in zip(parameters, first, strict=True))
    seconds: dict[str, list[float]] = {way: [] for way in WAYS}
    for _ in range(REPEATS):
        for way, call in calls.items():
            seconds[way].append(median_seconds(call, 1, warm_up=False))
    taken = {way: 1e3 * median(seconds[way]) / STEPS for way in WAYS}
    plain = taken[next(iter(WAYS))]
    peaks = {way: extra_peak_bytes(partial(prepared, way, size)) / 1e6 for way in WAYS}
    return [Row(size.name, way, taken[way], plain / taken[way], peaks[way], same[way]) for way in WAYS]


def table(rows: list[Row]) -> str:
    """The rows, aligned."""
    lines = [f"{'size':<14} {'way':<14} {'ms/step':>8} {'ratio':>6} {'extra peak':>11}  same weights"]
    lines += [
        f"{row.size:<14} {row.way:<14} {row.milliseconds:>8.2f} {row.times_faster:>5.2f}x {row.extra_peak_mb:>8.1f} MB"
        f"  {'yes' if row.same_weights else 'no'}"
        for row in rows
    ]
    return "\n".join(lines)


def measure() -> list[Row]:
    """All rows.

    Raises:
        SystemExit: the ways come to different weights.
    """
    rows = [row for size in (SMALL, *SIZES) for row in compare(size)]
    if not all(row.same_weights for row in rows):
        raise SystemExit("the two ways come to different weights")
    return rows


if __name__ == "__main__":
    print(table(measure()))
