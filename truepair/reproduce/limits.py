"""What limits our method: runs once more, told a part of the truth.

`python -m truepair.reproduce.limits TOLD RUN --out FOLDER` trains as a run of our method was trained, on the same
pairs, but knows what TOLD names. No method of the package is given the truth; such runs say what each part of it is
worth.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

from truepair.device import set_threads
from truepair.errors import InputError
from truepair.reproduce.cells import Cell, Context, Places, Record, is_finished, set_aside_outdated
from truepair.reproduce.processes import truepair
from truepair.reproduce.training import trained_record
from truepair.training.run_folder import RunFolder

TOLD = {
    "labels": "which pairs match, in all stages",
    "last-labels": "which pairs match, in the last stage",
    "partners": "for the image of every mismatched pair that is disbelieved a caption that belongs to it",
}


def build_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m truepair.reproduce.limits", description=__doc__)
    parser.add_argument("told", choices=[*TOLD], help="; ".join(f"{name}: {what}" for name, what in TOLD.items()))
    parser.add_argument("run", type=Path, help="folder of a run of our method")
    parser.add_argument("--out", type=Path, required=True, help="folder for the new run; one that was cut off goes on")
    return parser


def main(arguments: Sequence[str]) -> None:
    """Train, or go on with, one such run.

    Raises:
        InputError: the run is none of our method, or nobody knows which of its pairs match; or as `fit`.
    """

    from truepair.methods.truepair.options import TruePairConfig
    from truepair.reproduce.told import ToldTruePair, truth_of
    from truepair.training.fit import fit
    from truepair.training.jobs import load_job, read_job

    options = build_parser().parse_args(arguments)
    job, threads = read_job(options.run)
    if job.method != "truepair":
        raise InputError(f"{options.run} is a run of --method {job.method}; what is told here goes into truepair alone")
    set_threads(threads or 1)
    splits, setup = load_job(job, kept=RunFolder(options.run).decisions)
    method = ToldTruePair(TruePairConfig(**job.method_options), options.told, truth_of(splits.train))
    begun = RunFolder(options.out).config.exists()
    fit(splits.train, method=method, dev=splits.dev, test=splits.test, out=options.out, setup=setup, resume=begun)


def limit_cells(
    at: Context, *, data: str, methods: str, rates: Sequence[float], seeds: Sequence[int] = (0, 1, 2)
) -> Iterator[Cell]:
    """Rows × rates × seeds of one source, each like the row `truepair` of the table; a row's words say what is told."""
    for seed in seeds:
        for rate in rates:
            for method in methods.split():
                told, of = at.rows[method], f"noise{round(100 * rate)}-seed{seed}"
                base, name = f"{data}-truepair-{of}", f"{data}-{method}-{of}"
                facts = {"data": data, "method": method, "noise": rate, "seed": seed}
                command = (
                    f"python -m truepair.reproduce.limits {told} runs/{at.table}/{base} --out runs/{at.table}/{name}"
                )
                yield Cell(name, facts, command, partial(measure_told, at, told, base, name))


def measure_told(at: Context, told: str, base: str, name: str, places: Places) -> Record:
    run = RunFolder(places.runs / at.table / name)
    set_aside_outdated(run)
    if not is_finished(run):
        like = at.trained(f"{at.table}/{base}", places)
        truepair(told, str(like.path), "--out", str(run.path), module="truepair.reproduce.limits")
    return {"told": told, **trained_record(run)}


if __name__ == "__main__":
    main(sys.argv[1:])
