"""Run the label-noise table: methods × label noise × seeds, resumable, one small JSON per finished run.

    python -m truepair.reproduce.label_grid wikipedia --root DATA_FOLDER --jobs 2
    python -m truepair.reproduce.label_report

The first command may be stopped at any time and started again. The second one writes `docs/results.md` from what is
there.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from pathlib import Path

from truepair.reproduce.grid import run_all, train_cell

METHODS = ("ce", "mrl", "elr-cmr", "uot-rcl")
# UOT-RCL without each of its parts, as in its Table IV; with other class sizes; and as printed.
ABLATIONS = {
    "uot-rcl-given-labels": ["--uot-rcl-keep-labels"],
    "uot-rcl-no-relation": ["--uot-rcl-relation-weight", "0"],
    "uot-rcl-random-set": ["--uot-rcl-confident", "random"],
    "uot-rcl-uniform": ["--uot-rcl-class-prior", "uniform"],
    "uot-rcl-letter": [
        *("--uot-rcl-consistency", "printed", "--uot-rcl-own-weight", "0", "--uot-rcl-pair-weight", "0"),
        *("--uot-rcl-class-prior", "uniform", "--uot-rcl-epsilon", "0.05", "--uot-rcl-first-mass", "0.2"),
        *("--uot-rcl-warm-up-epochs", "2", "--uot-rcl-momentum", "0.99", "--uot-rcl-doubt-from", "0"),
        *("--uot-rcl-doubt-to", "0"),
    ],
}
RATES = (0.2, 0.4, 0.6, 0.8)
SEEDS = (0, 1, 2)

# The same network, batch, rate and epochs for all methods of a data set. Cross entropy is best on dev within the first
# third of the epochs and learns the wrong labels from then on.
SHARED = ["--model", "mlp", "--optimizer", "adam", "--weight-decay", "0", "--word-share", "0"]
GRID_OF_REGIONS = ["--regions", "joined", "--region-share", "0", "--hidden-width", "512"]
DATA = {
    "wikipedia": ["--region-share", "0", "--batch-size", "100", "--epochs", "30", "--learning-rate", "0.0001"],
    "fashion_precomp": [
        *("--label", "articleType", "--least-class-pairs", "20", *GRID_OF_REGIONS),
        *("--batch-size", "200", "--epochs", "12", "--learning-rate", "0.0003"),
    ],
    "emoji": [
        *("--label", "group", *GRID_OF_REGIONS),
        *("--batch-size", "100", "--epochs", "20", "--learning-rate", "0.0003"),
    ],
}


@dataclass(frozen=True)
class LabelCell:
    """One run of the grid."""

    data: str
    method: str
    noise: float
    seed: int

    @property
    def name(self) -> str:
        return f"{self.data}-{self.method}-labels{round(100 * self.noise)}-seed{self.seed}"

    @property
    def command(self) -> str:
        return " ".join(["truepair train", self.data, *self.options()])

    def options(self) -> list[str]:
        """Command-line options of the run, its data and folder left out."""
        method = "uot-rcl" if self.method in ABLATIONS else self.method
        noise = ["--label-noise", str(self.noise), "--seed", str(self.seed)]
        return ["--method", method, *ABLATIONS.get(self.method, []), *noise, *SHARED, *DATA[self.data]]


def cells_of(data: str, methods: tuple[str, ...], rates: tuple[float, ...], seeds: tuple[int, ...]) -> list[LabelCell]:
    """All runs, the first seed of everything first."""
    return [LabelCell(data, method, rate, seed) for seed in seeds for rate in rates for method in methods]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", nargs="+", choices=[*DATA], help="data sets")
    parser.add_argument("--root", type=Path, default=Path("../shared/data"), help="folder that holds them")
    parser.add_argument("--jobs", type=int, default=2, help="runs at a time, one CPU thread each [default: 2]")
    parser.add_argument("--methods", nargs="+", default=METHODS, choices=(*METHODS, *ABLATIONS), help="rows")
    parser.add_argument("--rates", nargs="+", type=float, default=RATES, help="noise rates")
    parser.add_argument("--seeds", nargs="+", type=int, default=SEEDS, help="seeds")
    parser.add_argument("--results", type=Path, default=Path("results/labels"), help="JSON records [results/labels]")
    parser.add_argument("--runs", type=Path, default=Path("runs/labels"), help="run folders, not kept [runs/labels]")
    options = parser.parse_args()
    options.results.mkdir(parents=True, exist_ok=True)
    grid = (tuple(options.methods), tuple(options.rates), tuple(options.seeds))
    cells = [cell for data in options.data for cell in cells_of(data, *grid)]

    def run(cell: LabelCell) -> None:
        train_cell(cell, str(options.root / cell.data), options.results, options.runs)

    run_all(cells, run, jobs=options.jobs)


if __name__ == "__main__":
    main()
