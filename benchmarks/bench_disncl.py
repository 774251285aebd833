"""What the parts of DisNCL cost: time and memory of one optimizer step, against its own alignment loss alone.

python -m benchmarks.bench_disncl
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor

from benchmarks.bench_training import BATCH, SIZES, VOCABULARY, Size, random_batch
from benchmarks.measure import extra_peak_bytes, median_seconds
from truepair.correspondence import CorrespondenceMemory
from truepair.engines.config import GlobalConfig
from truepair.engines.regions_and_words import InputSizes
from truepair.engines.retrieval_model import Needs, build_engine
from truepair.methods import build_method
from truepair.methods.base import EpochPosition, NetworkForward, Stage
from truepair.training.config import TrainingConfig, build_optimizer

REPEATS = 7
EPOCH = 12_000  # pairs
CLEAN = BATCH // 3
WAYS: dict[str, dict[str, Any]] = {
    "L_align": {"disentangler": "none", "soft_weight": 0.0},
    "L_align, L_soft": {"disentangler": "none"},
    "all terms": {},
    "FDMER": {"disentangler": "fdmer"},
    "DMIM": {"disentangler": "dmim"},
    "MVIB": {"disentangler": "mvib"},
}


@dataclass(frozen=True)
class Row:
    """One line of the table."""

    size: str
    way: str
    milliseconds: float
    seconds_per_epoch: float
    times_the_base: float
    extra_peak_mb: float


class PartlyClean:
    """What a method sees of a batch: untrained, but with a third of the pairs lifted to be each other's best."""

    def __init__(self, engine: Any, auxiliary: Any, batch: Any) -> None:
        self.auxiliary, self.batch = auxiliary, batch
        self.networks = [self]
        self.forward = NetworkForward(engine, batch)
        lifted = torch.zeros(BATCH)
        lifted[:CLEAN] = 3
        self.similarity = self.forward.similarity + torch.diag(lifted)

    @property
    def parts(self) -> Any:
        return self.forward.parts


def make_step(size: Size, way: str) -> Callable[[], Tensor]:
    """One optimizer step after the warm-up, on a fixed batch; returns the loss before it."""
    torch.manual_seed(0)
    method = build_method("disncl", WAYS[way])
    subspaces = method.auxiliary.subspaces
    assert subspaces is not None
    sizes = InputSizes(size.feature_width, size.regions, VOCABULARY)
    engine = build_engine(GlobalConfig(width=size.width, pooling=size.pooling), sizes, Needs(1, 1, *subspaces))
    auxiliary = method.auxiliary.build(engine)
    optimizer = build_optimizer(TrainingConfig(), method.auxiliary.parameter_groups(engine, auxiliary), 1e-4)
    memory = CorrespondenceMemory(BATCH)
    method.prepare(memory)
    batch, position = random_batch(size), EpochPosition(0, 6, (Stage(10),), 0, 1, BATCH)

    def step() -> Tensor:
        forward: Any = PartlyClean(engine, auxiliary, batch)
        loss = method.batch_loss(forward, position, memory).per_pair.mean()
        optimizer.zero_grad(set_to_none=True)
        loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()
        return loss.detach()

    return step


def prepared_step(size: Size, way: str) -> Callable[[], Tensor]:
    """A step whose parameters and moments are there already, so that its extra memory is that of the computation."""
    step = make_step(size, way)
    step()
    return step


def measure() -> list[Row]:
    """All rows."""
    rows: list[Row] = []
    for size in (SIZES[0], SIZES[-1]):
        base = 0.0
        for way in WAYS:
            seconds = median_seconds(make_step(size, way), REPEATS)
            base = base or seconds
            memory = extra_peak_bytes(partial(prepared_step, size, way)) / 1e6
            rows.append(Row(size.name, way, 1e3 * seconds, seconds * EPOCH / BATCH, seconds / base, memory))
    return rows


def table(rows: list[Row]) -> str:
    """The rows, aligned."""
    lines = [f"{'size':<14} {'way':<17} {'ms/step':>8} {'s/epoch':>8} {'of the base':>12} {'extra peak':>11}"]
    lines += [
        f"{row.size:<14} {row.way:<17} {row.milliseconds:>8.1f} {row.seconds_per_epoch:>8.1f} "
        f"{row.times_the_base:>11.2f}x {row.extra_peak_mb:>8.0f} MB"
        for row in rows
    ]
    return "\n".join(lines)


if __name__ == "__main__":
    print(table(measure()))
