"""Is the set that an audit keeps worth training on? InfoNCE on the kept pairs, on the truly matched ones, and on all.

    python -m truepair.reproduce.audit_retrain ../shared/data/fashion_precomp

Mismatches a share of the training pairs, audits them by cross-fitting, exports the kept pairs in the folder's own
format, and trains the same plain model on each of the three sets. One JSON under results/audit-retrain.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from truepair import __version__
from truepair.errors import InputError
from truepair.files import write_json_atomically
from truepair.training.run_folder import RunFolder


def training_options(seed: int, epochs: int) -> list[str]:
    """Those of the noise table."""
    return ["--method", "infonce", "--seed", str(seed), "--epochs", str(epochs), "--word-share", "0.1"]


def truepair(*words: str) -> str:
    """Run a command of the package in a process of its own.

    Raises:
        InputError: it failed; with what it said.
    """
    command = [sys.executable, "-m", "truepair", *words]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise InputError(f"{' '.join(words)} failed: {done.stderr.strip()[-2000:]}")
    return done.stdout


def train(data: Path, out: Path, options: list[str]) -> dict[str, Any]:
    """The result of a run; one that is there is not trained again."""
    folder = RunFolder(out)
    if not folder.finished:
        truepair("train", str(data), "--out", str(out), "--threads", "1", "--quiet", *options)
    result: dict[str, Any] = json.loads(folder.result.read_text(encoding="utf-8"))
    return {"pairs": result["pairs"], "dev": result["dev"], "test": result["test"]}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path, help="precomp folder with train, dev and test")
    parser.add_argument("--noise", type=float, default=0.4, help="share of mismatched pairs [default: 0.4]")
    parser.add_argument("--seed", type=int, default=0, help="seed of noise, audit and training [default: 0]")
    parser.add_argument("--epochs", type=int, default=10, help="epochs of each training [default: 10]")
    parser.add_argument("--label", default="articleType", help="label column, or '' for none [default: articleType]")
    parser.add_argument("--runs", type=Path, default=Path("runs/audit-retrain"), help="folder for audits and runs")
    parser.add_argument("--results", type=Path, default=Path("results/audit-retrain"), help="folder of records")
    options = parser.parse_args()
    name = f"{options.data.name}-random{round(100 * options.noise)}-seed{options.seed}"
    place = options.runs / name
    place.mkdir(parents=True, exist_ok=True)
    options.results.mkdir(parents=True, exist_ok=True)
    noise = ["--noise", str(options.noise), "--noise-seed", str(options.seed)]
    kept = place / "audit" / "export" / "own"
    if not kept.exists():
        label = ["--label", options.label] if options.label else []
        out = [
            "--out",
            str(place / "audit"),
            "--export",
            "own",
            "--seed",
            str(options.seed),
            "--threads",
            "1",
            "--quiet",
        ]
        truepair("audit", str(options.data), *label, *noise, *out)
    summary = json.loads((place / "audit" / "summary.json").read_text(encoding="utf-8"))
    plain = training_options(options.seed, options.epochs)
    record = {
        "command": f"python -m truepair.reproduce.audit_retrain {options.data.name} --noise {options.noise} "
        f"--seed {options.seed} --epochs {options.epochs}",
        "truepair": __version__,
        "date": time.strftime("%Y-%m-%d"),
        "audit": {key: summary[key] for key in ("pairs", "flagged", "noise_rate", "scores")},
        "kept": train(kept, place / "kept", plain),
        "truly matched": train(options.data, place / "oracle", [*plain, *noise, "--oracle"]),
        "all": train(options.data, place / "all", [*plain, *noise]),
    }
    write_json_atomically(options.results / f"{name}.json", record)
    for row in ("kept", "truly matched", "all"):
        print(f"{row:14s} {record[row]['pairs']:6d} pairs  test rSum {record[row]['test']['rsum']:.1f}")  # type: ignore[index]


if __name__ == "__main__":
    main()
