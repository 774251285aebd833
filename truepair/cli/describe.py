"""`truepair describe`: what a data set holds."""

from __future__ import annotations

import argparse
import json
from typing import Any

from truepair.cli.shared import DATA_HELP, add_reading


def add_describe(commands: Any) -> None:
    parser = commands.add_parser(
        "describe", help="counts, shapes, classes, captions per image, missing and odd entries"
    )
    parser.add_argument("data", metavar="DATA", help=DATA_HELP)
    parser.add_argument("--label", metavar="COLUMN", help="count the pairs of each class in this column")
    add_reading(parser, shares=False)
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    parser.set_defaults(command=run_describe)


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
