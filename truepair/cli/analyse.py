"""`truepair analyse`: what a DisNCL run has parted: leakage, retrieval by part, t-SNE, soft targets, probes."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from truepair.cli.shared import DATA_HELP, add_command, say
from truepair.device import DEVICE_HELP, resolve_device
from truepair.phrases import aligned

DESCRIPTION = """\
Whether the subspaces of a finished run of --method disncl hold what they should: how much the invariant and the
exclusive part of one side still tell about each other, what can be found with each, t-SNE of all four, soft targets
of single queries, and on the drawings what can be read from which part. As a table here, and as a page and
analysis.json in a folder. Takes a minute or two a run."""

EPILOG = """\
example:
  truepair train scenes --method disncl --noise 0.4 --out runs/parted
  truepair train scenes --method disncl --noise 0.4 --disncl-adversarial-weight 0 --out runs/entangled
  truepair analyse runs/parted --against runs/entangled"""


def add_analyse(commands: Any) -> None:
    about = "what a DisNCL run has parted: leakage, retrieval by part, t-SNE, soft targets"
    parser = add_command(commands, "analyse", run_analyse, about, DESCRIPTION, EPILOG)
    parser.add_argument("run", type=Path, metavar="RUN", help="folder of a finished run of --method disncl")
    parser.add_argument(
        "--against",
        type=Path,
        metavar="RUN2",
        help="a second run to compare it with, such as one trained without some of the terms",
    )
    parser.add_argument("--data", metavar="DATA", help=f"{DATA_HELP} [default: what RUN was trained on]")
    parser.add_argument("--split", default="test", metavar="NAME", help="split to look at [default: test]")
    parser.add_argument(
        "--leakage-split",
        metavar="NAME",
        help="split to estimate leakage on; train has more rows, but the run has seen them [default: --split]",
    )
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="seed of every estimate and draw [default: 0]")
    parser.add_argument("--device", default="auto", metavar="NAME", help=f"to encode on: {DEVICE_HELP} [default: auto]")
    parser.add_argument("--out", type=Path, metavar="DIR", help="folder to write [default: RUN/analysis]")


def run_analyse(options: argparse.Namespace) -> None:
    """Analyse, write the page, print the tables."""
    from truepair.pages.analysis.analyse import analyse
    from truepair.pages.analysis.write import FACTS, PAGE, leakage_rows, probe_rows, recall_rows, write_analysis
    from truepair.pages.kit.folder import check_out

    out = options.out or options.run / "analysis"
    check_out(out, (PAGE, FACTS), FACTS)
    found = analyse(
        options.run,
        against=options.against,
        data=options.data,
        split=options.split,
        leakage_split=options.leakage_split,
        seed=options.seed,
        device=resolve_device(options.device),
        say=say,
    )
    page, facts = write_analysis(found, out)
    print(aligned(leakage_rows(found)))
    for run in found.runs:
        print(f"\n{aligned(recall_rows(run, found.chance))}")
    for run in found.runs:
        if run.probes is not None:
            print(f"\n{aligned(probe_rows(run))}")
    print(f"Page: {page}\nNumbers: {facts}")
