"""Write an audit: tables for programs, a summary, a page for people."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from truepair.audit.result import AuditResult
from truepair.audit.tables.pair_table import write_pairs
from truepair.audit.tables.small_tables import write_duplicates, write_problems
from truepair.audit.tables.summary import facts_of
from truepair.files import write_json_atomically, write_text_atomically

PAIRS, PROBLEMS, DUPLICATE_TABLE, SUMMARY, PAGE = (
    "pairs.parquet", "problems.parquet", "duplicates.parquet", "summary.json", "report.html",
)  # fmt: skip


def write_audit(
    result: AuditResult,
    out: Path,
    *,
    page: Callable[[AuditResult], str] | None = None,
    progress: Callable[[str], None] | None = None,
) -> list[Path]:
    """Write all files of an audit into the folder `out`; returns their paths, the page first.

    - `pairs.parquet`: a row for each scored pair; columns as in `pair_table.COLUMNS`, with one
      `indicator_<name>` for each indicator of the audit.
    - `problems.parquet`, `duplicates.parquet`: also where there are none; columns as in `small_tables`.
    - `report.html`: what `page` makes of the audit; none without it.
    - `summary.json`: noise rate with its interval, counts, options, times, scores against the truth.

    Each file is written whole or not at all, `summary.json` last: where it is new, the others are.

    Args:
        progress: called with the name of each file before it is written.

    Raises:
        TruepairError: a file cannot be written.
    """
    out = Path(out)
    steps: list[tuple[str, Callable[[Path], None]]] = [
        (PAIRS, lambda path: write_pairs(result, path)),
        (PROBLEMS, lambda path: write_problems(result, path)),
        (DUPLICATE_TABLE, lambda path: write_duplicates(result, path)),
    ]
    if page is not None:
        steps.append((PAGE, lambda path: write_text_atomically(path, page(result))))
    steps.append((SUMMARY, lambda path: write_json_atomically(path, facts_of(result))))
    for name, write in steps:
        if progress is not None:
            progress(name)
        write(out / name)
    order = (PAGE, PAIRS, SUMMARY, PROBLEMS, DUPLICATE_TABLE)
    return sorted((out / name for name, _ in steps), key=lambda path: order.index(path.name))
