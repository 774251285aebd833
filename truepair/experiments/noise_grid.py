"""Run the noise table: methods × noise rates × seeds, resumable, one small JSON per finished run.

    python -m truepair.experiments.noise_grid DATA --jobs 2
    python -m truepair.experiments.noise_report

The first command may be stopped at any time and started again: finished runs are skipped, a run that was cut off goes
on where it stopped. The second one writes `docs/results.md` from what is there.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from tqdm import tqdm

from truepair import __version__
from truepair.errors import InputError
from truepair.files import write_json_atomically
from truepair.training.run_folder import RunFolder, read_lines

METHODS = ("infonce", "crcl", "crcl-single", "triplet", "oracle")
EXPLORED = ("crcl-short-pieces", "oracle-gpo")  # not in the table: they explain two defaults
RATES = (0.0, 0.2, 0.4, 0.6, 0.8)
SEEDS = (0, 1, 2)

# Titles of six words keep too little with the default 0.2: chosen on dev with the oracle, the same for all methods.
WORD_SHARE = "0.1"

# Epochs of the one self-refining piece, per epoch of the last one. (The paper: three pieces of 7/32, with twelve times
# the steps each.)
PIECE = 0.8


@dataclass(frozen=True)
class Cell:
    """One run of the grid. `oracle` is InfoNCE on the truly matched pairs only; `crcl-single` has no refining piece."""

    data: str
    method: str
    noise: float
    seed: int
    epochs: int

    @property
    def name(self) -> str:
        return f"{self.data}-{self.method}-noise{round(100 * self.noise)}-seed{self.seed}"

    @property
    def command(self) -> str:
        return " ".join(["truepair train", self.data, *self.options()])

    def options(self) -> list[str]:
        """Command-line options of the run, its data and folder left out."""
        method = {
            "oracle": ["--method", "infonce", "--oracle"],
            "crcl": ["--method", "crcl", "--crcl-pieces", str(round(PIECE * self.epochs))],
            "crcl-single": ["--method", "crcl", "--crcl-pieces", "none"],
            "crcl-short-pieces": ["--method", "crcl", "--crcl-pieces", "3,3,3"],
            "oracle-gpo": ["--method", "infonce", "--oracle", "--pooling", "gpo"],
        }.get(self.method, ["--method", self.method])
        noise = ["--noise", str(self.noise), "--seed", str(self.seed)]
        return [*method, *noise, "--epochs", str(self.epochs), "--word-share", WORD_SHARE]


def cells_of(
    data: str, methods: tuple[str, ...], rates: tuple[float, ...], seeds: tuple[int, ...], epochs: int
) -> list[Cell]:
    """All runs, the first seed of everything first; without noise the oracle is InfoNCE itself and is not run."""
    return [
        Cell(data, method, rate, seed, epochs)
        for seed in seeds
        for rate in sorted(rates, key=lambda rate: (rate != 0.4, rate))
        for method in methods
        if method != "oracle" or rate > 0
    ]


def run_cell(cell: Cell, source: Path, results: Path, runs: Path) -> None:
    """Train one cell in a process of its own and keep its figures; nothing to do if they are there."""
    record = results / f"{cell.name}.json"
    if record.exists():
        command = json.loads(record.read_text(encoding="utf-8"))["command"]
        if command == cell.command:
            return
        raise InputError(f"{record} is of another command ({command}); move it away, or write to another --results")
    folder = RunFolder(runs / cell.name)
    command = [sys.executable, "-m", "truepair", "train"]
    if folder.config.exists():
        command += ["--resume", str(folder.path)]
    else:
        command += [str(source), *cell.options(), "--out", str(folder.path), "--threads", "1"]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run([*command, "--quiet"], capture_output=True, text=True, env=environment, check=False)
    if done.returncode:
        raise InputError(f"{cell.name} failed: {done.stderr.strip()}")
    write_json_atomically(record, record_of(cell, folder))


def record_of(cell: Cell, folder: RunFolder) -> dict[str, Any]:
    """What is kept of a finished run: what it was, what came out, when, and how long it took."""
    timings = read_lines(folder.timings)
    config = folder.read_config()
    return {
        "cell": asdict(cell),
        "command": cell.command,
        "truepair": __version__,
        "date": time.strftime("%Y-%m-%d"),
        "options": {name: config[name] for name in ("method", "model", "augmentation", "training")},
        "threads": config["threads"],
        "result": json.loads(folder.result.read_text(encoding="utf-8")),
        "epochs_trained": len(timings),
        "training_seconds": round(sum(line["seconds"] for line in timings), 1),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("source", type=Path, metavar="DATA", help="a folder in the precomp layout")
    parser.add_argument("--jobs", type=int, default=2, help="runs at a time, one CPU thread each [default: 2]")
    parser.add_argument("--epochs", type=int, default=10, help="epochs of each (CRCL: of its last piece) [default: 10]")
    parser.add_argument("--methods", nargs="+", default=METHODS, choices=METHODS + EXPLORED, help="rows of the table")
    parser.add_argument("--rates", nargs="+", type=float, default=RATES, help="noise rates")
    parser.add_argument("--seeds", nargs="+", type=int, default=SEEDS, help="seeds")
    parser.add_argument("--results", type=Path, default=Path("results/noise"), help="JSON records [results/noise]")
    parser.add_argument("--runs", type=Path, default=Path("runs/noise"), help="run folders, not kept [runs/noise]")
    options = parser.parse_args()
    cells = cells_of(
        options.source.resolve().name,
        tuple(options.methods),
        tuple(options.rates),
        tuple(options.seeds),
        options.epochs,
    )
    options.results.mkdir(parents=True, exist_ok=True)
    pool = ThreadPoolExecutor(options.jobs)
    started = [pool.submit(run_cell, cell, options.source, options.results, options.runs) for cell in cells]
    try:
        for _ in tqdm(as_completed(started), total=len(cells), unit="run"):
            pass
        for cell in started:
            cell.result()
    except KeyboardInterrupt:
        sys.exit("Interrupted; the same command continues.")
    except InputError as error:
        sys.exit(str(error))
    finally:
        pool.shutdown(cancel_futures=True)


if __name__ == "__main__":
    main()
