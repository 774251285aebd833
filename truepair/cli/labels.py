"""`truepair labels`: the labels a run doubts most, with the class it proposes instead."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from truepair.cli.shared import add_command, say
from truepair.device import DEVICE_HELP, resolve_device
from truepair.errors import InputError
from truepair.phrases import aligned

DESCRIPTION = """\
The most suspicious class labels of a finished run that learns from labels (--method uot-rcl, elr-cmr, mrl, ce), with
the class it proposes instead. Changed labels come first, then by suspicion: confidence of the correction × (1 − belief
in the given label). As a table here; labels.parquet with every pair ranked, labels.json and a page with pictures,
confusion, t-SNE, precision–recall and examples in a folder.

Where the data of the run are gone, the page is left out."""

EPILOG = """\
example:
  truepair train wikipedia --method uot-rcl --label-noise 0.4 --out runs/wiki
  truepair labels runs/wiki --top 50"""


def add_labels(commands: Any) -> None:
    about = "the class labels a run doubts most, with the class it proposes"
    parser = add_command(commands, "labels", run_labels, about, DESCRIPTION, EPILOG)
    parser.add_argument("run", type=Path, metavar="RUN", help="folder of a finished run that learned from labels")
    parser.add_argument("--out", type=Path, metavar="DIR", help="folder to write [default: RUN/labels]")
    parser.add_argument("--top", type=int, default=20, metavar="N", help="labels to show [default: 20]")
    parser.add_argument(
        "--split",
        choices=["train", "dev", "test"],
        default="test",
        help="split to retrieve in and to draw features and examples from [default: test]",
    )
    parser.add_argument("--device", default="auto", metavar="NAME", help=f"to encode on: {DEVICE_HELP} [default: auto]")


def run_labels(options: argparse.Namespace) -> None:
    """Inspect, write, print the table."""
    if options.top < 1:
        raise InputError(f"--top is {options.top}; expected at least 1")
    from truepair.pages.kit.folder import check_out
    from truepair.pages.labels.inspection import inspect_labels
    from truepair.pages.labels.write import FACTS, PAGE, SCORE, TABLE, summary, suspect_rows, write_inspection

    out = options.out or options.run / "labels"
    check_out(out, (TABLE, FACTS, PAGE), FACTS)
    found = inspect_labels(options.run, split=options.split, device=resolve_device(options.device), say=say)
    written = write_inspection(found, out, top=options.top)
    print(f"{summary(found)}\n\nMost suspicious labels, changed ones first, by {SCORE}:")
    print(aligned(suspect_rows(found.table, options.top)))
    if found.missing:
        print(f"\nNo page, retrieval figures or t-SNE: {found.missing}.")
    print("\n" + "\n".join(str(path) for path in written))
