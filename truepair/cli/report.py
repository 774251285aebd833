"""`truepair report`: what runs made of their pairs, as a table in the terminal and a folder of figures."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from truepair.errors import InputError
from truepair.phrases import aligned

COMPARISON = Path("report")


def add_report(commands: Any) -> None:
    parser = commands.add_parser(
        "report",
        help="how runs divided their pairs, epoch by epoch: tables, distributions, examples",
        description="Sizes and purity of the clean, hard and noisy parts by epoch, distributions of the indicators, "
        "and examples; as a table here, and as a page, figures and numbers in a folder. Unfinished runs are welcome.",
    )
    parser.add_argument("runs", type=Path, nargs="+", metavar="RUN", help="run folder; several are also compared")
    parser.add_argument(
        "--out",
        type=Path,
        metavar="DIR",
        help="folder to write; of several runs it holds one folder per run [default: RUN/report; comparison of several "
        f"runs: {COMPARISON}]",
    )
    parser.set_defaults(command=run_report)


def run_report(options: argparse.Namespace) -> None:
    """Print and write the report of each run, then what compares them."""
    from truepair.pages.kit.folder import check_out
    from truepair.pages.run.division import read_report
    from truepair.pages.run.write import (
        OWN,
        PAGE,
        REPORT,
        check_reports,
        epoch_rows,
        summary,
        write_comparison,
        write_report,
    )

    names = names_of(options.runs)
    several = len(names) > 1
    outs = [run / "report" for run in options.runs]
    if options.out is not None:
        outs = [options.out / name.replace("/", "-") for name in names] if several else [options.out]
    for out in outs:
        check_out(out, OWN, REPORT)
    if several:
        check_reports(options.out or COMPARISON, [out.name for out in outs])
    reports = [read_report(run, name=name) for run, name in zip(options.runs, names, strict=True)]
    for report, out in zip(reports, outs, strict=True):
        written = write_report(report, out)
        print(f"{report.name}: {summary(report)}")
        print(aligned(epoch_rows(report.epochs)))
        figures = sum(path.suffix == ".png" for path in written)
        print(f"{figures} figures, {PAGE} and {REPORT}: {out}\n")
    if several:
        comparison = write_comparison(reports, options.out or COMPARISON)
        print(f"Comparison: {comparison or 'none, since the truth is unknown in every run'}")


def names_of(runs: Sequence[Path]) -> list[str]:
    """Each run by as much of the end of its path as tells it from the others; a run given twice is refused."""
    places = [run.resolve() for run in runs]
    for run, place in zip(runs, places, strict=True):
        if places.count(place) > 1:
            raise InputError(f"{run} is given twice; name each run once")
    names = []
    for place in places:
        others = [other for other in places if other != place]
        length = 1
        while any(other.parts[-length:] == place.parts[-length:] for other in others):
            length += 1
        names.append("/".join(place.parts[-length:]))
    return names
