"""`truepair reproduce`: the tables that papers print, shown, and run again beside the printed figures."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from truepair.cli.options import whole
from truepair.cli.shared import add_command
from truepair.errors import InputError

DESCRIPTION = """\
Without TABLE: lists the published tables that are known. With TABLE: shows it as printed, doubtful rows marked. With
--data as well: runs its rows with each paper's own settings, and shows ours, printed and the difference. A run that was
stopped goes on with the same command; rows of several tables that need the same run share it."""

EPILOG = """\
examples:
  truepair reproduce
  truepair reproduce crcl-1
  truepair reproduce crcl-1 --data data/f30k_precomp --dry-run
  truepair reproduce crcl-1 --data data --rows CRCL NCR --noise 0.4 --seeds 0 1 2 --out reproduced
  truepair reproduce crcl-3 --data data --weights clip-vit-base-patch32 clip-vit-large-patch14"""


def add_reproduce(commands: Any) -> None:
    about = "the tables that papers print: list them, show one, run its rows beside the printed figures"
    parser = add_command(commands, "reproduce", run_reproduce, about, DESCRIPTION, EPILOG)
    parser.add_argument("table", nargs="?", metavar="TABLE", help="a published table, such as crcl-1")
    parser.add_argument(
        "--data",
        nargs="+",
        type=Path,
        metavar="FOLDER",
        help="data sets as the field distributes them, or their folder",
    )
    parser.add_argument(
        "--weights",
        nargs="+",
        default=[],
        metavar="FOLDER",
        help="for rows of CLIP: folders of ViT-B/32 and ViT-L/14, or their names on the hub; which is which is seen",
    )
    parser.add_argument("--rows", nargs="+", default=[], metavar="METHOD", help="these printed names only")
    parser.add_argument("--noise", nargs="+", default=[], metavar="RATE", help="these noise rates only, as printed")
    parser.add_argument("--seeds", nargs="+", type=whole, metavar="N", help="seeds [default: 0]")
    parser.add_argument(
        "--noise-index", type=Path, metavar="FOLDER", help="the field's index files; default: drawn by the seed"
    )
    parser.add_argument(
        "--clean-pairs",
        type=Path,
        metavar="FILE",
        help="for MSCN on CC152K: training pairs that are known to match, as `truepair train` reads them",
    )
    parser.add_argument(
        "--jobs", type=whole, metavar="N", help="runs at a time, one CPU thread each [1; with Ray all cores]"
    )
    parser.add_argument(
        "--engine",
        choices=("local", "ray"),
        help="processes here, or tasks of Ray (RAY_ADDRESS for a cluster that sees the same folders) [local]",
    )
    parser.add_argument("--out", type=Path, metavar="DIR", help="records, runs and page [reproduced]")
    parser.add_argument("--dry-run", action="store_true", help="check the data and show the commands; run nothing")


def run_reproduce(options: argparse.Namespace) -> None:
    from truepair.reproduce.published.command import Asked, chosen_rows, planned, reproduce, show_plan
    from truepair.reproduce.published.printed import printed_table
    from truepair.reproduce.published.views import list_of_tables, view_of

    refuse_idle(options)
    if options.table is None:
        print(list_of_tables())
        return
    table = printed_table(options.table)
    if options.data is None:
        print(view_of(table, chosen_rows(table, options.rows, options.noise)))
        return
    if options.jobs is not None and options.jobs < 1:
        raise InputError(f"--jobs is {options.jobs}; expected at least 1")
    if (wrong := next((seed for seed in options.seeds or [] if seed < 0), None)) is not None:
        raise InputError(f"--seeds has {wrong}; expected 0 or more")
    asked = Asked(
        data=options.data,
        methods=options.rows,
        rates=options.noise,
        seeds=options.seeds or [0],
        index=options.noise_index,
        jobs=options.jobs,
        engine=options.engine or "local",
        weights=options.weights,
        known=options.clean_pairs,
        out=options.out or Path("reproduced"),
    )
    if options.dry_run:
        print(show_plan(*planned(table, asked), asked.seeds))
    else:
        print(reproduce(table, asked))


def refuse_idle(options: argparse.Namespace) -> None:
    """Raises InputError: an option has no effect on a list, or on a table that is only shown."""
    of_runs = ("weights", "seeds", "noise_index", "clean_pairs", "jobs", "engine", "out", "dry_run")
    for needed, names in (("table", ("data", "rows", "noise", *of_runs)), ("data", of_runs)):
        idle = next((name for name in names if getattr(options, name)), None)
        if getattr(options, needed) is None and idle is not None:
            what = "a TABLE" if needed == "table" else "--data"
            raise InputError(
                f"--{idle.replace('_', '-')} has no effect without {what}; give it, or leave the option out"
            )
