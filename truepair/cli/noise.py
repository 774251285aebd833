"""`truepair noise`: an index file of mismatched pairs, or of wrong labels."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from truepair.cli.options import errors_name_options, flag
from truepair.cli.shared import DATA_HELP, add_command, add_reading, given_reading
from truepair.data.config import NOISE_KIND_HELP
from truepair.errors import InputError

DESCRIPTION = """\
Write an index file that says which image each caption gets, or which class each pair, so that every method is trained
on the same mistakes: truepair train --noise-index FILE, or --label-noise-index FILE. Such files are those of the
field. Nothing of the data is changed."""

EPILOG = """\
examples:
  truepair noise f30k_precomp --rate 0.4 --out f30k_0.4.npy
  truepair noise wikipedia --kind asymmetric --rate 0.4 --out wikipedia_0.4.npy
  truepair train f30k_precomp --noise-index f30k_0.4.npy --out runs/first"""

FLAGS = {"rate": "--rate", "seed": "--seed"}


def add_noise(commands: Any) -> None:
    about = "write an index file of mismatched pairs, or of wrong labels"
    parser = add_command(commands, "noise", run_noise, about, DESCRIPTION, EPILOG)
    parser.add_argument("data", metavar="DATA", help=DATA_HELP)
    parser.add_argument(
        "--rate", type=float, required=True, metavar="X", help="share to mismatch or relabel, in [0, 1]"
    )
    parser.add_argument(
        "--kind",
        choices=["caption", "image", "class", "nearest", "symmetric", "asymmetric"],
        default="caption",
        help=f"{NOISE_KIND_HELP}. Or labels are drawn anew: from all classes (symmetric), or the partner of their "
        "class (asymmetric, MRL) [default: caption]",
    )
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="seed of the noise [default: 0]")
    parser.add_argument(
        "--label", metavar="COLUMN", help="for labels and kind class: the column that gives each pair its class"
    )
    parser.add_argument(
        "--least-class-pairs",
        type=int,
        metavar="N",
        help="for labels: leave out classes with fewer than N pairs, as train does with the same option",
    )
    parser.add_argument("--split", default="train", metavar="NAME", help="split to alter [default: train]")
    parser.add_argument("--out", type=Path, required=True, metavar="FILE", help="index file (.npy) to write")
    add_reading(parser)


def run_noise(options: argparse.Namespace) -> None:
    from truepair.data.noise import inject_noise, write_noise_index
    from truepair.data.open import load

    if options.kind in ("symmetric", "asymmetric"):
        run_label_noise(options)
        return
    for option in ("label", "least_class_pairs"):
        if getattr(options, option) is not None and (option, options.kind) != ("label", "class"):
            name = flag(option)
            raise InputError(f"{name} is for wrong labels, but --kind {options.kind} mismatches pairs; leave it out")
    pairs = load(options.data, options.split, **given_reading(options))
    with errors_name_options(FLAGS):
        pairs = inject_noise(pairs, options.rate, kind=options.kind, seed=options.seed)
    write_noise_index(pairs, options.out, layout="image" if options.kind == "image" else "caption")
    rate = 100 * (pairs.mismatch_rate or 0)
    print(f"{options.out}: {rate:.2f} % of {len(pairs)} pairs mismatched ({options.kind} shuffle)")


def run_label_noise(options: argparse.Namespace) -> None:
    """Write the given labels of a split after noise; the run that uses them needs the same classes."""
    from truepair.data.classes import keep_classes
    from truepair.data.label_noise import inject_label_noise, write_label_index
    from truepair.data.open import load

    pairs = load(options.data, options.split, **given_reading(options))
    if options.least_class_pairs is not None:
        pairs, _ = keep_classes(pairs, (), least=options.least_class_pairs)
    with errors_name_options(FLAGS):
        pairs = inject_label_noise(pairs, options.rate, kind=options.kind, seed=options.seed)
    write_label_index(pairs, options.out)
    rate = 100 * (pairs.label_noise_rate or 0)
    classes = len(pairs.class_names)
    print(f"{options.out}: {rate:.2f} % of {len(pairs)} labels wrong ({options.kind}, {classes} classes)")
