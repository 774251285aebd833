"""What an audit comes to: the facts of `summary.json`, and its one sentence."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from truepair import __version__
from truepair.audit.duplicates.find import MOST_GROUPS
from truepair.audit.result import DUPLICATES, INDICATORS, AuditResult, Fault
from truepair.audit.tables.pair_table import columns_of
from truepair.audit.warnings import warnings_of
from truepair.data.pairs import IntArray
from truepair.phrases import are, counted, percent, percent_span, plain, printable

FAULTS_OF_A_KIND = 3  # that are shown at once
SCORED_BY = {
    "cross-fitting": "models that never trained on the pair (cross-fitting)",
    "run": "a trained run",
    "embeddings": "the given embeddings",
    "encoder": "an encoder of images and texts",
}


def facts_of(result: AuditResult) -> dict[str, Any]:
    """Everything of an audit that is not said pair by pair; JSON values only, None where a figure is undefined."""
    verdict, size = result.verdict, len(result)
    facts = {
        "truepair": __version__,
        "collection": result.collection.name,
        "scored_by": result.scored_by,
        "pairs": size,
        "noise_rate": verdict.noise_rate,
        "noise_rate_low": verdict.noise_rate_low,
        "noise_rate_high": verdict.noise_rate_high,
        "random": None if verdict.random is None else asdict(verdict.random),
        "near": None if verdict.near is None else asdict(verdict.near),
        "flagged": int(verdict.flagged.sum()),
        "two_groups": bool(verdict.two_groups),
        "doubt": verdict.doubt,
        "statement": statement(result),
        "warnings": warnings_of(result),
        "verdict": verdict.details,
        "indicators": {name: INDICATORS.get(name, name) for name in result.indicators},
        "proposals": {
            "suspicious": len(result.rematch.rows),
            "captions": int((result.rematch.caption_from >= 0).sum()),
            "images": int((result.rematch.image_from >= 0).sum()),
        },
        "swaps": len(swaps_of(result)),
        "faults": faults_of(result),
        "duplicates": duplicates_of(result),
        "problems": problems_of(result),
        "mismatch_rate": None if result.mismatched is None or not size else float(result.mismatched.mean()),
        "scores": result.scores,
        "decisions": None if result.people is None else result.people.facts(),
        "seconds": result.seconds,
        "options": result.options,
        "identity": result.identity,
        "columns": {name: text for name, (_, text) in columns_of(result).items()},
    }
    return {name: plain(value) for name, value in facts.items()}


def statement(result: AuditResult) -> str:
    """The answer in one or two sentences."""
    verdict, size = result.verdict, len(result)
    flagged = int(verdict.flagged.sum())
    if verdict.two_groups and result.people is not None and result.people.taken_over:
        span = f"{percent(verdict.noise_rate)} ({percent_span(verdict.noise_rate_low, verdict.noise_rate_high)})"
        decided = counted(result.people.noise.decided, "decision")
        return (
            f"By {decided}, about {span} of {counted(size, 'pair')} are mismatched; {flagged:,} {are(flagged)} flagged."
        )
    if verdict.two_groups:
        span = f"{percent(verdict.noise_rate)} ({percent_span(verdict.noise_rate_low, verdict.noise_rate_high)})"
        return f"About {span} of {counted(size, 'pair')} look mismatched; {flagged:,} {are(flagged)} flagged."
    if "resampled_with_two_groups" in verdict.details and verdict.random is None:  # nothing was measured beside them
        found = f"How many of {counted(size, 'pair')} are mismatched cannot be told"
    else:
        found = f"No sign of noise in {counted(size, 'pair')}"
    found += f": {verdict.doubt}." if verdict.doubt else "."
    if flagged:
        found += f" {counted(flagged, 'single pair')} that fit{'s' if flagged == 1 else ''} no better than chance "
        found += f"{are(flagged)} flagged all the same."
    return found


EXCHANGED = {
    "caption": "captions",
    "image": "images",
    "class": "captions within each class",
    "nearest": "captions of similar images",
}


def trial_of(result: AuditResult) -> str | None:
    """What was mismatched on purpose before the audit (`--noise`, `--noise-index`), in words; else None."""
    options = result.options
    if options.get("noise_index"):
        done = f"pairs were mismatched on purpose as {Path(str(options['noise_index'])).name} says"
    elif options.get("noise"):
        kind = EXCHANGED.get(str(options.get("noise_kind")), "captions")
        done = f"{kind} of {percent(float(options['noise']))} of the pairs were exchanged on purpose"
    else:
        return None
    return f"This is a trial: {done} before the audit. Pairs that were wrong already count as matched in the truth."


def swaps_of(result: AuditResult) -> IntArray:
    """(n, 2) rows of pairs that exchanged their captions, each two once, most suspicious first."""
    found = result.rematch
    both = np.stack([found.rows, found.swap_with], axis=1)[found.swap_with >= 0]
    if not len(both):
        return np.empty((0, 2), dtype=np.int64)
    ordered = np.sort(both, axis=1)
    _, first = np.unique(ordered, axis=0, return_index=True)
    return np.asarray(both[np.sort(first)], dtype=np.int64)


def faults_by_kind(faults: Sequence[Fault]) -> list[tuple[list[Fault], list[Fault]]]:
    """Of each kind of fault those that are shown at once, and the rest: twenty captions that stand on many images would
    push everything else out of sight. Of repeated captions the first ones are the largest.
    """
    kinds = [[fault for fault in faults if fault.kind == kind] for kind in dict.fromkeys(each.kind for each in faults)]
    return [(of_kind[:FAULTS_OF_A_KIND], of_kind[FAULTS_OF_A_KIND:]) for of_kind in kinds]


def faults_of(result: AuditResult) -> list[dict[str, Any]]:
    """What is said of each fault: its kind, where it begins and ends, how many pairs it concerns, and its sentence."""
    read = result.collection.ids
    return [
        {
            "fault": number,
            "kind": fault.kind,
            "pairs": len(fault.rows),
            "first_pair": printable(read(int(fault.rows[0]), int(fault.rows[0]) + 1)[0]),
            "last_pair": printable(read(int(fault.rows[-1]), int(fault.rows[-1]) + 1)[0]),
            "offset": fault.offset,
            "repaired": 0 if fault.caption_from is None else int((fault.caption_from >= 0).sum()),
            "sentence": fault.sentence,
        }
        for number, fault in enumerate(result.faults)
    ]


def duplicates_of(result: AuditResult) -> dict[str, dict[str, int]]:
    """Kind → number of groups and of pairs in them, of the kinds that occur; `capped` where only the largest groups
    were kept, so that there may be more.
    """
    groups: Counter[str] = Counter(group.kind for group in result.duplicates)
    pairs: Counter[str] = Counter()
    for group in result.duplicates:
        pairs[group.kind] += len(group.rows)
    return {
        kind: {"groups": groups[kind], "pairs": pairs[kind], "capped": groups[kind] >= MOST_GROUPS}
        for kind in DUPLICATES
        if groups[kind]
    }


def problems_of(result: AuditResult) -> dict[str, dict[str, int]]:
    """Reason → number of entries, and how many of them were audited all the same; most frequent first."""
    entries = Counter(problem.reason for problem in result.problems)
    used = Counter(problem.reason for problem in result.problems if problem.used)
    return {reason: {"entries": count, "used": used[reason]} for reason, count in entries.most_common()}


def worst_of(result: AuditResult, count: int) -> IntArray:
    """Rows of the pairs least likely to match, least first; equal ones by similarity, then by place. Those that people
    decided are known, and come after all others.
    """
    decided = np.zeros(len(result), dtype=bool)
    if result.people is not None:
        decided[list(result.people.decisions)] = True
    order: IntArray = np.lexsort((result.similarity, result.verdict.p_match, decided))[:count]
    return result.rows[order]
