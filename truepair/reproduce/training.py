"""Cells of `truepair train`, `truepair evaluate` and `truepair analyse`."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from truepair.errors import DivergedError
from truepair.reproduce.cells import Cell, Context, Places, Record, train
from truepair.reproduce.processes import truepair
from truepair.training.run_folder import RunFolder, read_lines


def training_cells(
    at: Context,
    *,
    data: str,
    methods: str,
    rates: Sequence[float],
    settings: str,
    seeds: Sequence[int] = (0, 1, 2),
    epochs: int | None = None,
    engine: str = "global",
    members: Sequence[str] = (),
    method_options: Mapping[str, str] | None = None,
    noise: str = "noise",
    noise_kind: str = "caption",
) -> Iterator[Cell]:
    """Rows × rates × seeds of one source with one engine. Rows with --oracle or --clean-pairs, which need
    the truth, are not run without noise.

    Args:
        methods: names of rows, separated by spaces.
        settings: options of every run; `{engine}` stands for the engine.
        members: engines whose runs of the same table are scored together, by the mean of their similarities.
        method_options: row, or `*` for all → options of its method for this source and engine.
        noise: the option that takes the rate, `noise` or `label-noise`.
        noise_kind: what is shuffled, where that is not single captions; `settings` do not name it then.
    """
    settings += "" if noise_kind == "caption" else f" --noise-kind {noise_kind}"
    for seed in seeds:
        for rate in rates:
            for method in methods.split():
                base, *options = at.rows[method].split()
                if rate == 0 and "--oracle" in options:
                    continue
                facts = {"data": data, "method": method, "noise": rate, "seed": seed}
                more = method_options or {}
                if rate == 0 and "--clean-pairs" in more.get(method, ""):
                    continue
                words = ["--method", base, *more.get(method, more.get("*", "")).split(), *options]
                words += [f"--{noise}", str(rate), "--seed", str(seed)]
                facts |= {"engine": engine} if epochs is None and engine != "global" else {}
                if epochs is not None:
                    facts |= {"epochs": epochs, "engine": engine}
                    words += ["--epochs", str(epochs)]
                words += settings.format(engine=engine).split()
                facts |= {} if noise_kind == "caption" else {"kind": noise_kind}
                what = "labels" if noise == "label-noise" else "noise" if noise_kind == "caption" else noise_kind
                name = f"{method}-{what}{round(100 * rate)}-seed{seed}"
                runs = [f"{data}-{member}-{name}" for member in members]
                name = f"{data}-{name}" if engine == "global" else f"{data}-{engine}-{name}"
                if runs:
                    images = words[words.index("--score-images") + 1]
                    command = f"truepair evaluate {' '.join(runs)} {data} --images {images}"
                    yield Cell(name, facts, command, partial(measure_ensemble, at, runs, data, images))
                else:
                    command = " ".join(["truepair train", data, *words])
                    yield Cell(name, facts, command, partial(measure_training, f"{at.table}/{name}", data, words))


def measure_training(folder: str, data: str, options: list[str], places: Places) -> Record:
    """The record of a finished run, or of one that diverged: in which epoch, and what was said."""
    path = places.runs / folder
    try:
        return trained_record(train(places.source(data), options, path))
    except DivergedError as error:
        return record_of(RunFolder(path), told(error, path))


def told(error: DivergedError, path: Path) -> Record:
    """What is kept of a run that diverged: in which epoch, and what was said."""
    said = str(error).splitlines()[-1].removeprefix("truepair: error: ").replace(str(path), path.name)
    return {"diverged": {"epoch": len(read_lines(RunFolder(path).metrics)) + 1, "said": said}}


def trained_record(run: RunFolder) -> Record:
    """What is kept of a finished run: its options, its figures, its cost, and a line an epoch."""
    return record_of(run, {"result": json.loads(run.result.read_text(encoding="utf-8"))})


def record_of(run: RunFolder, outcome: Record) -> Record:
    """What is kept of a run, with how it ended."""
    config = run.read_config()
    if isinstance(model := config["model"].get("encoder"), str):
        config["model"]["encoder"] = Path(model).name  # wherever it lay
    return {
        "options": {name: config[name] for name in ("method", "model", "augmentation", "training") if name in config},
        "threads": config["threads"],
        **outcome,
        **cost_of([run]),
        "epochs": [epoch_of(line) for line in read_lines(run.metrics)],
    }


def methods_of(runs: list[RunFolder]) -> Record:
    """The methods that several runs are of, each once, with its revision."""
    kept = [run.read_config()["method"] for run in runs]
    found = {each["name"]: {key: each[key] for key in ("name", "revision") if key in each} for each in kept}
    return {"methods": [found[name] for name in sorted(found)]}


def cost_of(runs: list[RunFolder]) -> Record:
    """What training took, without scoring: seconds of the clock, and of processor time where the runs have it."""
    timings = [line for run in runs for line in read_lines(run.timings)]
    cost = {"epochs_trained": len(timings), "training_seconds": round(sum(line["seconds"] for line in timings), 1)}
    if timings and all("cpu_seconds" in line for line in timings):
        cost["cpu_seconds"] = round(sum(line["cpu_seconds"] for line in timings), 1)
    return cost | ({"preloaded": libraries} if (libraries := preloaded()) else {})


def preloaded() -> list[str]:
    """Libraries that take the place of others (LD_PRELOAD): with another linear algebra training takes other times."""
    return [Path(each).name for each in os.environ.get("LD_PRELOAD", "").replace(":", " ").split()]


def epoch_of(line: Record) -> Record:
    """What is kept of an epoch: the figure that selects the best one, detection, division."""
    dev, found = line["dev"] or {}, line["detection"] or {}
    scores = ("map", "map_i2t", "map_t2i") if "map" in dev else ("rsum",)
    kept = {f"dev_{name}": dev.get(name) for name in scores}
    kept |= {"auroc": found.get("auroc"), "division_accuracy": found.get("division_accuracy"), **line["division"]}
    if line.get("labels"):
        kept["corrected_accuracy"] = line["labels"]["corrected_accuracy"]
    rounded = {name: round(value, 4) if isinstance(value, float) else value for name, value in kept.items()}
    return {"epoch": line["epoch"], **rounded}


def measure_ensemble(at: Context, names: list[str], data: str, images: str, places: Places) -> Record:
    runs = [at.trained(f"{at.table}/{name}", places) for name in names]
    figures: dict[str, Any] = {}
    galleries: dict[str, Any] = {}
    for split in ("dev", "test"):
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "figures.json"
            words = [*(str(run.path) for run in runs), places.source(data), "--images", images, "--split", split]
            truepair("evaluate", *words, "--json", str(file))
            figures[split] = json.loads(file.read_text(encoding="utf-8"))
            galleries[split] = figures[split].pop("gallery")
    # What its members took is in their records.
    cost = {"epochs_trained": cost_of(runs)["epochs_trained"], "training_seconds": 0.0, "cpu_seconds": 0.0}
    return {
        "members": names,
        **methods_of(runs),
        "result": {**figures, "gallery": galleries, "detection": None},
        **cost,
    }


def analysis_cells(at: Context, *, name: str, data: str, run: str, against: str, **options: str) -> Iterator[Cell]:
    """Two DisNCL runs side by side: those of other cells, `TABLE/NAME`, or what `options` says of their names."""
    names = [folder.rpartition("/")[2] for folder in (run, against)]
    facts = {"data": data, "run": names[0], "against": names[1], "seed": 0}

    def measure(places: Places) -> Record:
        runs = [
            train(places.source(data), options[folder].split(), places.runs / at.table / folder)
            if folder in options
            else at.trained(folder, places)
            for folder in (run, against)
        ]
        with tempfile.TemporaryDirectory() as out:
            truepair("analyse", str(runs[0].path), "--against", str(runs[1].path), "--out", out)
            return {"analysis": kept_of(json.loads((Path(out) / "analysis.json").read_text(encoding="utf-8")), data)}

    yield Cell(name, facts, f"truepair analyse {names[0]} --against {names[1]}", measure)


def kept_of(analysis: Record, data: str) -> Record:
    """What a record keeps of an analysis: the name of the data, not where they lie, and no places of single items."""
    runs = {
        side: {name: value for name, value in found.items() if name != "plane"}
        for side in ("run", "against")
        if (found := analysis[side])
    }
    return {**analysis, "source": data, **runs}
