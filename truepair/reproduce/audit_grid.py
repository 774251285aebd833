"""Run the table of the audit: data × kind of noise × rate × seed, resumable, one small JSON per finished audit.

    python -m truepair.reproduce.audit_grid --root DATA_FOLDER --jobs 2
    python -m truepair.reproduce.audit_report

Each audit is made by cross-fitting with the defaults, and scored against the truth beside what others do: the plain
cosine of the same held-out models, a mixture of losses (NCR's way), LEMoN's score, and each indicator alone.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np

from truepair.data.open import load
from truepair.data.pairs import Array, BoolArray, Pairs
from truepair.errors import InputError
from truepair.files import write_json_atomically
from truepair.reproduce.grid import is_done, run_all

DATA = ("fashion", "emoji", "scenes")
KINDS = ("random", "hard")
RATES = (0.0, 0.1, 0.2, 0.4, 0.6)
NCR_EPOCHS = 5


@dataclass(frozen=True)
class AuditCell:
    """One audit of the grid."""

    data: str
    kind: str
    noise: float
    seed: int

    @property
    def name(self) -> str:
        return f"{self.data}-{self.kind}{round(100 * self.noise)}-seed{self.seed}"

    @property
    def command(self) -> str:
        words = ["python -m truepair.reproduce.audit_grid", *self.options()]
        return " ".join(words)

    def options(self) -> list[str]:
        wanted = {"--data": self.data, "--kinds": self.kind, "--rates": str(self.noise), "--seeds": str(self.seed)}
        return [word for option in wanted.items() for word in option]


def load_labelled(data: str, root: Path) -> Pairs:
    """The pairs of a data set, with the class that hard noise stays within.

    `fashion`: the 12,000 training pairs, 61 article types and more; `emoji`: 6,153 drawings with their names, ten
    groups; `scenes`: 1,000 drawn pictures with five captions each, the kind of the first object.
    """
    if data == "fashion":
        return load(root / "fashion_precomp", "train", label="articleType")
    if data == "emoji":
        from truepair.data.collection import PairsCollection
        from truepair.data.open_collection import open_collection

        collection = open_collection(root / "emoji", caption="first", label="group", progress=False)
        assert isinstance(collection, PairsCollection)
        return collection.pairs
    return labelled_scenes()


def labelled_scenes() -> Pairs:
    from truepair.data.formats.scenes.scene_drawing import KINDS as OBJECTS
    from truepair.data.formats.scenes.scenes import draw_scenes

    pairs = load("scenes:1000")
    first = draw_scenes(1000, seed=0, split="train").factors.kind[:, 0]
    return replace(pairs, labels=first[pairs.image_index].astype(np.int64), class_names=tuple(OBJECTS))


def audit_cell(cell: AuditCell, root: Path, runs: Path) -> dict[str, Any]:
    """One audit against the truth, all rows of the table: row → figures."""
    import torch

    from truepair.audit.options import CrossFitting
    from truepair.audit.scoring.crossfit import cross_fit
    from truepair.audit.verdict.against_truth import scores_against
    from truepair.audit.verdict.verdict import judge
    from truepair.data.noise import inject_noise

    torch.set_num_threads(1)
    start = time.perf_counter()
    kind: Literal["class", "caption"] = "class" if cell.kind == "hard" else "caption"
    pairs = inject_noise(load_labelled(cell.data, root), cell.noise, kind=kind, seed=cell.seed)
    mismatched = pairs.mismatched
    assert mismatched is not None
    given = pairs.without_truth()
    options = CrossFitting(seed=cell.seed)
    seen = cross_fit(given, options, runs / cell.name / "crossfit", progress=False)
    yardstick = {name: known.evidence for name, known in seen.yardstick.items()}
    verdict = judge(seen.given.evidence, yardstick, held_out=seen.held_out, local=seen.local, seed=cell.seed)
    seconds = time.perf_counter() - start
    rows: dict[str, Any] = {"verdict": scores_against(verdict, mismatched)}
    rows["verdict"] |= {
        "estimate": verdict.noise_rate,
        "estimate_low": verdict.noise_rate_low,
        "estimate_high": verdict.noise_rate_high,
        "flagged": float(verdict.flagged.mean()),
        "two_groups": verdict.two_groups,
        "details": verdict.details,
    }
    columns = {**seen.given.columns, "lemon": lemon_of(seen)}
    columns["loss mixture"] = losses_of(given, cell, runs)
    for name, values in columns.items():
        rows[name] = by_mixture(values, mismatched)
    return {"rows": rows, "pairs": len(pairs), "mismatch_rate": pairs.mismatch_rate, "seconds": round(seconds, 1)}


def by_mixture(values: Array, mismatched: BoolArray) -> dict[str, Any]:
    """The figures of one score alone, judged the usual way: by two normal distributions of it."""
    from truepair.audit.verdict.against_truth import scores_against
    from truepair.audit.verdict.mixture_verdict import judge_by_mixture
    from truepair.evaluation.detection import detection

    verdict = judge_by_mixture(values.astype(np.float64)[:, None])
    found = scores_against(verdict, mismatched)
    ranking = detection(values, mismatched)
    del found["reliability"]
    return {
        **found,
        "auroc": ranking["auroc"],
        "average_precision": ranking["average_precision"],
        "estimate": verdict.noise_rate,
        "flagged": float(verdict.flagged.mean()),
        "two_groups": verdict.two_groups,
    }


def lemon_of(seen: Any) -> Array:
    """LEMoN's score of every pair, by the same held-out models."""
    import torch

    from truepair.audit.scoring.lemon import lemon_score

    scores = np.empty(len(seen.rows), dtype=np.float32)
    for space in seen.judges:
        rows = torch.from_numpy(space.judged)
        images, texts = space.vectors(space.judged)
        found = lemon_score(images, texts, space.bank, image_rows=rows, text_rows=rows)
        scores[space.judged] = found.numpy()
    return scores


