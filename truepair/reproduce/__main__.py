"""`python -m truepair.reproduce`: list tables and figures, run what is missing, render the documentation, draw."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

from truepair.errors import TruepairError
from truepair.phrases import counted
from truepair.reproduce.cells import Places
from truepair.reproduce.data_sets import check_data_sets
from truepair.reproduce.figures.figure import draw, read_figures
from truepair.reproduce.missing import lines_of
from truepair.reproduce.processes import ended_together
from truepair.reproduce.records import read_records
from truepair.reproduce.report import PRINT, report
from truepair.reproduce.revisions import outdated
from truepair.reproduce.runner import chosen_cells, missing_cells, run_cells
from truepair.reproduce.tables import Table, read_specs

TABLES, _ = read_specs()
CHOICES = {
    "data": ("data", str, "data sets"),
    "engines": ("engine", str, "engines"),
    "methods": ("method", str, "rows"),
    "kinds": ("kind", str, "kinds of noise"),
    "rates": ("noise", float, "noise rates"),
    "seeds": ("seed", int, "seeds"),
}
"""Option → the fact of a cell that it chooses by, its type, and what it names."""


def build_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m truepair.reproduce", description=__doc__)
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    command = commands.add_parser("list", help="every table and figure; of tables that are named: what is missing")
    command.add_argument("tables", nargs="*", metavar="TABLE", help="what is missing of these, and how long it takes")
    command.add_argument("--results", type=Path, default=Path("results"), help="records [%(default)s]")
    command.set_defaults(command=list_tables)
    command = commands.add_parser("run", help="run what is missing of a table; may be stopped and started again")
    command.add_argument("table", choices=[*TABLES], metavar="TABLE", help=", ".join(TABLES))
    for name, (_, kind, what) in CHOICES.items():
        command.add_argument(f"--{name}", nargs="+", type=kind, metavar="X", help=f"these {what} only")
    add_places(command)
    command.add_argument("--anew", action="store_true", help="also runs of an earlier revision of their method")
    command.add_argument("--jobs", type=int, default=2, help="runs at a time, one CPU thread each [%(default)s]")
    command.set_defaults(command=run_table)
    command = commands.add_parser("figure", help="draw a paper's figure from runs: SVG, PNG, and its numbers as JSON")
    command.add_argument("figure", choices=[*read_figures()], metavar="FIGURE", help=", ".join(read_figures()))
    add_places(command)
    command.add_argument("--out", type=Path, default=Path("docs/figures"), help="folder for the files [%(default)s]")
    command.set_defaults(command=draw_figure)
    command = commands.add_parser("report", help="put the tables and pictures into README.md and docs/")
    command.add_argument("tables", nargs="*", metavar="TABLE", help="all, unless some are named; print: docs/print.md")
    command.add_argument(
        "--check", action="store_true", help="change nothing; fail where a file differs from its records"
    )
    command.set_defaults(command=report_tables)
    return parser


def add_places(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--root", type=Path, default=Path("../shared/data"), help="folder of the data sets [%(default)s]"
    )
    command.add_argument("--runs", type=Path, default=Path("runs"), help="run folders, not kept in git [%(default)s]")
    command.add_argument("--results", type=Path, default=Path("results"), help="records [%(default)s]")


def list_tables(options: argparse.Namespace) -> None:
    for table in known_tables(options.tables, [*TABLES]) or TABLES:
        print_table(TABLES[table], options.results, missing=bool(options.tables))
    for name, figure in ({} if options.tables else read_figures()).items():
        print(f"{name:16s} figure            {figure.paper}")


def print_table(table: Table, results: Path, *, missing: bool) -> None:
    """One line, and with `missing` a line for each row of which runs are missing."""
    records = table.records(results)
    done = {record["name"] for record in records}
    runs = f"{sum(cell.name in done for cell in table.cells):4d} of {len(table.cells):4d} runs"
    old = len(outdated(records))
    print(f"{table.name:16s} {runs}  {table.about}{f' ({old} of an earlier revision)' if old else ''}")
    for line in lines_of(table, records) if missing else ():
        print(line)


def run_table(options: argparse.Namespace) -> None:
    given = {key: getattr(options, name) for name, (key, _, _) in CHOICES.items()}
    wanted = {key: values for key, values in given.items() if values is not None}
    table = TABLES[options.table]
    results, places = options.results / f"{table.name}.jsonl", Places(options.root, options.runs)
    records = table.records(options.results)
    own = {record["name"] for record in read_records(results)}
    elsewhere = {record["name"] for record in records} - own
    cells = [cell for cell in chosen_cells(table.cells, wanted) if cell.name not in elsewhere]
    names = {cell.name for cell in cells}
    if (old := sum(record["name"] in names for record in outdated(records))) and not options.anew:
        print(
            f"kept: {counted(old, 'run')} of an earlier revision of the method; to run again: --anew", file=sys.stderr
        )
    check_data_sets(missing_cells(cells, results, anew=options.anew), places)
    run_cells(cells, results, places, jobs=options.jobs, anew=options.anew)


def draw_figure(options: argparse.Namespace) -> None:
    with ended_together():
        for path in draw(options.figure, options.results, Places(options.root, options.runs), options.out):
            print(f"written: {path}")


def report_tables(options: argparse.Namespace) -> int:
    known = [*TABLES, PRINT]
    changes = report(Path.cwd(), known_tables(options.tables, known) or known, check=options.check)
    for change in changes:
        print(("differs: " if options.check else "written: ") + change)
    return 1 if options.check and changes else 0


def known_tables(names: list[str], known: list[str]) -> list[str]:
    """These names; a TruepairError where one is no table."""
    unknown = [name for name in names if name not in known]
    if unknown:
        raise TruepairError(f"{unknown[0]} is no table; there are {', '.join(known)}")
    return names


def main() -> int:
    options = build_parser().parse_args()
    try:
        code = options.command(options) or 0
        sys.stdout.flush()
        return code
    except BrokenPipeError:  # `… list | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # the interpreter flushes once more at its end
        return 141
    except TruepairError as error:
        print(f"truepair.reproduce: error: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        sys.exit("Interrupted; the same command continues.")


if __name__ == "__main__":
    sys.exit(main())
