"""Where the verdict of an audit and people agree, and where not."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from truepair.decisions.decision import Decision
from truepair.decisions.population import Population


@dataclass(frozen=True)
class Agreement:
    """Counts of decided pairs; "unsure" is left out.

    Attributes:
        pairs: how many were decided either way.
        agreed: flagged and called mismatched, or neither.
        missed: called mismatched, but not flagged.
        mistaken: called matched, but flagged.
        bins: of ten equal bins of p_match those that hold decided pairs: low, high, pairs, mean p_match, and the share
            that people call matched.
        rows: (D,) places of the pairs where they differ, the surest verdicts first.
    """

    pairs: int
    agreed: int
    missed: int
    mistaken: int
    bins: list[dict[str, float]]
    rows: list[int]


def agreement_with(pairs: Population, decisions: Iterable[Decision]) -> Agreement:
    """Of the verdict that was made without decisions; a pair is flagged where its p_match is below ½."""
    decided = [(pairs.rows[d.pair_id], d.verdict == "match") for d in decisions if d.verdict in ("match", "mismatch")]
    rows = np.array([row for row, _ in decided], dtype=np.int64)
    matched = np.array([match for _, match in decided], dtype=bool)
    p_match = pairs.p_match[rows]
    flagged = p_match < 0.5
    differs = flagged == matched
    order = np.argsort(-np.abs(p_match[differs] - 0.5), kind="stable")
    place = np.minimum((p_match * 10).astype(int), 9)
    bins = [
        {
            "low": k / 10,
            "high": (k + 1) / 10,
            "pairs": int((place == k).sum()),
            "p_match": float(p_match[place == k].mean()),
            "matched": float(matched[place == k].mean()),
        }
        for k in np.unique(place).tolist()
    ]
    return Agreement(
        pairs=len(rows),
        agreed=int((~differs).sum()),
        missed=int((differs & ~matched).sum()),
        mistaken=int((differs & matched).sum()),
        bins=bins,
        rows=rows[differs][order].tolist(),
    )
