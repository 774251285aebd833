"""What a training waits for before its first step: a new process that takes one step of AdamW.

python -m benchmarks.bench_start
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
from dataclasses import dataclass

REPEATS = 5
STEP = """
import json, resource, time
begin = time.perf_counter()
import torch
{imported}
torch.manual_seed(0)
layer = torch.nn.Linear(64, 64)
optimizer = AdamW(layer.parameters(), lr=0.01)
layer(torch.ones(1, 64)).sum().backward()
optimizer.step()
seconds = time.perf_counter() - begin
used = resource.getrusage(resource.RUSAGE_SELF)
print(json.dumps([seconds, used.ru_utime + used.ru_stime, used.ru_maxrss / 1e3, layer.weight.sum().item()]))
"""
WAYS = {
    "torch.optim.AdamW": "from torch.optim import AdamW",
    "truepair": "from truepair.optimizers import AdamW",
}


@dataclass(frozen=True)
class Row:
    """One line of the table."""

    way: str
    seconds: float
    processor_seconds: float
    ratio: float
    peak_mb: float
    difference: float


def one_step(way: str) -> list[float]:
    """Seconds, processor seconds, peak memory (MB) and the sum of the weights of a process of its own."""
    command = [sys.executable, "-c", STEP.format(imported=WAYS[way])]
    found: list[float] = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    return found


def measure() -> list[Row]:
    """All rows: medians, the ways by turns."""
    runs: dict[str, list[list[float]]] = {way: [] for way in WAYS}
    for _ in range(REPEATS):
        for way, found in runs.items():
            found.append(one_step(way))
    medians = {way: [statistics.median(values) for values in zip(*found, strict=True)] for way, found in runs.items()}
    base = medians["torch.optim.AdamW"]
    return [
        Row(way, seconds, processor, base[0] / seconds, peak, abs(weights - base[3]))
        for way, (seconds, processor, peak, weights) in medians.items()
    ]


def table(rows: list[Row]) -> str:
    lines = [f"{'way':18s} {'seconds':>8s} {'processor s':>12s} {'ratio':>6s} {'peak':>8s}  difference of weights"]
    for row in rows:
        lines.append(
            f"{row.way:18s} {row.seconds:8.2f} {row.processor_seconds:12.2f} {row.ratio:5.2f}x {row.peak_mb:5.0f} MB  "
            f"{row.difference:.1e}"
        )
    return "\n".join(lines)


if __name__ == "__main__":
    print(table(measure()))
