"""Run the noise table: methods × noise rates × seeds, resumable, one small JSON per finished run.

    python -m truepair.reproduce.noise_grid DATA --jobs 2
    python -m truepair.reproduce.noise_grid DATA --jobs 2 --engine sgr
    python -m truepair.reproduce.noise_report

The first two commands may be stopped at any time and started again: finished runs are skipped, a run that was cut off
goes on where it stopped. The last one writes `docs/results.md` from what is there.
"""

from __future__ import annotations

import argparse
import json
import time
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from truepair import __version__
from truepair.files import write_json_atomically
from truepair.reproduce.grid import is_done, run_all, train_cell

METHODS = ("infonce", "crcl", "crcl-single", "gsc", "gsc-dual", "ugncl", "triplet", "oracle")
EXPLORED = ("crcl-short-pieces", "oracle-gpo", "ugncl-letter")  # not in the table: they explain defaults
RATES = (0.0, 0.2, 0.4, 0.6, 0.8)
SEEDS = (0, 1, 2)

# Titles of six words keep too little with the default 0.2: chosen on dev with the oracle, the same for all methods.
WORD_SHARE = "0.1"

# Region–word engines cost a cell of the similarity matrix what a global one costs a whole row: narrower networks, fewer
# pairs, smaller batches and fewer pictures to score by keep a run within minutes. Chosen on dev with the oracle.
LOCAL = ["--width", "128", "--similarity-width", "64", "--batch-size", "32"]
LOCAL_DATA = ["--train-pairs", "3000", "--score-images", "500"]
ENGINES = {
    "global": [],
    "sgr": ["--model", "sgr", *LOCAL, *LOCAL_DATA, "--learning-rate", "0.003"],
    "saf": ["--model", "saf", *LOCAL, *LOCAL_DATA, "--learning-rate", "0.003"],
}
ENSEMBLES = {"sgraf": ("sgr", "saf")}

# DisNCL's warm-up, chosen on dev with seed 0, the same for all rows of a data set. The paper's five epochs, its
# default, serve elsewhere; titles of six words are memorised by then, and a shorter warm-up has to be steeper.
DISNCL_WARM_UP = {"fashion_precomp": ["--disncl-warm-up-epochs", "2", "--disncl-warm-up-least", "0.25"]}

# DisNCL with each of its parts, as in its Table V, with the rivals in the place of its disentangler, and with nothing
# that is lowered.
DISNCL = {
    "disncl": [],
    "disncl-align": ["--disncl-disentangler", "none", "--disncl-soft-weight", "0"],
    "disncl-align-dis": ["--disncl-soft-weight", "0", "--disncl-regularizer-weight", "0"],
    "disncl-align-dis-soft": ["--disncl-regularizer-weight", "0"],
    "disncl-align-soft": ["--disncl-disentangler", "none"],
    "disncl-entangled": ["--disncl-adversarial-weight", "0"],
    "disncl-fdmer": ["--disncl-disentangler", "fdmer"],
    "disncl-dmim": ["--disncl-disentangler", "dmim"],
    "disncl-mvib": ["--disncl-disentangler", "mvib"],
}

# UGNCL as printed, but for the evidence that its own threshold can be compared with.
LETTER = [
    *("--ugncl-evidence", "exp_tanh", "--ugncl-temperature", "0.1", "--ugncl-divergence", "sum"),
    *("--ugncl-tolerance", "1", "--ugncl-soft-label", "belief", "--ugncl-hard-weight", "one"),
    *("--ugncl-least-clean", "0"),
]

# On SGR the hinges learn more with a larger weight and with nearly all negatives of the batch, as printed (dev).
LOCAL_UGNCL = ["--ugncl-ranking-weight", "5", "--ugncl-hardness", "printed"]

# Epochs of the one self-refining piece, per epoch of the last one. (The paper: three pieces of 7/32, with twelve times
# the steps each.)
PIECE = 0.8


