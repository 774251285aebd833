"""A training step with PyTorch's own linear algebra, and with OpenBLAS preloaded (LD_PRELOAD).

PyTorch's builds for x86 come with Intel's library, which uses AVX2 on other makers' processors even where these have
AVX-512. OpenBLAS goes by what a processor can do.

python -m benchmarks.bench_linear_algebra
"""

from __future__ import annotations

import ctypes.util
import json
import os
import statistics
import subprocess
import sys
from dataclasses import dataclass

from benchmarks.bench_training import SIZES

TURNS = 3
STEPS = """
import json
import torch
from benchmarks.bench_training import SIZES, make_step
from benchmarks.measure import median_seconds
torch.set_num_threads(1)
found = []
for size in SIZES:
    step = make_step(size, plain=False)
    losses = [float(step()) for _ in range(5)]
    found.append([median_seconds(step, 7), losses])
print(json.dumps(found))
"""


@dataclass(frozen=True)
class Row:
    """One line of the table."""

    size: str
    way: str
    milliseconds: float
    times_faster: float
    largest_difference: float


def ways() -> dict[str, dict[str, str]]:
    """Names, and what is added to the environment: the second where OpenBLAS is installed."""
    library = ctypes.util.find_library("openblas")
    found: dict[str, dict[str, str]] = {"as it comes": {}}
    return found | ({"OpenBLAS preloaded": {"LD_PRELOAD": library}} if library else {})


def steps(environment: dict[str, str]) -> list[tuple[float, list[float]]]:
    """Seconds of a step and five losses, for every size, in a process of its own with one thread."""
    before = {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}
    done = subprocess.run(
        [sys.executable, "-c", STEPS],
        env={**before, "OMP_NUM_THREADS": "1", **environment},
        capture_output=True,
        text=True,
        check=True,
    )
    return [(seconds, losses) for seconds, losses in json.loads(done.stdout)]


def measure() -> list[Row]:
    """All rows: medians of processes that take turns.

    Raises:
        SystemExit: the ways do not agree on their numbers.
    """
    runs: dict[str, list[list[tuple[float, list[float]]]]] = {way: [] for way in ways()}
    for _ in range(TURNS):
        for way, environment in ways().items():
            runs[way].append(steps(environment))
    rows = []
    for number, size in enumerate(SIZES):
        base = statistics.median(run[number][0] for run in runs["as it comes"])
        losses = runs["as it comes"][0][number][1]
        for way, found in runs.items():
            seconds = statistics.median(run[number][0] for run in found)
            difference = max(abs(a - b) for run in found for a, b in zip(run[number][1], losses, strict=True))
            rows.append(Row(size.name, way, 1e3 * seconds, base / seconds, difference))
    if any(row.largest_difference > 1e-4 for row in rows):
        raise SystemExit("the two ways disagree on losses")
    return rows


def table(rows: list[Row]) -> str:
    lines = [f"{'size':<14} {'way':<20} {'ms/step':>8} {'ratio':>6}  difference of losses"]
    lines += [
        f"{row.size:<14} {row.way:<20} {row.milliseconds:>8.1f} {row.times_faster:>5.2f}x  {row.largest_difference:.1e}"
        for row in rows
    ]
    if len(rows) == len(SIZES):
        lines.append("(OpenBLAS is not installed here: Debian's package is libopenblas0-serial)")
    return "\n".join(lines)


if __name__ == "__main__":
    print(table(measure()))
