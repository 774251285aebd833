"""`truepair demo`: a robust and a non-robust model trained on the same noisy pairs, as a page."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from truepair.cli.options import errors_name_options
from truepair.cli.shared import DATA_HELP, add_command

DESCRIPTION = """\
Mismatch some pairs of the built-in drawings on purpose, train a model that is not robust and a robust one on them, and
write a page (DIR/index.html): recalls, training curves, the pairs that are doubted, and what each model finds. Takes
about two minutes on two cores. A demo that was stopped goes on with the same command."""


def add_demo(commands: Any) -> None:
    about = "see a robust and a non-robust model trained on the same noisy pairs"
    parser = add_command(commands, "demo", run_demo, about, DESCRIPTION)
    parser.add_argument("--out", type=Path, default=Path("demo"), metavar="DIR", help="folder to write [default: demo]")
    parser.add_argument("--epochs", type=int, default=12, metavar="N", help="epochs of each model [default: 12]")
    parser.add_argument(
        "--noise", type=float, default=0.4, metavar="X", help="share of mismatched pairs [default: 0.4]"
    )
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="seed of everything [default: 0]")
    parser.add_argument("--data", default="scenes:1000", metavar="DATA", help=DATA_HELP + " [default: scenes:1000]")


def run_demo(options: argparse.Namespace) -> None:
    from truepair.pages.demo.run import run_demo as demo

    with errors_name_options({name: f"--{name}" for name in ("epochs", "noise", "seed")}):
        demo(options.out, source=options.data, epochs=options.epochs, noise=options.noise, seed=options.seed)
