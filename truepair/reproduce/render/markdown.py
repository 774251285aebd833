"""Markdown tables, their usual cells, and what is said of the records of one."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence

from truepair.phrases import counted
from truepair.reproduce.cells import Record
from truepair.reproduce.records import kept_in_warm_up, of_older_version, versions_of
from truepair.reproduce.revisions import outdated

NONE = "–"
"""In the place of a figure: there is none."""

DIVERGED = "diverged"
"""In its place where all runs that there are diverged."""


def table(titles: Iterable[str], rows: Iterable[Sequence[str]]) -> str:
    """Titles and rows of texts as a Markdown table; rows without any figure are left out."""
    head = [*titles]
    shown = [row for row in rows if any(cell != NONE for cell in row[1:])]
    lines = ["|" + "|".join(f" {cell} " if cell else " " for cell in line) + "|" for line in (head, *shown)]
    return "\n".join([lines[0], "|---" * len(head) + "|", *lines[1:]])


def cell(values: Iterable[float | None], digits: int) -> str:
    """Mean ± standard deviation, the mean alone of one value, – of none; None does not count."""
    found = [value for value in values if value is not None]
    if not found:
        return NONE
    mean = f"{statistics.fmean(found):.{digits}f}"
    return mean if len(found) < 2 else f"{mean} ± {statistics.stdev(found):.{digits}f}"


def percent(rate: float) -> str:
    return f"{100 * rate:.0f} %"


def of_seeds(seeds: str) -> str:
    """`seed 0`, or `seeds 0, 1, 2`."""
    return f"seeds {seeds}" if "," in seeds else f"seed {seeds}"


def seeds_and_dates(records: Sequence[Record]) -> tuple[str, str]:
    """`0, 1, 2` and `2026-11-20 to 2026-11-21`."""
    seeds = sorted({record["cell"]["seed"] for record in records})
    dates = sorted({record["date"] for record in records})
    return ", ".join(map(str, seeds)), dates[0] if len(dates) == 1 else f"{dates[0]} to {dates[-1]}"


MOST_NAMED = 10  # runs
OLDER = "°"
"""Beside a figure: among its runs are some of another version than the newest of the table, or of an earlier revision
of their method.
"""

WARM_UP = "‡"
"""Beside a figure: of some of its runs dev kept an epoch of the warm-up."""


def warm_up_mark(records: Iterable[Record]) -> str:
    """`‡` beside a figure of these runs, or nothing."""
    return WARM_UP if any(map(kept_in_warm_up, records)) else ""


def of_warm_up(records: Sequence[Record]) -> str:
    """What is said under a table in which dev kept an epoch of the warm-up of some runs; nothing where it did not."""
    found = [record for record in records if kept_in_warm_up(record)]
    said = "whose best epoch on dev is one of the warm-up: the figure is that of the warm-up, not of what follows it"
    return f"{WARM_UP} {named(found, said)}." if found else ""


def of_versions(records: Sequence[Record]) -> str:
    """What is said under a table whose runs are of several versions of the package, or of earlier revisions of their
    methods; nothing where they are of one.
    """
    others, (newest, *older) = of_older_version(records), versions_of(records) or [""]
    said = [
        named([record for record in others if record["truepair"] == version], f"of truepair {version}")
        for version in older
    ]
    sentences = [f"{'; '.join(said)}. All others are of {newest}."] if said else []
    if old := outdated(records):
        sentences.append(f"{named(old, 'of an earlier revision of the method')}, which came to other figures.")
    return f"{OLDER} {' '.join(sentences)}" if sentences else ""


def named(records: Sequence[Record], of: str) -> str:
    """`2 runs of truepair 0.1 (…)`: with their names where these are few."""
    names = [f"`{record['name']}`" for record in records]
    return f"{counted(len(names), 'run')} {of}" + (f" ({', '.join(names)})" if len(names) <= MOST_NAMED else "")