@dataclass(frozen=True)
class Cell:
    """One run of the grid, or the ensemble of two.

    Method `oracle` is InfoNCE on the truly matched pairs only, `crcl-single` has no refining piece, `gsc-dual` are two
    networks; engine `sgraf` is the mean similarity of the same cell's SGR and SAF runs.
    """

    data: str
    method: str
    noise: float
    seed: int
    epochs: int
    engine: str = "global"

    @property
    def name(self) -> str:
        engine = "" if self.engine == "global" else f"{self.engine}-"
        return f"{self.data}-{engine}{self.method}-noise{round(100 * self.noise)}-seed{self.seed}"

    @property
    def warm_up(self) -> list[str]:
        """UGNCL's five epochs of warm-up, fewer where they were more than half."""
        return [] if self.epochs >= 10 else ["--ugncl-warm-up-epochs", str(self.epochs // 2)]

    @property
    def disncl_warm_up(self) -> list[str]:
        """Half of the epochs where there are fewer than ten."""
        short = ["--disncl-warm-up-epochs", str(max(self.epochs // 2, 1))]
        return DISNCL_WARM_UP.get(self.data, []) if self.epochs >= 10 else short

    @property
    def members(self) -> tuple[Cell, ...]:
        """The runs an ensemble is made of; none for a run."""
        return tuple(replace(self, engine=engine) for engine in ENSEMBLES.get(self.engine, ()))

    @property
    def command(self) -> str:
        if self.members:
            runs = " ".join(member.name for member in self.members)
            return f"truepair evaluate {runs} {self.data} --images {option_value(LOCAL_DATA, '--score-images')}"
        return " ".join(["truepair train", self.data, *self.options()])

    def options(self) -> list[str]:
        """Command-line options of the run, its data and folder left out."""
        method = {
            "oracle": ["--method", "infonce", "--oracle"],
            "crcl": ["--method", "crcl", "--crcl-pieces", str(round(PIECE * self.epochs))],
            "crcl-single": ["--method", "crcl", "--crcl-pieces", "none"],
            "gsc-dual": ["--method", "gsc", "--gsc-co-train"],
            "crcl-short-pieces": ["--method", "crcl", "--crcl-pieces", "3,3,3"],
            "ugncl-letter": ["--method", "ugncl", *self.warm_up, *LETTER],
            "ugncl": ["--method", "ugncl", *self.warm_up, *([] if self.engine == "global" else LOCAL_UGNCL)],
            **{name: ["--method", "disncl", *self.disncl_warm_up, *parts] for name, parts in DISNCL.items()},
            "oracle-gpo": ["--method", "infonce", "--oracle", "--pooling", "gpo"],
        }.get(self.method, ["--method", self.method])
        noise = ["--noise", str(self.noise), "--seed", str(self.seed)]
        return [*method, *noise, "--epochs", str(self.epochs), "--word-share", WORD_SHARE, *ENGINES[self.engine]]


def option_value(options: list[str], name: str) -> str:
    return options[options.index(name) + 1]


def cells_of(
    data: str,
    methods: tuple[str, ...],
    rates: tuple[float, ...],
    seeds: tuple[int, ...],
    epochs: int,
    engine: str = "global",
) -> list[Cell]:
    """All runs, the first seed of everything first; without noise the oracle is InfoNCE itself and is not run."""
    return [
        Cell(data, method, rate, seed, epochs, engine)
        for seed in seeds
        for rate in sorted(rates, key=lambda rate: (rate != 0.4, rate))
        for method in methods
        if method != "oracle" or rate > 0
    ]


def run_cell(cell: Cell, source: str, results: Path, runs: Path) -> None:
    """Train one cell, or evaluate its members together, and keep its figures; nothing to do if they are there."""
    if not cell.members:
        train_cell(cell, source, results, runs)
    elif not is_done(cell, results):
        write_json_atomically(results / f"{cell.name}.json", evaluated_together(cell, source, results, runs))


def evaluated_together(cell: Cell, source: str, results: Path, runs: Path) -> dict[str, Any]:
    """The record of an ensemble, once its members are there."""
    from truepair.data.open import load
    from truepair.engines.ensemble_model import EnsembleModel
    from truepair.evaluation import evaluate
    from truepair.training.fit import open_run

    for member in cell.members:
        run_cell(member, source, results, runs)
    model = EnsembleModel([open_run(runs / member.name).model for member in cell.members])
    images = int(option_value(LOCAL_DATA, "--score-images"))
    figures = {split: evaluate(model, load(source, split).first_images(images)) for split in ("dev", "test")}
    members = [json.loads((results / f"{member.name}.json").read_text(encoding="utf-8")) for member in cell.members]
    return {
        "cell": asdict(cell),
        "command": cell.command,
        "truepair": __version__,
        "date": time.strftime("%Y-%m-%d"),
        "members": [member.name for member in cell.members],
        "result": {**figures, "detection": None},
        "epochs_trained": sum(member["epochs_trained"] for member in members),
        "training_seconds": 0.0,  # that of its members is in their records
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("source", metavar="DATA", help="a folder in the precomp layout, or scenes")
    parser.add_argument("--jobs", type=int, default=2, help="runs at a time, one CPU thread each [default: 2]")
    parser.add_argument("--epochs", type=int, default=10, help="epochs of each (CRCL: of its last piece) [default: 10]")
    parser.add_argument(
        "--methods", nargs="+", default=METHODS, choices=(*METHODS, *DISNCL, *EXPLORED), help="rows of the table"
    )
    parser.add_argument("--rates", nargs="+", type=float, default=RATES, help="noise rates")
    parser.add_argument("--seeds", nargs="+", type=int, default=SEEDS, help="seeds")
    parser.add_argument("--engine", default="global", choices=[*ENGINES, *ENSEMBLES], help="similarity engine [global]")
    parser.add_argument("--results", type=Path, help="JSON records [results/noise, or results/noise-local]")
    parser.add_argument("--runs", type=Path, default=Path("runs/noise"), help="run folders, not kept [runs/noise]")
    options = parser.parse_args()
    cells = cells_of(
        Path(options.source).resolve().name,
        tuple(options.methods),
        tuple(options.rates),
        tuple(options.seeds),
        options.epochs,
        options.engine,
    )
    results = options.results or Path("results/noise" if options.engine == "global" else "results/noise-local")
    results.mkdir(parents=True, exist_ok=True)
    run_all(cells, lambda cell: run_cell(cell, options.source, results, options.runs), jobs=options.jobs)


if __name__ == "__main__":
    main()
