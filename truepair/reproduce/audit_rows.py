"""One audit against the truth, beside what others do: `python -m truepair.reproduce.audit_rows DATA KIND RATE SEED …`.

Each audit is made by cross-fitting with the defaults, and scored against the truth beside the plain cosine of the same
held-out models, a mixture of losses (NCR), LEMoN's score, and each indicator alone.
"""

from __future__ import annotations

import json
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from truepair.data.noise import NoiseKind, inject_noise
from truepair.data.open import load
from truepair.data.pairs import Array, BoolArray, Pairs
from truepair.device import set_threads

if TYPE_CHECKING:
    from truepair.audit.result import Verdict

NCR_EPOCHS = 5
INJECTED: dict[str, NoiseKind] = {"random": "caption", "hard": "class", "near": "nearest"}
PHOTOGRAPHS = {"photographs": "test", "photographs-train": "train"}  # → split of flickr8k


def load_labelled(data: str, root: Path) -> Pairs:
    """The pairs of a data set, with the class that hard noise stays within.

    `photographs`: the 1,000 test images of `flickr8k` with five captions each, described by the encoder `both`;
    `photographs-train`: its 6,000 training images;
    `fashion`: the 12,000 training pairs, 61 article types and more; `emoji`: 6,153 drawings with their names, ten
    groups; `scenes`: 1,000 drawn pictures with five captions each, the kind of the first object; `icons`: 7,447
    pictures with their names, described by `both`, no classes.
    """
    from truepair.data.open import open as open_source

    if data in PHOTOGRAPHS:
        return load(root / "flickr8k", PHOTOGRAPHS[data], encoder="both")
    if data == "fashion":
        return load(root / "fashion_precomp", "train", label="articleType")
    if data == "emoji":
        return open_source(root / "emoji", caption="first", label="group", encoder="windows", progress=False).load()
    if data == "icons":
        return open_source(root / "icons", encoder="both", progress=False).load()
    from truepair.data.formats.scenes.scene_drawing import KINDS as OBJECTS
    from truepair.data.formats.scenes.scenes import draw_scenes

    pairs = load("scenes:1000")
    first = draw_scenes(1000, seed=0, split="train").factors.kind[:, 0]
    return replace(pairs, labels=first[pairs.image_index].astype(np.int64), class_names=tuple(OBJECTS))


def audit_rows(data: str, kind: str, noise: float, seed: int, root: Path, runs: Path) -> dict[str, Any]:
    """One audit against the truth, all rows of the table: row → figures."""

    from truepair.audit.options import AuditOptions, CrossFitting
    from truepair.audit.scoring.cross_fitting import cross_fit
    from truepair.audit.verdict.verdict import verdict_of_scored
    from truepair.training.run_folder import read_lines

    set_threads(1)
    folds = (runs / "crossfit").glob("fold*/timings.jsonl")
    before = sum(line["seconds"] for path in folds for line in read_lines(path))  # of an audit that was cut off
    start = time.perf_counter() - before
    pairs = inject_noise(load_labelled(data, root), noise, kind=INJECTED[kind], seed=seed)
    mismatched = pairs.mismatched
    assert mismatched is not None
    given = pairs.without_truth()
    seen = cross_fit(given, CrossFitting(), runs / "crossfit", bank=AuditOptions().bank, seed=seed)
    verdict = verdict_of_scored(seen, seed=seed)
    seconds = time.perf_counter() - start
    ends = {"estimate_low": verdict.noise_rate_low, "estimate_high": verdict.noise_rate_high}
    rows = {"verdict": {**figures_of(verdict, mismatched), **ends, "details": verdict.details}}
    columns = {**seen.given.columns, "lemon": lemon_of(seen), "loss mixture": losses_of(given, seed, runs)}
    rows |= {name: by_mixture(values, mismatched) for name, values in columns.items()}
    return {"rows": rows, "pairs": len(pairs), "mismatch_rate": pairs.mismatch_rate, "seconds": round(seconds, 1)}


def figures_of(verdict: Verdict, mismatched: BoolArray) -> dict[str, Any]:
    from truepair.audit.verdict.against_truth import scores_against

    told = {"estimate": verdict.noise_rate, "flagged": float(verdict.flagged.mean()), "two_groups": verdict.two_groups}
    return {**scores_against(verdict, mismatched), **told}


def by_mixture(values: Array, mismatched: BoolArray) -> dict[str, Any]:
    """The figures of one score alone, decided by two normal distributions of it."""
    from truepair.audit.verdict.mixture import mixture_verdict
    from truepair.evaluation.detection import detection

    found = figures_of(mixture_verdict(values.astype(np.float64)[:, None]), mismatched)
    del found["reliability"]
    ranking = detection(values, mismatched)
    return {**found, "auroc": ranking["auroc"], "average_precision": ranking["average_precision"]}


def lemon_of(seen: Any) -> Array:
    """LEMoN's score of every pair, by the same held-out models."""
    import torch

    from truepair.reproduce.lemon import lemon_score

    scores = np.empty(len(seen.rows), dtype=np.float32)
    for space in seen.spaces:
        rows = torch.from_numpy(space.covered)
        images, texts = space.vectors(space.covered)
        found = lemon_score(images, texts, space.bank, image_rows=rows, text_rows=rows)
        scores[space.covered] = found.numpy()
    return scores


def losses_of(pairs: Pairs, seed: int, runs: Path) -> Array:
    """−loss of every pair after a warm-up of plain InfoNCE on all pairs (NCR divides by a mixture of these)."""
    from truepair.audit.options import CrossFitting
    from truepair.audit.scoring.cross_fitting import remembered
    from truepair.engines.config import GlobalConfig
    from truepair.training.config import TrainingConfig
    from truepair.training.fit import fit
    from truepair.training.setup import Setup

    path, options = runs / "warm-up", CrossFitting()
    training = TrainingConfig(epochs=NCR_EPOCHS, batch_size=options.batch_size, seed=seed)
    setup = Setup(training=training, model=GlobalConfig(width=options.width_for(len(pairs))))
    resume = (path / "config.json").exists()
    run = fit(pairs, method="infonce", setup=setup, out=path, resume=resume, progress=False)
    return np.log(np.maximum(remembered(run), 1e-12))


if __name__ == "__main__":
    data, kind, noise, seed, root, runs = sys.argv[1:]
    print(json.dumps(audit_rows(data, kind, float(noise), int(seed), Path(root), Path(runs)), allow_nan=False))
