"""`truepair describe`: what a data set holds."""

from __future__ import annotations

import argparse
import json
from typing import Any

from truepair.cli.shared import DATA_HELP, add_command, add_reading

DESCRIPTION = """\
What a data set holds, split by split: pairs, images, captions per image, shapes, words, classes; and the problems that
were met, each with its file and row, such as pictures that are missing or captions that are empty."""

EPILOG = """\
examples:
  truepair describe my_pictures
  truepair describe f30k_precomp --json
  truepair describe my_pictures --table captions.csv --caption title --label category"""


def add_describe(commands: Any) -> None:
    about = "counts, shapes, classes, captions per image, missing and odd entries"
    parser = add_command(commands, "describe", run_describe, about, DESCRIPTION, EPILOG)
    parser.add_argument("data", metavar="DATA", help=DATA_HELP)
    parser.add_argument("--label", metavar="COLUMN", help="count the pairs of each class in this column")
    add_reading(parser, shares=False)
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")


def run_describe(options: argparse.Namespace) -> None:
    from truepair.data.describe import describe

    description = describe(
        options.data,
        label=options.label,
        table=options.table,
        caption=options.caption,
        image=options.image,
        encoder=options.encoder,
    )
    print(json.dumps(description.to_dict(), indent=2) if options.json else description.render())
