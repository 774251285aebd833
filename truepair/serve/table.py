"""The pairs of one source as columns: filtered, ordered and counted without a Python object a pair."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from threading import Lock
from typing import Any

import numpy as np

from truepair.data.pairs import BoolArray, IntArray
from truepair.errors import InputError

FACETS = {
    "label": "the class of the pair as given",
    "verdict": "match or mismatch, as the run or the audit takes the pair",
    "origin": "the file of the data that the pair stands in",
    "division": "clean, hard or noisy, as a run divides its pairs",
    "duplicate": "the kinds of duplicate that an audit found the pair in",
}
"""What pairs are told apart by → what it means."""
ORDERS = ("row", "p_match", "similarity")
"""Columns to order pairs by; a minus before one turns it round."""
NOTHING = "(none)"
"""The value of a facet of pairs that have none."""


@dataclass(frozen=True)
class Facet:
    """A column of few values: `values[codes[row]]` is that of a pair."""

    values: tuple[str, ...]
    codes: IntArray

    def value(self, row: int) -> str | None:
        """That of a pair; None where it has none."""
        found = self.values[int(self.codes[row])]
        return None if found == NOTHING else found

    @staticmethod
    def of(column: Any) -> Facet:
        """The facet of an arrow column of words; null and empty ones are `NOTHING`."""
        import pyarrow
        from pyarrow import compute

        words = compute.fill_null(column, NOTHING)
        words = compute.if_else(compute.equal(words, ""), NOTHING, words)
        if isinstance(words, pyarrow.ChunkedArray):
            words = words.combine_chunks()
        encoded = compute.dictionary_encode(words)
        if isinstance(encoded, pyarrow.ChunkedArray):
            encoded = encoded.combine_chunks()
        codes = np.asarray(encoded.indices.to_numpy(zero_copy_only=False), dtype=np.int64)
        return Facet(tuple(encoded.dictionary.to_pylist()), codes)


@dataclass(frozen=True)
class Wanted:
    """Which pairs: those that have one of the values of every facet named, and all the rest.

    Attributes:
        facets: name (of `FACETS`) → values, any of which will do; a name without values asks for nothing.
        words: what the caption must hold, in any case.
        p_low, p_high: bounds of p_match, both inclusive.
    """

    facets: Mapping[str, Sequence[str]] = field(default_factory=dict)
    words: str = ""
    p_low: float | None = None
    p_high: float | None = None

    def but(self, name: str) -> Wanted:
        """The same, asking for nothing of one facet."""
        return Wanted({k: v for k, v in self.facets.items() if k != name}, self.words, self.p_low, self.p_high)

    @property
    def bounds(self) -> tuple[str, float | None, float | None]:
        """All that is asked for beside facets."""
        return self.words, self.p_low, self.p_high

    @property
    def everything(self) -> bool:
        return not any(self.facets.values()) and not self.words and self.p_low is None and self.p_high is None


class PairTable:
    """N pairs.

    Args:
        columns: an arrow table with at least pair_id, row, image and caption; others as in docs/pairs.md.
        origin: an arrow column of the files that the pairs stand in; None where these are one.
        label: an arrow column of their classes; None for `given_label`, where there is one.
    """

    def __init__(self, columns: Any, *, origin: Any = None, label: Any = None) -> None:
        self.columns = columns
        self._origin, self._label = origin, label
        self._orders: dict[str, IntArray] = {}
        self._lock = Lock()

    def __len__(self) -> int:
        return int(self.columns.num_rows)

    def __contains__(self, column: str) -> bool:
        return column in self.columns.column_names

    @cached_property
    def facets(self) -> dict[str, Facet]:
        """Those of `FACETS` that tell these pairs apart at all."""
        from pyarrow import compute

        found = {}
        if self._label is not None or "given_label" in self:
            found["label"] = Facet.of(self.columns["given_label"] if self._label is None else self._label)
        if "flagged" in self:
            found["verdict"] = Facet.of(compute.if_else(self.columns["flagged"], "mismatch", "match"))
        if self._origin is not None:
            found["origin"] = Facet.of(self._origin)
        for name, column in (("division", "division"), ("duplicate", "duplicate_kind")):
            if column in self:
                found[name] = Facet.of(self.columns[column])
        return found

    def numbers(self, column: str) -> np.ndarray[Any, Any] | None:
        """A column of numbers, float64, NaN where there is none; None without that column."""
        if column not in self:
            return None
        return np.asarray(self.columns[column].to_numpy(zero_copy_only=False), dtype=np.float64)

    def row_of(self, pair_id: str) -> int:
        """The place of a pair in this table. Raises KeyError: there is no such pair."""
        import pyarrow
        from pyarrow import compute

        try:
            row = int(compute.index(self.columns["pair_id"], pyarrow.scalar(pair_id)).as_py())
        except (pyarrow.ArrowException, UnicodeError):  # no UTF-8
            row = -1
        if row < 0:
            raise KeyError(pair_id)
        return row

    def ids(self, rows: Iterable[int]) -> list[str]:
        """The ids of some pairs."""
        return list(self.columns["pair_id"].take(np.fromiter(rows, dtype=np.int64)).to_pylist())

    def mask(self, wanted: Wanted) -> BoolArray:
        """(N,) which pairs are wanted. Raises InputError: these pairs have no such facet or no p_match."""
        from pyarrow import compute

        found = np.ones(len(self), dtype=bool)
        for name, values in wanted.facets.items():
            if values:
                found &= self._has(name, values)
        if wanted.words:
            words = wanted.words.encode("utf-8", "replace").decode("utf-8")
            hits = compute.match_substring(self.columns["caption"], words, ignore_case=True)
            found &= np.asarray(hits.to_numpy(zero_copy_only=False), dtype=bool)
        if wanted.p_low is not None or wanted.p_high is not None:
            p = self.numbers("p_match")
            if p is None:
                raise InputError("these pairs have no p_match to choose by; serve an audit, or leave out its bounds")
            low, high = wanted.p_low, wanted.p_high
            found &= (p >= (-np.inf if low is None else low)) & (p <= (np.inf if high is None else high))
        return found

    def _has(self, name: str, values: Sequence[str]) -> BoolArray:
        facet = self.facets.get(name)
        if facet is None:
            known = ", ".join(self.facets) or "none"
            raise InputError(f"these pairs have no {name}; their facets are: {known}. Leave it out")
        codes = [code for code, value in enumerate(facet.values) if value in values]
        return np.isin(facet.codes, codes)

    def rows(self, wanted: Wanted, order: str = "row") -> IntArray:
        """The places of the wanted pairs in an order of `ORDERS`, those without a value last.

        Raises:
            InputError: there is no such column, or as `mask`.
        """
        down, name = order.startswith("-"), order.removeprefix("-")
        if name not in ORDERS:
            raise InputError(f"order is {order!r}; expected one of {', '.join(ORDERS)}, with a minus for the other way")
        if name == "row":
            rows = np.flatnonzero(self.mask(wanted)).astype(np.int64)
            return rows[::-1] if down else rows
        ordered = self._ordered(name, down)
        return ordered if wanted.everything else ordered[self.mask(wanted)[ordered]]

    def _ordered(self, name: str, down: bool) -> IntArray:
        key = f"-{name}" if down else name
        with self._lock:
            if key not in self._orders:
                values = self.numbers(name)
                if values is None:
                    raise InputError(f"these pairs have no {name} to order by; order by row")
                order = np.argsort(-values if down else values, kind="stable")
                self._orders[key] = order.astype(np.int64)
            return self._orders[key]

    def counts(self, wanted: Wanted) -> dict[str, list[tuple[str, int]]]:
        """Facet → (value, how many of the wanted pairs have it), each counted as if nothing were asked of the facet
        itself; the most frequent value first.
        """
        masks: dict[tuple[Any, ...], BoolArray] = {}
        found = {}
        for name, facet in self.facets.items():
            others = wanted.but(name)
            key = tuple(sorted((k, *v) for k, v in others.facets.items() if v))
            if key not in masks:
                masks[key] = self.mask(others)
            counts = np.bincount(facet.codes[masks[key]], minlength=len(facet.values))
            both = sorted(zip(facet.values, counts.tolist(), strict=True), key=lambda pair: (-pair[1], pair[0]))
            found[name] = both
        return found
