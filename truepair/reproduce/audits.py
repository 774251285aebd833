"""Cells of the audit: audits against the truth, by one method or another, and training on what one keeps."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

from truepair.reproduce.cells import Cell, Context, Places, Record, set_aside_outdated, train
from truepair.reproduce.processes import truepair
from truepair.reproduce.training import cost_of, methods_of
from truepair.training.run_folder import RunFolder


def audit_cells(
    at: Context,
    *,
    data: str,
    rates: Sequence[float],
    seeds: Sequence[int],
    kinds: Sequence[str] = ("random", "hard"),
) -> Iterator[Cell]:
    """Kinds of noise × rates × seeds of one source, with the defaults; without noise there is one kind."""
    for seed in seeds:
        for rate in rates:
            for kind in kinds if rate else kinds[:1]:
                facts = {"data": data, "kind": kind, "noise": rate, "seed": seed}
                name = f"{data}-{kind}{round(100 * rate)}-seed{seed}"
                words = ["--data", data, "--kinds", kind, "--rates", str(rate), "--seeds", str(seed)]
                command = " ".join(["python -m truepair.reproduce run", at.table, *words])
                yield Cell(name, facts, command, partial(measure_audit, f"{at.table}/{name}", list(facts.values())))


def measure_audit(folder: str, facts: list[object], places: Places) -> Record:
    runs = places.runs / folder
    runs.mkdir(parents=True, exist_ok=True)
    words = [*map(str, facts), str(places.data), str(runs)]
    printed = truepair(*words, module="truepair.reproduce.audit_rows")
    return {"threads": 1, **json.loads(printed.splitlines()[-1])}


def cells_by_method(
    at: Context,
    *,
    data: str,
    options: str,
    rates: Sequence[float],
    methods: Sequence[str],
    seeds: Sequence[int] = (0, 1, 2),
) -> Iterator[Cell]:
    """Audits of one source whose models are trained by one method or another: rates × seeds × methods."""
    for seed in seeds:
        for rate in rates:
            for method in methods:
                facts = {"data": data, "method": method, "noise": rate, "seed": seed}
                noise = ["--noise", str(rate), "--noise-seed", str(seed), "--seed", str(seed)]
                words = [*options.split(), *noise, "--method", method]
                name = f"{data}-{method}-noise{round(100 * rate)}-seed{seed}"
                command = " ".join(["truepair audit", data, *words, "--out", name])
                yield Cell(name, facts, command, partial(measure_by_method, f"{at.table}/{name}", data, words))


def measure_by_method(folder: str, data: str, words: list[str], places: Places) -> Record:
    """What an audit says of itself and of the truth, and what training its models took; one whose models are of an
    earlier revision of the method is made anew.
    """
    out = places.runs / folder
    if runs := models_of(out):
        set_aside_outdated(runs[0], whole=out)
    if not (out / "summary.json").exists():
        truepair("audit", places.source(data), *words, "--threads", "1", "--quiet", "--out", str(out))
    summary = json.loads((out / "summary.json").read_text(encoding="utf-8"))
    shares = ("mismatch_rate", "noise_rate", "noise_rate_low", "noise_rate_high", "random", "near")
    kept = ("pairs", *shares, "flagged", "scores")
    runs = models_of(out)
    return {"threads": 1, **methods_of(runs), **{key: summary[key] for key in kept}, **cost_of(runs)}


def models_of(audit: Path) -> list[RunFolder]:
    """The runs of an audit, one for each fold that was begun."""
    return [RunFolder(path) for path in sorted((audit / "work").rglob("fold*")) if path.is_dir()]


def retraining_cells(
    at: Context,
    *,
    data: str,
    label: str,
    rate: float,
    epochs: int,
    settings: str,
    seeds: Sequence[int] = (0, 1, 2),
) -> Iterator[Cell]:
    """InfoNCE on what an audit of mismatched data keeps, on the truly matched pairs, and on all of them."""
    for seed in seeds:
        facts = {"data": data, "noise": rate, "seed": seed, "epochs": epochs}
        name = f"{data}-random{round(100 * rate)}-seed{seed}"
        plain = ["--method", "infonce", "--seed", str(seed), "--epochs", str(epochs), *settings.split()]
        measure = partial(measure_retraining, f"{at.table}/{name}", data, label, rate, seed, plain)
        yield Cell(name, facts, f"python -m truepair.reproduce run {at.table} --data {data} --seeds {seed}", measure)


def measure_retraining(
    folder: str, data: str, label: str, rate: float, seed: int, plain: list[str], places: Places
) -> Record:
    here, source = places.runs / folder, places.source(data)
    audit, kept = here / "audit", here / "audit" / "export" / "own"
    noise = ["--noise", str(rate), "--noise-seed", str(seed)]
    if not kept.exists():
        words = ["--label", label, *noise, "--export", "own", "--seed", str(seed), "--threads", "1", "--quiet"]
        truepair("audit", source, *words, "--out", str(audit))
    summary = json.loads((audit / "summary.json").read_text(encoding="utf-8"))
    runs = {
        "kept": train(str(kept), plain, here / "kept"),
        "truly matched": train(source, [*plain, *noise, "--oracle"], here / "oracle"),
        "all": train(source, [*plain, *noise], here / "all"),
    }
    results = {row: json.loads(run.result.read_text(encoding="utf-8")) for row, run in runs.items()}
    figures = {row: {key: found[key] for key in ("pairs", "dev", "test")} for row, found in results.items()}
    return {"audit": {key: summary[key] for key in ("pairs", "flagged", "noise_rate", "scores")}, **figures}
