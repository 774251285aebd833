"""The share of mismatched pairs from decisions: unbiased however pairs were chosen, with an interval that may be
looked at after every decision.

The draws are in `draws`, the interval in `betting`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from truepair.data.pairs import Array
from truepair.decisions.betting import lower_end
from truepair.decisions.decision import Decision
from truepair.decisions.draws import draws_of
from truepair.decisions.population import Population
from truepair.errors import InputError

MISTAKES = 0.05
"""Largest share of decisions that may be mistakes, of either kind, if nothing else is said."""


@dataclass(frozen=True)
class NoiseEstimate:
    """The share of mismatched pairs, in [0, 1].

    Attributes:
        share: as people judge, without bias where pairs were drawn; mistakes are not taken out of it.
        low, high: ends of the interval that holds the true share, widened by the mistakes people may make.
        decided: pairs that were decided, "unsure" among them.
        drawn: those of them that were drawn at random and decided; only these tell of the others.
        mismatched: those of them that are called mismatched.
        unsure: those of them that are neither; the interval counts them both ways.
        note: what to know before the figures are believed; empty where nothing is.
    """

    share: float
    low: float
    high: float
    decided: int
    drawn: int
    mismatched: int
    unsure: int
    note: str = ""


def noise_estimate(
    pairs: Population, decisions: Iterable[Decision], *, mistakes: float = MISTAKES, level: float = 0.95
) -> NoiseEstimate:
    """The share of mismatched pairs by the verdict of an audit and the decisions about it.

    Args:
        pairs: what the audit believed before anybody decided.
        decisions: one a pair, in the order in which the pairs were chosen (`DecisionStore.current().values()`).
        mistakes: largest share of the matched pairs that are called mismatched, and of the mismatched ones that are
            called matched; in [0, ½).
        level: probability that the interval holds the truth, at all times at once.

    Raises:
        InputError: a decision is about a pair that is not there, or twice about one; an argument is out of range.
    """
    if not 0 <= mistakes < 0.5 or not 0 < level < 1:
        raise InputError(f"mistakes = {mistakes}, level = {level}; expected 0 to below 0.5, and between 0 and 1")
    given = list(decisions)
    rows = _rows(pairs, given)
    believed = 1 - pairs.p_match
    y = np.array([{"mismatch": 1.0, "match": 0.0}.get(str(decision.verdict), np.nan) for decision in given])
    unsure = np.isnan(y)
    probability = np.array([decision.probability_chosen or 0.0 for decision in given])
    draws = draws_of(believed, rows, probability, np.array([decision.chosen_by == "gain" for decision in given], bool))
    used = draws.used
    share = draws.mean(np.where(unsure, believed[rows], y))
    low = lower_end(draws, np.where(unsure, 0.0, y), 1 - level)
    high = 1 - lower_end(draws.turned(), np.where(unsure, 0.0, 1 - y), 1 - level)
    low, high = min(low, high), max(low, high)  # they may cross, rarely, as intervals fail
    return NoiseEstimate(
        share=float(np.clip(share, low, high)),
        low=float(np.clip((low - mistakes) / (1 - mistakes), 0, 1)),
        high=float(np.clip(high / (1 - mistakes), 0, 1)),
        decided=len(given),
        drawn=int((used & ~unsure).sum()),
        mismatched=int(np.nansum(y)),
        unsure=int(unsure.sum()),
        note=_note(len(given), int(used.sum()), int(unsure.sum())),
    )


def _rows(pairs: Population, decisions: list[Decision]) -> Array:
    rows = np.array([pairs.rows.get(decision.pair_id, -1) for decision in decisions], dtype=np.int64)
    unknown = np.flatnonzero(rows < 0)
    if len(unknown):
        raise InputError(
            f"a decision is about pair {decisions[unknown[0]].pair_id!r}, which this audit does not have; give the "
            "decisions about its own pairs"
        )
    if len(np.unique(rows)) < len(rows):
        raise InputError("two decisions are about one pair; give one a pair (DecisionStore.current)")
    return rows


def _note(decided: int, drawn: int, unsure: int) -> str:
    if not drawn:
        what = "Nothing is decided yet" if not decided else "No decided pair was drawn at random"
        return f"{what}: of the pairs nobody looked at nothing is known. Review by expected gain (order gain)."
    if unsure > decided / 5:
        return f"{unsure} of {decided} decisions are unsure; the interval counts them both ways, and stays wide."
    return ""
