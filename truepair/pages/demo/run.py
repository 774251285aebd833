"""What the demo trains, in which order, and what it tells about it while and after."""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from truepair import __version__
from truepair.data.config import Augmentation, DataConfig
from truepair.data.noise import inject_noise
from truepair.data.open import is_drawn, load_splits
from truepair.data.pairs import Pairs
from truepair.device import resolve_device, threads
from truepair.engines.config import GlobalConfig
from truepair.errors import InputError, RunFolderError
from truepair.evaluation.retrieval import TABLE_FIGURES
from truepair.files import write_json_atomically, write_text_atomically
from truepair.methods import build_method
from truepair.training.config import TrainingConfig
from truepair.training.fit import Run, fit
from truepair.training.jobs import Job, read_job
from truepair.training.run_folder import RunFolder, differences, read_lines
from truepair.training.setup import Setup

SMALL = GlobalConfig(width=128, word_width=64, pooling="max")
"""An engine that trains in seconds and is large enough to learn wrong pairs by heart."""

LEARNING_RATE = 4e-3  # there is time for a few hundred steps only; chosen on the dev split of the scenes
ALTERED_SHARE = 0.1  # half of the usual augmentation, for the same reason


@dataclass(frozen=True)
class Part:
    """One of the trainings that are compared; `name` is its folder under OUT/runs."""

    name: str
    title: str
    job: Job


# For so small an engine a second thread gains a tenth, costs several times the time where another program has the
# second core, and changes the last digits of the figures.
@threads(1)
def run_demo(
    out: Path | str, *, source: str, epochs: int, noise: float, seed: int, model: GlobalConfig = SMALL
) -> dict[str, Any]:
    """Train the three models, print their table, write OUT/index.html; returns the content of OUT/demo.json.

    What OUT holds of the same demo is not trained again: finished runs are read, an interrupted one is continued.

    Args:
        out: folder of the demo: runs/{clean,plain,robust}, demo.json and index.html.
        source: as for `load`; needs the splits train, dev and test.
        epochs: of each model; CRCL has a self-refining piece of two thirds as many before.
        noise: share of the training pairs to mismatch.
        seed: of the noise and of the training.
        model: sizes of the engine.

    Raises:
        InputError: the source or an option cannot be used; known before training starts.
        RunFolderError: OUT holds something else, or a demo with other options.
        KeyboardInterrupt: on Ctrl-C; the same call continues.
    """
    started = time.monotonic()
    out = Path(out)
    parts = parts_of(source, epochs, noise, seed, model)
    check_folder(out, parts)
    say(f"Drawing the pictures of {source} …" if is_drawn(source) else f"Reading {source} …")
    clean, dev, test = load_three(source, seed)
    noisy = inject_noise(clean, noise, seed=seed)
    say(f"{len(noisy):,} training pairs of {len(noisy.images):,} pictures; {100 * noise:g} % of them get mismatched")
    runs = {}
    for number, part in enumerate(parts, start=1):
        say(f"Training {number}/{len(parts)}: {part.title}")
        pairs = clean if part.name == "clean" else noisy
        runs[part.name] = train(part, pairs, dev, test, RunFolder(out / "runs" / part.name))
    demo: dict[str, Any] = {
        "truepair": __version__,
        "data": {
            "source": source,
            "pairs": len(noisy),
            "train_images": len(noisy.images),
            "dev_images": len(dev.images),
            "test_images": len(test.images),
        },
        "noise": {"nominal": noise, "realised": noisy.mismatch_rate},
        "seed": seed,
        "epochs": epochs,
        "runs": {
            part.name: {
                "title": part.title,
                "folder": f"runs/{part.name}",
                "result": runs[part.name].result,
                "training_seconds": seconds_of(runs[part.name]),
            }
            for part in parts
        },
    }
    say("\n" + table(list(demo["runs"].values())) + "\n")
    from truepair.pages.demo.page import render_page

    write_text_atomically(out / "index.html", render_page(demo, runs, noisy, test))
    demo["seconds"] = round(time.monotonic() - started, 1)
    write_json_atomically(out / "demo.json", demo)
    say(f"Done in {demo['seconds']:.0f} s. Now open this page in a browser: {out / 'index.html'}")
    return demo


