"""All benchmarks, one table after the other: `python -m benchmarks [--write]`.

With `--write` the rows are kept as `results/bench.json` and the tables put into `docs/speed.md`.
"""

from __future__ import annotations

import argparse
import platform
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch

from benchmarks import bench_disncl, bench_evaluation, bench_local, bench_ranks, bench_training, bench_two_stage
from truepair import __version__
from truepair.experiments.noise_report import replace_section
from truepair.files import write_json_atomically

BENCHMARKS: dict[str, Any] = {
    f"One training step, batch {bench_training.BATCH}": bench_training,
    "SGR and SAF against the loop over captions": bench_local,
    f"Parts of DisNCL, one training step, {bench_disncl.CLEAN} of {bench_training.BATCH} pairs clean": bench_disncl,
    "Ranks of a similarity matrix": bench_ranks,
    "Evaluation, from encodings to figures": bench_evaluation,
    "A global engine proposes, a local one ranks": bench_two_stage,
}


def measure() -> dict[str, tuple[list[Any], str]]:
    """Title → (rows, table) of every benchmark, printed as they come."""
    found: dict[str, tuple[list[Any], str]] = {}
    for title, benchmark in BENCHMARKS.items():
        rows = benchmark.measure()
        found[title] = (rows, benchmark.table(rows))
        print(f"\n{title}\n\n{found[title][1]}", flush=True)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", help="keep rows and tables in results/ and docs/")
    write = parser.parse_args().write
    found = measure()
    if not write:
        return
    machine = {"processor": platform.machine(), "threads": torch.get_num_threads(), "torch": torch.__version__}
    date = time.strftime("%Y-%m-%d")
    rows = {title: [asdict(row) for row in rows] for title, (rows, _) in found.items()}
    write_json_atomically(
        Path("results/bench.json"), {"truepair": __version__, "date": date, "machine": machine, "rows": rows}
    )
    tables = [f"**{title}**\n\n```\n{table}\n```" for title, (_, table) in found.items()]
    described = ", ".join(f"{name} {value}" for name, value in machine.items())
    replace_section(Path("docs/speed.md"), "bench", "\n\n".join([f"Measured {date}: {described}.", *tables]))


if __name__ == "__main__":
    main()
