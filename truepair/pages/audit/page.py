"""From an audit to one HTML page that needs nothing else."""

from __future__ import annotations

from typing import Any

import numpy as np

from truepair.audit.audit import audit
from truepair.audit.result import AuditResult, Fault
from truepair.audit.tables.pair_table import columns_of
from truepair.audit.tables.summary import (
    SCORED_BY,
    duplicates_of,
    faults_by_kind,
    problems_of,
    statement,
    swaps_of,
    trial_of,
    worst_of,
)
from truepair.audit.tables.text import duration
from truepair.audit.warnings import warnings_of
from truepair.data.collection import Problem
from truepair.data.pairs import IntArray
from truepair.pages.audit import charts
from truepair.pages.audit.cards import Cards
from truepair.pages.audit.glossary import DUPLICATES_EXPLAINED, SCORES, meanings
from truepair.pages.kit.page import clipped, render, tight
from truepair.phrases import percent_span, printable

SWAPS, GROUPS, MEMBERS, EXAMPLES, DIFFERING = 12, 6, 6, 3, 24


def audit_with_page(*arguments: Any, **options: Any) -> AuditResult:
    """`truepair.audit` as people call it: where it writes to a folder, report.html is there, too."""
    return audit(*arguments, page=render_page, **options)


def render_page(result: AuditResult, *, worst: int = 60, borderline: int = 24) -> str:
    """The page of an audit, light or dark as the reader's system is.

    Args:
        worst: pairs of the lowest probability to show.
        borderline: further pairs to show, those with probabilities closest to ½.
    """
    verdict, size, known = result.verdict, len(result), result.scores or {}
    album = Cards(result)
    lowest = worst_of(result, worst)
    truth = None if result.mismatched is None or not size else float(result.mismatched.mean())
    bins = [entry for entry in known.get("reliability", []) if entry["pairs"]]
    return render(
        "audit/page.html",
        name=clipped(result.collection.name, 120),
        scored_by=SCORED_BY.get(result.scored_by, result.scored_by),
        encoder=verdict.details.get("encoder", {}).get("told"),
        size=size,
        verdict=verdict,
        flagged=int(verdict.flagged.sum()),
        statement=tight(statement(result)),
        warnings=warnings_of(result),
        trial=trial_of(result),
        span=spanned(verdict.noise_rate_low, verdict.noise_rate_high),
        spanned=spanned,
        shares=[
            (title, share)
            for title, share in (("Random mismatches", verdict.random), ("near mismatches", verdict.near))
            if share is not None
        ],
        truth=truth,
        scores={title: float(known[name]) for name, title in SCORES.items() if known.get(name) is not None},
        histogram=charts.histogram(verdict),
        estimate=charts.estimate(verdict, truth),
        reliability=charts.reliability(bins) if bins else None,
        bins=bins,
        worst=[album.card(rank, int(row)) for rank, row in enumerate(lowest, start=1)],
        borderline=[
            album.card(rank, row, proposals=False)
            for rank, row in enumerate(borderline_of(result, lowest, borderline), start=1)
        ],
        swaps=[[album.shown(int(row)) for row in both] for both in swaps_of(result)[:SWAPS]],
        swap_count=len(swaps_of(result)),
        proposals=len(result.rematch.rows),
        faults=shown_faults(result, album),
        duplicates=kinds_of(result, album),
        problems=reasons_of(result),
        problem_count=len(result.problems),
        meanings=meanings(result),
        columns={name: text for name, (_, text) in columns_of(result).items()},
        **of_people(result, album),
        time=duration(sum(result.seconds.values())) if result.seconds else None,
        cramped=album.cramped,
    )


def of_people(result: AuditResult, album: Cards) -> dict[str, Any]:
    """What people decided, and the pairs of which the audit without decisions was most wrongly sure."""
    people = result.people
    if people is None:
        return {"people": None}
    bins, agreed = people.agreement.bins, people.agreement
    matched = sum(decision.verdict == "match" for decision in people.decisions.values())
    differing = [
        {
            "pair": album.shown(int(result.rows[place])),
            "p_match": float(people.p_match[place]),
            "verdict": people.decisions[place].verdict,
            "person": printable(people.decisions[place].person),
            "caption": printable(people.captions.get(place, "")),
        }
        for place in agreed.rows[:DIFFERING]
    ]
    return {
        "people": people,
        "people_reliability": charts.reliability(bins),
        "agreed_matched": matched - agreed.mistaken,
        "agreed_mismatched": agreed.pairs - matched - agreed.missed,
        "differing": differing,
    }


def spanned(low: float, high: float) -> str:
    return tight(percent_span(low, high))


def borderline_of(result: AuditResult, taken: IntArray, count: int) -> list[int]:
    """Rows of the pairs whose probability is closest to ½, beside those taken; ties by place."""
    distance = np.abs(result.verdict.p_match.astype(np.float64) - 0.5)
    distance[result.at(taken)] = np.inf
    order = np.argsort(distance, kind="stable")[:count]
    return [int(result.rows[place]) for place in order if distance[place] < 0.4]


def shown_faults(result: AuditResult, album: Cards) -> list[tuple[list[dict[str, Any]], list[dict[str, Any]]]]:
    """The faults of each kind, the first few and the rest, each with some of its pairs from beginning to end."""
    return [
        ([shown_fault(fault, album) for fault in first], [shown_fault(fault, album) for fault in more])
        for first, more in faults_by_kind(result.faults)
    ]


def shown_fault(fault: Fault, album: Cards) -> dict[str, Any]:
    """A fault in words, with some of its pairs; where it is repaired, with the captions that belong to these."""
    seats = np.unique(np.linspace(0, len(fault.rows) - 1, min(len(fault.rows), MEMBERS)).astype(np.int64))
    sources = None if fault.caption_from is None else fault.caption_from[seats]
    shown = [album.shown(int(row)) for row in fault.rows[seats]]
    captions: list[str | None] = [None] * len(shown)
    if sources is not None:
        captions = [album.shown(int(row)).caption if row >= 0 else None for row in sources]
    return {
        "name": fault.kind,
        "sentence": tight(printable(fault.sentence)),
        "size": len(fault.rows),
        "shown": [{"pair": pair, "caption": caption} for pair, caption in zip(shown, captions, strict=True)],
    }


def kinds_of(result: AuditResult, album: Cards) -> list[dict[str, Any]]:
    """Duplicates of each kind: how many there are, and the largest groups with some members and their size."""
    found = []
    for kind, counts in duplicates_of(result).items():
        largest = [group.rows for group in result.duplicates if group.kind == kind][:GROUPS]
        shown = [{"size": len(rows), "members": [album.shown(int(row)) for row in rows[:MEMBERS]]} for rows in largest]
        found.append({"name": kind, "meaning": DUPLICATES_EXPLAINED.get(kind, kind), "shown": shown, **counts})
    return found


def reasons_of(result: AuditResult) -> list[dict[str, Any]]:
    """Problems of each kind: how many there are, and some examples."""
    examples: dict[str, list[Problem]] = {}
    for problem in result.problems:
        here = examples.setdefault(problem.reason, [])
        if len(here) < EXAMPLES:
            here.append(problem)
    return [{"name": reason, "examples": examples[reason], **counts} for reason, counts in problems_of(result).items()]