def losses_of(pairs: Pairs, cell: AuditCell, runs: Path) -> Array:
    """−loss of every pair after a warm-up of plain InfoNCE on all pairs (NCR divides by a mixture of these)."""
    from truepair.audit.options import CrossFitting
    from truepair.audit.scoring.crossfit import remembered
    from truepair.engines.config import GlobalConfig
    from truepair.training.fit import fit
    from truepair.training.setup import Setup

    path = runs / cell.name / "warm-up"
    options = CrossFitting()
    run = fit(
        pairs,
        method="infonce",
        setup=Setup(model=GlobalConfig(width=options.width)),
        out=path,
        resume=(path / "config.json").exists(),
        progress=False,
        epochs=NCR_EPOCHS,
        batch_size=options.batch_size,
        seed=cell.seed,
    )
    negative_loss: Array = np.log(np.maximum(remembered(run), 1e-12))
    return negative_loss


def run_cell(cell: AuditCell, root: Path, results: Path, runs: Path) -> None:
    """Audit one cell in a process of its own; nothing to do if its record is there."""
    if is_done(cell, results):
        return
    command = [sys.executable, "-m", "truepair.reproduce.audit_grid", *cell.options(), "--root", str(root)]
    command += ["--results", str(results), "--runs", str(runs), "--here"]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    if done.returncode:
        raise InputError(f"{cell.name} failed: {done.stderr.strip()[-2000:]}")


def audit_here(cell: AuditCell, root: Path, results: Path, runs: Path) -> None:
    from truepair import __version__

    found = audit_cell(cell, root, runs)
    record = {
        "cell": asdict(cell),
        "command": cell.command,
        "truepair": __version__,
        "date": time.strftime("%Y-%m-%d"),
        "threads": 1,
        **found,
    }
    write_json_atomically(results / f"{cell.name}.json", record)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", nargs="+", default=DATA, choices=DATA, help="data sets")
    parser.add_argument("--kinds", nargs="+", default=KINDS, choices=KINDS, help="kinds of noise")
    parser.add_argument("--rates", nargs="+", type=float, default=RATES, help="noise rates")
    parser.add_argument("--seeds", nargs="+", type=int, default=(0,), help="seeds")
    parser.add_argument("--root", type=Path, default=Path("../shared/data"), help="folder that holds the data sets")
    parser.add_argument("--jobs", type=int, default=2, help="audits at a time, one CPU thread each [default: 2]")
    parser.add_argument("--results", type=Path, default=Path("results/audit"), help="JSON records [results/audit]")
    parser.add_argument("--runs", type=Path, default=Path("runs/audit"), help="folders of models, not kept")
    parser.add_argument("--here", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    options.results.mkdir(parents=True, exist_ok=True)
    options.runs.mkdir(parents=True, exist_ok=True)
    cells = [
        AuditCell(data, kind, rate, seed)
        for seed in options.seeds
        for rate in options.rates
        for data in options.data
        for kind in options.kinds
        if rate or kind == "random"  # without noise both kinds are the same
    ]
    if options.here:
        audit_here(cells[0], options.root, options.results, options.runs)
        return
    run_all(cells, lambda cell: run_cell(cell, options.root, options.results, options.runs), jobs=options.jobs)


if __name__ == "__main__":
    main()
