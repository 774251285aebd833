"""`truepair features`: pictures in, features in files out."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from truepair.cli.options import add_options, errors_name_options, flags_of, given_options
from truepair.cli.shared import DATA_HELP, add_command, add_reading, given_reading
from truepair.data.config import Extraction, Reading
from truepair.data.features.options import FeatureOptions

DESCRIPTION = """\
Describe pictures by an encoder and write their features, float16, to be opened without the pictures: for every split
in the field's precomp layout, which train, audit and evaluate open, or as an array with a list of ids.

Features are kept in the cache ($TRUEPAIR_CACHE, else ~/.cache/truepair), which train and audit read as well: each
picture is described once. What was cut off, killed included, goes on when the same command is run again."""

EPILOG = """\
examples:
  truepair features photos/ --out features/photos
  truepair features photos/ --encoder efficientnet --grid 1 --out features/vectors
  truepair features photos/ --project 128 --engine ray --out features/small"""


def add_features(commands: Any) -> None:
    about = "describe pictures by an encoder; features in the precomp layout or as arrays"
    parser = add_command(commands, "features", run_features, about, DESCRIPTION, EPILOG)
    parser.add_argument("data", metavar="PICTURES", help=DATA_HELP)
    parser.add_argument("--out", type=Path, required=True, metavar="DIR", help="folder for the features, new or empty")
    add_reading(parser)
    add_options(parser, "what is written", FeatureOptions)
    add_options(parser, "how it is computed (no number depends on it)", Extraction)
    parser.add_argument("--quiet", action="store_true", help="no progress, only the result")


def run_features(options: argparse.Namespace) -> None:
    with errors_name_options(flags_of(Extraction) | flags_of(FeatureOptions)):
        describe_pictures(options)


def describe_pictures(options: argparse.Namespace) -> None:
    from truepair.data.features.extract import extract_features

    reading = Reading(
        **given_reading(options),
        extraction=Extraction(**given_options(options, Extraction)),
        progress=False if options.quiet else None,
    )
    made = extract_features(
        options.data, options.out, FeatureOptions(**given_options(options, FeatureOptions)), reading=reading
    )
    for split, shape in made.shapes.items():
        regions = "" if len(shape) == 2 else f" x {shape[1]} regions"
        print(f"{split:<6} {shape[0]:>7,} images{regions} x {shape[-1]}")
    print(f"{made.bytes / 1e6:,.1f} MB by the encoder {made.encoder}, float16")
    if made.repeated:
        print(
            f"In {', '.join(made.repeated)} images have different numbers of captions: the layout knows one number for "
            "all, so that some images stand there more than once and count as different ones. Use --layout arrays, or "
            "give train the pictures"
        )
    print(f"Features: {made.folder}")
