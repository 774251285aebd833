"""All benchmarks, one table after the other: `python -m benchmarks [NAME …] [--write]`.

With `--write` the tables measured are kept in `results/bench.json`, those not measured stay as they are there, and all
of them are put into `docs/speed.md`.
"""

from __future__ import annotations

import argparse
import json
import platform
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch

from benchmarks import (
    bench_audit,
    bench_class_noise,
    bench_disncl,
    bench_encoders,
    bench_evaluation,
    bench_first_labels,
    bench_index,
    bench_linear_algebra,
    bench_local,
    bench_optimizer,
    bench_pieces,
    bench_ranks,
    bench_review,
    bench_serve,
    bench_start,
    bench_training,
    bench_transport,
    bench_two_stage,
)
from truepair import __version__
from truepair.audit.scoring.by_embeddings import BANK_SIZE
from truepair.files import write_json_atomically
from truepair.reproduce.report import put_text

RESULTS = Path("results/bench.json")

BENCHMARKS: dict[str, tuple[str, Any]] = {
    "start": ("A new process, up to its first step of AdamW", bench_start),
    "training": (f"One training step, batch {bench_training.BATCH}", bench_training),
    "linear-algebra": (
        "One training step, one thread, with PyTorch's linear algebra and with OpenBLAS",
        bench_linear_algebra,
    ),
    "optimizer": ("A step of AdamW, weights of the engines of the table above", bench_optimizer),
    "local": ("SGR and SAF against the loop over captions", bench_local),
    "disncl": (
        f"Parts of DisNCL, one training step, {bench_disncl.CLEAN} of {bench_training.BATCH} pairs clean",
        bench_disncl,
    ),
    "pieces": (f"A training step of {bench_pieces.BATCH:,} pairs, encoded at once and in pieces", bench_pieces),
    "ranks": ("Ranks of a similarity matrix", bench_ranks),
    "evaluation": ("Evaluation, from encodings to figures", bench_evaluation),
    "transport": ("Optimal transport and label correction", bench_transport),
    "audit": (
        f"Embeddings of width {bench_audit.WIDTH}: scored against a bank of {BANK_SIZE:,}, and audited as a whole",
        bench_audit,
    ),
    "first-labels": ("Held-out scores of pairs by cross-fitted CCA, 512 and 256 numbers a side", bench_first_labels),
    "class-noise": (
        f"What linear models that have not learned the labels say of them, {bench_class_noise.CLASSES} classes",
        bench_class_noise,
    ),
    "encoders": ("Encoders of pictures: 256 drawings of 224 x 224 as JPEG", bench_encoders),
    "index": (f"An index of vectors of width {bench_index.WIDTH}", bench_index),
    "serve": ("Words searched for over HTTP, server and clients on one machine", bench_serve),
    "review": ("Review in a headless Chromium: the first picture, and from a verdict to the next", bench_review),
    "two-stage": ("A global engine proposes, a local one ranks", bench_two_stage),
}


def measure(name: str) -> dict[str, Any]:
    """The record of one benchmark: what was measured when on what, the rows, and the table, which is printed."""
    title, benchmark = BENCHMARKS[name]
    rows = benchmark.measure()
    table = benchmark.table(rows)
    print(f"\n{title}\n\n{table}", flush=True)
    return {
        "title": title,
        "truepair": __version__,
        "date": time.strftime("%Y-%m-%d"),
        "machine": {"processor": platform.machine(), "threads": torch.get_num_threads(), "torch": torch.__version__},
        "rows": [asdict(row) for row in rows],
        "table": table,
    }


def section(record: dict[str, Any]) -> str:
    """A table with its title, machine and date, in Markdown."""
    machine = ", ".join(f"{name} {value}" for name, value in record["machine"].items())
    return f"**{record['title']}** ({record['date']}; {machine})\n\n```\n{record['table']}\n```"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"which: {', '.join(BENCHMARKS)} [default: all]")
    parser.add_argument("--write", action="store_true", help="keep rows and tables in results/ and docs/")
    options = parser.parse_args()
    unknown = [name for name in options.names if name not in BENCHMARKS]
    if unknown:
        parser.error(f"no benchmark is called {unknown[0]}; there are {', '.join(BENCHMARKS)}")
    for name in options.names or BENCHMARKS:
        record = measure(name)
        if options.write:
            keep(name, record)


def keep(name: str, record: dict[str, Any]) -> None:
    kept = json.loads(RESULTS.read_text(encoding="utf-8")) if RESULTS.exists() else {}
    kept[name] = record
    write_json_atomically(RESULTS, {known: kept[known] for known in BENCHMARKS if known in kept})
    put_text(Path("docs/speed.md"), "bench", "\n\n".join(section(kept[known]) for known in BENCHMARKS if known in kept))


if __name__ == "__main__":
    main()
