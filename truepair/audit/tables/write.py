"""Write an audit: tables for programs, a summary, a page for people."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from truepair.audit.result import AuditResult
from truepair.audit.tables.pair_table import (
    columns_of,
    pair_tables,
    write_duplicates,
    write_faults,
    write_problems,
    write_tables,
)
from truepair.audit.tables.summary import facts_of
from truepair.files import write_json_atomically, write_text_atomically


def write_audit(
    result: AuditResult,
    out: Path,
    *,
    page: Callable[[AuditResult], str] | None = None,
    progress: Callable[[str], None] | None = None,
) -> list[Path]:
    """Write all files of an audit into the folder `out`; returns their paths, the page first.

    - `pairs.parquet`: a row for each scored pair; columns as in `data.pair_columns`, with one `indicator_<name>` for
      each indicator of the audit.
    - `problems.parquet`, `duplicates.parquet`, `faults.parquet`: also where there are none; columns as in `pair_table`.
    - `report.html`: what `page` makes of the audit; none without it.
    - `summary.json`: noise rate with its interval, counts, options, times, scores against the truth.

    Each file is written whole or not at all, `summary.json` last: where it is new, the others are. `progress` is called
    with the name of each before. A TruepairError where one cannot be written.
    """
    steps: dict[str, Callable[[Path], None]] = {
        "pairs.parquet": lambda path: write_tables(path, columns_of(result), pair_tables(result)),
        "problems.parquet": lambda path: write_problems(result, path),
        "duplicates.parquet": lambda path: write_duplicates(result, path),
        "faults.parquet": lambda path: write_faults(result, path),
    }
    if page is not None:
        steps["report.html"] = lambda path: write_text_atomically(path, page(result))
    steps["summary.json"] = lambda path: write_json_atomically(path, facts_of(result))
    for name, write in steps.items():
        if progress is not None:
            progress(name)
        write(out / name)
    order = ("report.html", "pairs.parquet", "summary.json", "problems.parquet", "duplicates.parquet", "faults.parquet")
    return [out / name for name in order if name in steps]
