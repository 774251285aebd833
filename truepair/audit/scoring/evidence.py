"""What scoring says of pairs, as columns of one table, and on the scale of log odds."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from truepair.audit.scoring.other_captions import OTHERS
from truepair.correspondence.calibration import logit
from truepair.data.pairs import Array, BoolArray, IntArray
from truepair.errors import InputError

LARGEST = 1e70  # far beyond any evidence, and its square still is a float64
SAME = 1e-9
"""A column whose spread is no more than this share of its largest value is constant but for rounding."""


@dataclass(frozen=True)
class Evidence:
    """Attributes:
    columns: similarity and indicators, name → (n,) float32.
    log_odds: (n, d) float64, larger = better matched: what the verdict is made from; the names of its d columns
        are those of `log_odds_of`.
    """

    columns: dict[str, Array]
    log_odds: Array

    def take(self, rows: IntArray) -> Evidence:
        return Evidence({name: values[rows] for name, values in self.columns.items()}, self.log_odds[rows])

    @property
    def similarity(self) -> Array:
        return self.columns["similarity"]

    @property
    def indicators(self) -> dict[str, Array]:
        return {name: values for name, values in self.columns.items() if name != "similarity"}


@dataclass(frozen=True)
class HeldOut:
    """What models say of pairs they never saw. So many mismatches as one likes can be shown to them.

    Attributes:
        given: (M, d) evidence of the given pairs.
        known: (P, d) the same of random mismatches.
    """

    given: Array
    known: Array


@dataclass(frozen=True)
class NearestCopies:
    """Synthetic mismatches that are hardest to see: an image with a copy of a caption of the image most like it.

    Attributes:
        given, given_similarity: (M, d) evidence and (M,) similarity of the given pairs, by models that never saw them.
        copies, similarity: (q, d) and (q,) of the copies.
    """

    given: Array
    given_similarity: Array
    copies: Array
    similarity: Array


def evidence_of(columns: dict[str, Array], memory: Array | None = None) -> Array:
    """(n, d) float64: log odds of the matching probability, those of the neighbours' agreement where it is known, the
    agreement with the image's other captions where there are such, and the memory's log odds: of what training came to
    believe, where there was one.

    The other indicators say the same again, or little (`certainty`), and are there for people. `log_odds` is taken out
    of the columns of a bank (`indicators.COLUMNS`): it is no indicator.
    """
    sides = [columns.pop("log_odds").astype(np.float64)]
    if "neighbours" in columns:
        sides.append(logit(columns["neighbours"].astype(np.float64)))
    if OTHERS in columns:  # a mean of cosines; many are 0, and the log of that would count far too much
        sides.append(columns[OTHERS].astype(np.float64))
    return np.stack(sides if memory is None else [*sides, memory], axis=1)


def checked_evidence(rows: Array, name: str) -> Array:
    """The evidence as (n, d) float64; an InputError where it is of another shape, empty, or a value is not finite or
    larger than 1e70.
    """
    rows = np.asarray(rows, dtype=np.float64)
    if rows.ndim != 2 or not rows.size:
        raise InputError(f"{name} has shape {rows.shape}; expected (pairs, kinds), neither of them 0")
    odd = np.flatnonzero(~(np.abs(rows) <= LARGEST).all(axis=1))  # true for NaN
    if len(odd):
        raise InputError(
            f"{name}[{odd[0]}] is {rows[odd[0]].tolist()}; expected finite numbers of at most {LARGEST} in size. Leave "
            "such pairs out"
        )
    return rows


def varying(rows: Array) -> BoolArray:
    """(d,) whether a column of evidence says anything: it is not the same for all pairs, but for rounding."""
    varies: BoolArray = rows.std(axis=0) > SAME * np.abs(rows).max(axis=0)
    return varies
