"""In which order pairs come before a person.

`gain` draws at random, and knows with which probability: only such draws tell of the pairs nobody looked at. With
q = 1 − p_match, U the undecided pairs and r = √(q (1 − q)), the expected error of the verdict, a pair is drawn with

    π(i) = ¾ · 1/|U| + ¼ · r(i)/Σ_U r .

Probabilities that follow the expected error make the variance of the estimate least (Neyman allocation, 1934; the
optimal proposal of active testing, Kossen et al., ICML 2021); the part that is uniform bounds the weight of a pair of
which the verdict is wrongly sure, and with it the interval. `worst` and `facet` show the least probable pairs first,
and draw nothing.
"""

from __future__ import annotations

import zlib
from collections.abc import Collection, Iterator

import numpy as np

from truepair.data.pairs import Array, BoolArray, IntArray
from truepair.decisions.population import Population
from truepair.errors import InputError
from truepair.seeding import generator

ORDERS = {
    "gain": "at random, most often where the verdict is least sure: these tell most of the share of mismatched pairs",
    "worst": "least probable first",
    "facet": "least probable first, of some pairs alone",
}
UNIFORM = 0.75
"""Part of the draws that is uniform: no undecided pair is drawn with less than this over their number."""
_BLOCK = 4096


class ReviewOrder:
    """An order of all pairs, which goes on after what is decided, however it was chosen.

    It follows from pairs, seed and person alone: who comes back finds the same pair again that was left undecided.
    """

    def __init__(
        self, pairs: Population, by: str = "gain", *, rows: IntArray | None = None, seed: int = 0, person: str = ""
    ) -> None:
        """Args:
            by: one of `ORDERS`.
            rows: places in the table of the pairs of a facet; with "facet" alone.
            seed, person: of the draws; two people get two orders.

        Raises:
            InputError: the order is unknown, or rows are missing, out of range, or given to another order.
        """
        if by not in ORDERS:
            raise InputError(f"order {by!r} is unknown; expected {', '.join(ORDERS)}")
        if (rows is None) == (by == "facet"):
            raise InputError(f"order {by!r} {'needs' if by == 'facet' else 'is of all pairs: leave out'} the rows")
        self.pairs, self.by = pairs, by
        if by == "gain":
            rng = generator(seed, "order of review", zlib.crc32(person.encode("utf-8", "replace")))
            self._error = expected_error(pairs.p_match)
            self._total = float(self._error.sum())
            with np.errstate(divide="ignore"):
                keys = rng.exponential(size=len(pairs)) / self._error
            self._lines: tuple[IntArray, ...] = (rng.permutation(len(pairs)), np.argsort(keys, kind="stable"))
            self._by_error = rng.random(len(pairs)) >= UNIFORM
        else:
            among = np.arange(len(pairs)) if rows is None else np.unique(np.asarray(rows, dtype=np.int64))
            if len(among) and not 0 <= among[0] <= among[-1] < len(pairs):
                raise InputError(f"rows of a facet go from {among[0]} to {among[-1]}; expected 0 to {len(pairs) - 1}")
            self._lines = (among[np.argsort(pairs.p_match[among], kind="stable")],)

    def next(self, n: int, skip: Collection[str] = ()) -> list[tuple[int, float | None]]:
        """The next pairs: their places in the table, and the probability of each draw among the pairs that were
        undecided then; None where nothing is drawn.

        Args:
            n: at most so many.
            skip: pair ids that are decided (or on somebody's screen); ids of no pair count for nothing.
        """
        known = self.pairs.rows
        gone = np.fromiter({known[name] for name in skip if name in known}, dtype=np.int64)
        absent = np.zeros(len(self.pairs), dtype=bool)
        absent[gone] = True
        if self.by != "gain":
            return [(row, None) for row, _ in zip(_left(self._lines[0], absent), range(n), strict=False)]
        return list(self._drawn(n, gone, absent))

    def _drawn(self, n: int, gone: IntArray, absent: BoolArray) -> Iterator[tuple[int, float]]:
        """Two lines of all pairs, one in uniform order, one in the order of exponential times with the errors as rates
        (Efraimidis and Spirakis, 2006); a coin says from which of them the first undecided pair comes.
        """
        lines = [_left(line, absent) for line in self._lines]
        left, error = len(self.pairs) - len(gone), self._total - float(self._error[gone].sum())
        for _ in range(min(n, left)):
            weighted = error > 1e-9 * max(self._total, 1e-300)
            row = next(lines[int(weighted and self._by_error[len(self.pairs) - left])])
            here = float(self._error[row])
            # Differences of sums: at the last pair their quotient may be a little above 1.
            yield row, min(1.0, UNIFORM / left + (1 - UNIFORM) * here / error) if weighted else 1 / left
            absent[row] = True
            left, error = left - 1, error - here


def expected_error(p_match: Array) -> Array:
    """√(q (1 − q)), the standard deviation of a pair's truth as the verdict sees it, (N,) in [0, ½]."""
    error: Array = np.sqrt(p_match * (1 - p_match))
    return error


def _left(line: IntArray, absent: BoolArray) -> Iterator[int]:
    """The rows of a line that are not absent when their turn comes."""
    for start in range(0, len(line), _BLOCK):
        block = line[start : start + _BLOCK]
        for row in block[~absent[block]].tolist():
            if not absent[row]:
                yield row
