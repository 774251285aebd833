"""An audit in the terminal: what it comes to, line by line, and the worst pairs."""

from __future__ import annotations

import shutil
import textwrap
import unicodedata
from collections.abc import Sequence

import numpy as np

from truepair.audit.result import AuditResult, Fault
from truepair.audit.tables.summary import duplicates_of, faults_by_kind, problems_of, statement, swaps_of, worst_of
from truepair.audit.warnings import warnings_of
from truepair.phrases import counted, percent, percent_span

WORST = 10
CAPTION, ID, REASON = 36, 24, 52
LINE = 2 + 2 + 7 + 2 + ID + 2 + CAPTION + 2 + REASON  # columns of the table; a wider terminal has more of the reasons
WARNING = 110


def summary_text(result: AuditResult) -> str:
    """Some aligned lines, the warnings, then a table of the ten worst pairs. Captions cannot steer the terminal."""
    lines = summary_lines(result)
    width = max(len(title) for title, _ in lines)
    text = "\n".join(f"{title.ljust(width)}  {said}" for title, said in lines)
    for said in (*faults_said(result.faults), *(f"Careful: {warning}" for warning in warnings_of(result))):
        said = said.replace(" %", "\u00a0%")  # a number keeps its %
        text += "\n\n" + textwrap.fill(said, WARNING, break_on_hyphens=False).replace("\u00a0", " ")
    if not len(result):
        return text
    first = "The worst pairs" if result.verdict.flagged.any() else "The lowest pairs; none of them is flagged"
    return f"{text}\n\n{first}:\n{table_of(result)}"


def faults_said(faults: Sequence[Fault]) -> list[str]:
    """Each fault in words; of one kind the first few, and how many more there are."""
    said = []
    for first, more in faults_by_kind(faults):
        said += [f"Found: {one_line(fault.sentence, 1000)}" for fault in first]
        if more:
            pairs = sum(len(fault.rows) for fault in more)
            said.append(
                f"Found: {len(more):,} more of this kind ({more[0].kind}), of {counted(pairs, 'pair')} together; "
                "report.html and faults.parquet have them."
            )
    return said


def summary_lines(result: AuditResult) -> list[tuple[str, str]]:
    verdict, size, found = result.verdict, len(result), result.rematch
    flagged = int(verdict.flagged.sum())
    span = percent_span(verdict.noise_rate_low, verdict.noise_rate_high)
    lines = [
        ("audit", f"{one_line(result.collection.name, 60)}, by {result.scored_by}"),
        *([("encoder", one_line(told, 400))] if (told := verdict.details.get("encoder", {}).get("told")) else []),
        ("verdict", one_line(statement(result), 400)),
        ("noise rate", f"{percent(verdict.noise_rate)}, 95 % interval {span}"),
        ("flagged", f"{flagged:,} of {counted(size, 'pair')}" + (f" ({percent(flagged / size)})" if size else "")),
    ]
    for kind, share in (("random", verdict.random), ("near", verdict.near)):
        if share is not None:
            title = "of random ones" if kind == "random" else "of near ones"
            lines.insert(-1, (title, f"{percent(share.share)}, 95 % interval {percent_span(share.low, share.high)}"))
    proposed = [(found.caption_from, "caption"), (found.image_from, "image")]
    counts = [counted(int((column >= 0).sum()), noun) for column, noun in proposed]
    lines.append(("proposals", f"{' and '.join(counts)} that fit better, {counted(len(swaps_of(result)), 'swap')}"))
    kinds = [
        f"{kind} {'at least ' if n['capped'] else ''}{counted(n['groups'], 'group')}"
        for kind, n in duplicates_of(result).items()
    ]
    lines.append(("duplicates", ", ".join(kinds) or "none"))
    reasons = [f"{one_line(reason, 30)} {count['entries']:,}" for reason, count in problems_of(result).items()]
    lines.append(("problems", ", ".join(reasons[:6]) + (", …" if len(reasons) > 6 else "") or "none"))
    if result.mismatched is not None and size:
        lines.append(("truth", f"{percent(float(result.mismatched.mean()))} are mismatched{score_text(result)}"))
    if result.seconds:
        lines.append(("time", duration(sum(result.seconds.values()))))
    return lines


def score_text(result: AuditResult) -> str:
    names = {
        "auroc": "AUROC",
        "average_precision": "average precision",
        "f1": "F1",
        "calibration_error": "calibration error",
    }
    scores = result.scores or {}
    known = [f"{title} {scores[name]:.3f}" for name, title in names.items() if scores.get(name) is not None]
    return "; " + ", ".join(known) if known else ""


def table_of(result: AuditResult) -> str:
    room = max(REASON, shutil.get_terminal_size((LINE, 24)).columns - LINE + REASON)
    rows = [["", "p_match", "pair", "caption", "reason"]]
    for rank, row in enumerate(worst_of(result, WORST).tolist(), start=1):
        position = int(result.at(np.array(row)))
        collection = result.collection
        rows.append(
            [
                str(rank),
                f"{result.verdict.p_match[position]:.3f}",
                one_line(collection.ids(row, row + 1)[0], ID),
                one_line(collection.captions(row, row + 1)[0], CAPTION),
                one_line(result.reasons[position], room) or "–",
            ]
        )
    widths = [max(map(columns_of, column)) for column in zip(*rows, strict=True)]
    return "\n".join("  ".join(map(padded, row, widths, (True, True, False, False, False))).rstrip() for row in rows)


def padded(cell: str, width: int, right: bool) -> str:
    room = " " * (width - columns_of(cell))
    return room + cell if right else cell + room


def columns_of(text: str) -> int:
    """Columns of a terminal that a text takes: wide signs take two, combining ones none."""
    return sum(
        0 if unicodedata.combining(sign) else 2 if unicodedata.east_asian_width(sign) in "WF" else 1 for sign in text
    )


def one_line(text: str, columns: int) -> str:
    """The text within so many columns, without control characters or signs that turn its direction."""
    flat = "".join(sign for sign in " ".join(text[: 8 * columns].split()) if unicodedata.category(sign)[0] != "C")
    if columns_of(flat) <= columns:
        return flat
    while columns_of(flat) >= columns:
        flat = flat[:-1]
    return flat + "…"


def duration(seconds: float) -> str:
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"