def parts_of(source: str, epochs: int, noise: float, seed: int, model: GlobalConfig) -> tuple[Part, ...]:
    """The three trainings, in their order; but for the method and the noise they are the same."""
    clean, noisy = DataConfig(source), DataConfig(source, noise=noise, noise_seed=seed)
    setup = Setup(
        training=TrainingConfig(epochs=epochs, seed=seed, learning_rate=LEARNING_RATE),
        model=model,
        augmentation=Augmentation(word_share=ALTERED_SHARE, region_share=ALTERED_SHARE),
    )
    # The paper's three self-refining pieces would each be too short here to learn much: one longer piece instead. It
    # has at least 3 epochs, for labels stay as they are in the first 2.
    refining = {"pieces": (max(3, round(epochs * 2 / 3)),)}
    return (
        Part("clean", "clean pairs, plain InfoNCE (reference)", Job(clean, "infonce", setup=setup)),
        Part("plain", "noisy pairs, plain InfoNCE", Job(noisy, "infonce", setup=setup)),
        Part("robust", "noisy pairs, robust CRCL", Job(noisy, "crcl", refining, setup=setup)),
    )


def check_folder(out: Path, parts: Sequence[Part]) -> None:
    """Refuse, before any work, a folder that holds anything but this very demo or a part of it."""
    if out.exists() and not holds_nothing_else(out, {part.name for part in parts}):
        raise RunFolderError(f"{out} exists and is not the folder of a demo; nothing was changed. Choose another --out")
    for part in parts:
        folder = RunFolder(out / "runs" / part.name)
        if not folder.config.exists():
            continue
        kept, _ = read_job(folder.path)
        for place, (old, new) in differences(asdict(kept), asdict(with_defaults(part.job))):
            raise RunFolderError(
                f"{out} holds a demo with {place.removeprefix('setup.')} = {old!r}, now it is {new!r}; nothing was "
                f"changed. Choose another --out, or delete {out} to start anew"
            )


def holds_nothing_else(out: Path, runs: set[str]) -> bool:
    """Whether a folder holds what a demo writes, or a part of it, and nothing that may be somebody's own."""
    if not out.is_dir():
        return False
    ours = {"runs", "demo.json", "index.html"}
    inside = {path.name for path in (out / "runs").iterdir()} if (out / "runs").is_dir() else set()
    return {path.name for path in out.iterdir()} <= ours and inside <= runs and (bool(inside) or not any(out.iterdir()))


def with_defaults(job: Job) -> Job:
    """The job as its run folder keeps it: all options of the method, and the device by name."""
    training = replace(job.setup.training, device=str(resolve_device(job.setup.training.device)))
    options = asdict(build_method(job.method, job.method_options).config)
    return replace(job, method_options=options, setup=replace(job.setup, training=training))


def load_three(source: str, seed: int) -> tuple[Pairs, Pairs, Pairs]:
    """Training pairs as they are, dev and test pairs; a source without one of them is refused."""
    splits = load_splits(DataConfig(source), seed=seed)
    if splits.dev is None or splits.test is None:
        missing = "dev" if splits.dev is None else "test"
        raise InputError(f"{source} has no {missing} split; the demo needs train, dev and test")
    return splits.train, splits.dev, splits.test


def train(part: Part, pairs: Pairs, dev: Pairs, test: Pairs, folder: RunFolder) -> Run:
    """The finished run of one part: trained, continued, or read where it was finished earlier."""
    finished, begun = folder.finished, folder.config.exists()
    if begun:
        say("  was finished earlier and is used as it is" if finished else "  continues where it was interrupted")
    try:
        run = fit(
            pairs,
            method=build_method(part.job.method, part.job.method_options),
            dev=dev,
            test=test,
            out=folder.path,
            setup=replace(part.job.setup, data=asdict(part.job.data)),
            resume=begun,
        )
    except KeyboardInterrupt:
        print("\nInterrupted; nothing is lost. The same command continues.", file=sys.stderr)
        raise
    if not finished:
        say(f"  rSum {run.result['test']['rsum']:.1f} on the test split, after {seconds_of(run):.0f} s")
    return run


def seconds_of(run: Run) -> float:
    """Seconds spent on training batches, over all sessions."""
    seconds: float = sum(line["seconds"] for line in read_lines(run.folder.timings))
    return round(seconds, 1)


def table(runs: Sequence[Mapping[str, Any]]) -> str:
    """Test recall and the detection of mismatched pairs, one row a run, aligned."""
    width = max(len(run["title"]) for run in runs)
    lines = [
        f"{'':{width}}  picture → caption  caption → picture           wrong pairs",
        f"{'trained on':{width}}    R@1   R@5  R@10    R@1   R@5  R@10   rSum  found (AUROC)",
    ]
    for run in runs:
        test, found = run["result"]["test"], (run["result"]["detection"] or {}).get("auroc")
        cells = [f"{test[column]:5.1f}" for column in TABLE_FIGURES]
        auroc = "–" if found is None else f"{found:.3f}"
        row = (f"{run['title']:{width}}", " ".join(cells[:3]), " ".join(cells[3:6]), cells[6], f"{auroc:>13}")
        lines.append("  ".join(row))
    return "\n".join(lines)


def say(text: str) -> None:
    """One line for the person who watches, at once even through a pipe."""
    print(text, flush=True)
