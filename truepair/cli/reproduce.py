"""`truepair reproduce`: the tables that papers print, shown, and run again beside the printed figures."""

from __future__ import annotations

import argparse
from typing import Any

from truepair.cli.shared import add_command

DESCRIPTION = """\
Without TABLE: lists the published tables that are known. With TABLE: shows it as printed, doubtful rows marked."""

EPILOG = """\
examples:
  truepair reproduce
  truepair reproduce crcl-1"""


def add_reproduce(commands: Any) -> None:
    about = "the tables that papers print: list them, show one, run its rows beside the printed figures"
    parser = add_command(commands, "reproduce", run_reproduce, about, DESCRIPTION, EPILOG)
    parser.add_argument("table", nargs="?", metavar="TABLE", help="a published table, such as crcl-1")


def run_reproduce(options: argparse.Namespace) -> None:
    from truepair.reproduce.published.printed import printed_table
    from truepair.reproduce.published.views import list_of_tables, view_of

    if options.table is None:
        print(list_of_tables())
        return
    table = printed_table(options.table)
    print(view_of(table, table.rows))
