"""`truepair decisions`: what people decided about the pairs of an audit; out to a file, and in from one."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from truepair.cli.shared import add_command

DESCRIPTION = """\
What people decided while they reviewed an audit (truepair serve AUDIT), as it stands in AUDIT/decisions.sqlite: how
much was decided and what it says of the noise (show), as a file for other programs (export), or merged from such a file
(import). The ending of FILE says what it is: .parquet, .csv, .jsonl, or .json for Label Studio.

Files hold the whole history. An import adds what is new and changes nothing that is there; a file needs the columns
pair_id and verdict (match, mismatch, unsure, or empty to take one back)."""

EPILOG = """\
examples:
  truepair decisions show audits/first
  truepair decisions export audits/first --out decisions.csv
  truepair decisions import audits/first decisions.csv
  truepair audit my_pictures --out audits/first --decisions audits/first"""

SHOW = """\
How many pairs were decided, by whom, how many of them are mismatched, what share of all pairs that makes (with its 95 %
interval), and how far the audit and people agree."""

EXPORT = """\
Write the whole history of decisions, a row each, in the order in which they were made. The ending of FILE says in what
format. An earlier export of that name is replaced; a file that holds anything else stays, and nothing is written."""

IMPORT = """\
Take over the decisions of a file that are not there yet; none that is there is changed. The file needs the columns
pair_id and verdict (match, mismatch, unsure, or empty to take one back)."""


def add_decisions(commands: Any) -> None:
    parser = add_command(
        commands, "decisions", lambda _: parser.print_help(), "what people decided about an audit", DESCRIPTION, EPILOG
    )
    actions = parser.add_subparsers(title="actions", metavar="ACTION", required=True)
    about = "how much was decided, by whom, and what it says of the noise"
    show = add_command(actions, "show", run_show, about, SHOW)
    leave = add_command(actions, "export", run_export, "write all decisions to a file", EXPORT)
    enter = add_command(actions, "import", run_import, "merge the decisions of a file", IMPORT)
    for action in (show, leave, enter):
        action.add_argument("audit", type=Path, metavar="AUDIT", help="folder of a finished audit")
    leave.add_argument("--out", type=Path, required=True, metavar="FILE", help=".parquet, .csv, .jsonl or .json")
    enter.add_argument("file", type=Path, metavar="FILE", help=".parquet, .csv, .jsonl or .json")


def run_show(options: argparse.Namespace) -> None:
    """Print counts, the estimate, and how far the audit and people agree."""
    from truepair.decisions.agreement import agreement_with
    from truepair.decisions.estimate import noise_estimate
    from truepair.decisions.population import decisions_of
    from truepair.phrases import counted, percent, percent_span

    store, pairs = decisions_of(options.audit, read_only=True)
    with store:
        current, people = store.current(), store.people()
    found, agreed = noise_estimate(pairs, current.values()), agreement_with(pairs, current.values())
    print(f"{counted(found.decided, 'pair')} of {len(pairs):,} decided by {', '.join(people) or 'nobody'}:")
    print(f"{found.mismatched:,} mismatched, {found.unsure:,} unsure; {found.drawn:,} were drawn at random.")
    print(
        f"Mismatched: {percent(found.share)} ({percent_span(found.low, found.high)}) of all pairs. {found.note}".strip()
    )
    if agreed.pairs:
        print(
            f"The audit agrees on {agreed.agreed:,} of {counted(agreed.pairs, 'pair')}: people call "
            f"{agreed.missed:,} mismatched that it does not flag, and {agreed.mistaken:,} matched that it flags."
        )


def run_export(options: argparse.Namespace) -> None:
    from truepair.decisions.files import write_decisions
    from truepair.decisions.population import TABLE, decisions_of
    from truepair.decisions.sources import given_of
    from truepair.phrases import counted

    store, _ = decisions_of(options.audit, read_only=True)
    with store:
        history, pairs = store.history(), store.count()
    given = given_of(options.audit / TABLE, {decision.pair_id for decision in history})
    write_decisions(options.out, history, given)
    print(f"{options.out}: {counted(len(history), 'row')} of history, {counted(pairs, 'pair')} decided")


def run_import(options: argparse.Namespace) -> None:
    from truepair.decisions.files import read_decisions
    from truepair.decisions.population import TABLE, decisions_of
    from truepair.decisions.sources import given_of, take_over
    from truepair.phrases import counted

    rows = read_decisions(options.file)
    store, _ = decisions_of(options.audit)
    with store:
        new = take_over(store, rows, given_of(options.audit / TABLE))
        now = store.count()
    were = f"{len(rows) - new:,} were there already" if len(rows) > new else "none was there before"
    print(f"{counted(new, 'decision')} taken over from {options.file}, {were}; {counted(now, 'pair')} decided now")
