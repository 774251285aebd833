"""What several commands share: words about their data, CPU threads, and progress for who waits at a terminal."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from truepair.cli.options import refuse_alone
from truepair.encoders import DEFAULT_IN_WORDS, ENCODERS
from truepair.errors import InputError

DATA_HELP = (
    "a folder of pictures with a table (.csv, .tsv, .jsonl, .parquet, Karpathy's .json), or the table; tar shards in "
    'the webdataset layout; embeddings (img_emb/ and text_emb/, or "images.npy,texts.npy"), also as URLs '
    "(s3://bucket/folder); a folder in the field's precomp layout; a file of labelled features (.mat, .npz, .h5, …) or "
    "Wikipedia's folder; or scenes, the built-in drawings (scenes:500 for 500 training pictures)"
)


def add_command(
    commands: Any, name: str, run: Callable[[argparse.Namespace], None], about: str, description: str, epilog: str = ""
) -> argparse.ArgumentParser:
    """Add a command to those of the parser; description and epilog are shown as they are."""
    parser: argparse.ArgumentParser = commands.add_parser(
        name,
        help=about,
        description=description,
        epilog=epilog,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.set_defaults(command=run)
    return parser


def add_reading(parser: argparse.ArgumentParser, *, shares: bool = True, default: str = DEFAULT_IN_WORDS) -> None:
    """The options that say how a table or shards are read, and how splits are drawn where there are none."""
    group = parser.add_argument_group("reading pictures and tables")
    group.add_argument("--table", metavar="FILE", help="the table of DATA, where there are several")
    help_text = "column(s) that hold captions; or first: one per row, first:5: five [default: all]"
    group.add_argument("--caption", metavar="COLUMN", help=help_text)
    group.add_argument("--image", metavar="COLUMN", help="column that holds the paths of pictures")
    names = ", ".join(ENCODERS)
    help_text = f"what pictures are described by: {names}, or a model folder [default: {default}]"
    group.add_argument("--encoder", metavar="NAME", help=help_text)
    if shares:
        help_text = "DATA without splits: share of its images drawn as {}, as train draws it"
        group.add_argument("--dev-share", type=float, metavar="X", help=help_text.format("dev"))
        group.add_argument("--test-share", type=float, metavar="X", help=help_text.format("test"))
        group.add_argument("--split-seed", type=int, metavar="N", help="seed of that draw [default: 0]")


def given_reading(options: argparse.Namespace, *, run: Path | None = None) -> dict[str, Any]:
    """The options of `truepair.open` that the command line set; pictures are seen by the encoder of the run, if any.

    Raises InputError: the seed of a draw of splits without the shares to draw, where there is no run that has some.
    """
    names = ("table", "caption", "image", "label", "dev_share", "test_share", "split_seed", "encoder")
    given = {name: getattr(options, name) for name in names if getattr(options, name, None) is not None}
    if run is None:
        refuse_alone(given, {"split_seed": ("dev_share", "test_share")})
    elif "encoder" not in given:
        from truepair.data.config import Reading
        from truepair.data.open import takes_encoder
        from truepair.training.jobs import encoder_of_run

        if takes_encoder(options.data, Reading(table=options.table)) and (known := encoder_of_run(run)) is not None:
            given["encoder"] = known
    return given


def use_threads(count: int | None) -> None:
    """CPU threads to compute on; None leaves them as they are. Raises InputError: fewer than one."""
    if count is None:
        return
    if count < 1:
        raise InputError(f"--threads is {count}; expected at least 1")
    from truepair.device import set_threads

    set_threads(count)


def say(text: str) -> None:
    """Tell somebody who waits at a terminal what is being done."""
    if sys.stderr.isatty():
        print(f"{text} …", file=sys.stderr)
