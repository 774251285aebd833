"""`pairs.parquet`: every scored pair, one row each, whatever their number."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from truepair.audit.result import INDICATORS, AuditResult
from truepair.audit.scoring.row_ranges import words_at
from truepair.audit.tables.parquet_file import write_tables
from truepair.data.pair_columns import AUDIT, SHARED, described_schema
from truepair.data.pairs import BoolArray, IntArray

ROWS = 50_000


def write_pairs(result: AuditResult, path: Path) -> None:
    """Write the table of an audit; the columns are those of `data.pair_columns`, described in the schema's metadata.

    Of one row group (50,000 pairs) at a time, ids and captions are in memory; of the proposals, all captions and names.

    Raises:
        TruepairError: the system refused.
    """
    write_tables(path, pair_schema(result), pair_tables(result))


def pair_schema(result: AuditResult) -> Any:
    return described_schema(columns_of(result))


def columns_of(result: AuditResult) -> dict[str, tuple[str, str]]:
    """Column → its type and what it holds, of all columns that the table of this audit has, in their order."""
    found: dict[str, tuple[str, str]] = {}
    for name, column in {**SHARED, **AUDIT}.items():
        if name == "indicator_…":
            for indicator in result.indicators:
                text = f"{INDICATORS.get(indicator, indicator)}; 0 to 1, larger = better"
                found[f"indicator_{indicator}"] = (column[0], text)
        elif name != "mismatched" or result.mismatched is not None:
            found[name] = column
    return found


def pair_tables(result: AuditResult) -> Iterator[Any]:
    """Row group by row group."""
    import pyarrow

    schema, verdict, collection = pair_schema(result), result.verdict, result.collection
    captions_of, images_of, swaps = proposals(result)
    duplicates = Memberships(result)
    for start in range(0, len(result), ROWS):
        piece = slice(start, min(start + ROWS, len(result)))
        rows = result.rows[piece]
        columns: dict[str, Any] = {
            "pair_id": words_at(collection.ids, rows),
            "row": collection.source_rows(rows),
            "image": words_at(collection.image_names, rows),
            "caption": words_at(collection.captions, rows),
            "p_match": verdict.p_match[piece],
            "flagged": verdict.flagged[piece],
            "reason": result.reasons[piece],
            "similarity": result.similarity[piece],
            **{f"indicator_{name}": values[piece] for name, values in result.indicators.items()},
            **captions_of(piece),
            **images_of(piece),
            **swaps(piece),
            **duplicates.columns(piece),
        }
        if result.mismatched is not None:
            columns["mismatched"] = result.mismatched[piece]
        yield pyarrow.table(columns, schema=schema)


Columns = Callable[[slice], dict[str, Any]]


def proposals(result: AuditResult) -> tuple[Columns, Columns, Columns]:
    """Columns of the proposed captions, of the proposed images, and of the swaps of the pairs of a slice."""
    found, collection = result.rematch, result.collection
    seat = np.full(len(result), -1, dtype=np.int64)  # of a pair among the suspicious ones
    seat[result.at(found.rows)] = np.arange(len(found.rows))
    captions = Words(found.caption_from, proposed_caption=collection.captions, proposed_caption_pair=collection.ids)
    images = Words(found.image_from, proposed_image=collection.image_names, proposed_image_pair=collection.ids)
    swaps = Words(found.swap_with, swap_with=collection.ids)

    def of(words: Words, fit: tuple[str, Any] | None) -> Columns:
        def columns(piece: slice) -> dict[str, Any]:
            here = seat[piece]
            known = here >= 0
            values = words.at(np.where(known, here, 0), known)
            if fit is not None:
                values[fit[0]] = masked(fit[1], np.where(known, here, 0), words.has(here, known))
            return values

        return columns

    return (
        of(captions, ("proposed_caption_fit", found.caption_fit)),
        of(images, ("proposed_image_fit", found.image_fit)),
        of(swaps, None),
    )


class Words:
    """Ids, captions or names of the pairs of `rows` (−1 = none), read once in the order of the source."""

    def __init__(self, rows: IntArray, **readers: Callable[[int, int], list[str]]) -> None:
        import pyarrow

        self.rows = rows
        wanted = np.unique(rows[rows >= 0])
        self.seats = np.searchsorted(wanted, rows)
        self.words = {
            name: pyarrow.array(words_at(read, wanted), pyarrow.large_string()) for name, read in readers.items()
        }

    def has(self, entries: IntArray, known: BoolArray) -> BoolArray:
        return known & (self.rows[np.where(known, entries, 0)] >= 0) if len(self.rows) else known

    def at(self, entries: IntArray, known: BoolArray) -> dict[str, Any]:
        """The columns for entries of `rows`; null where not known, or where there is none."""
        import pyarrow

        has = self.has(entries, known)
        seats = self.seats[entries] if len(self.seats) else entries
        index = pyarrow.array(np.where(has, seats, 0), mask=~has)
        return {name: words.take(index).cast(pyarrow.string()) for name, words in self.words.items()}


class Memberships:
    """Which duplicates each pair is in."""

    def __init__(self, result: AuditResult) -> None:
        import pyarrow

        size = len(result)
        kinds = dict.fromkeys(group.kind for group in result.duplicates)
        self.groups = {kind: np.full(size, -1, dtype=np.int64) for kind in kinds}
        for number, group in enumerate(result.duplicates):
            self.groups[group.kind][result.at(group.rows)] = number
        firsts = np.array([group.rows[0] for group in result.duplicates], dtype=np.int64)
        self.first, self.rows = firsts, result.rows
        wanted, self.seats = np.unique(firsts, return_inverse=True)
        self.ids = pyarrow.array(words_at(result.collection.ids, wanted), pyarrow.string())

    def columns(self, piece: slice) -> dict[str, Any]:
        import pyarrow

        size = piece.stop - piece.start
        kinds, group = np.full(size, "", dtype=object), np.full(size, -1, dtype=np.int64)
        for kind, numbers in self.groups.items():
            here = numbers[piece]
            inside = here >= 0
            kinds[inside] += np.where(kinds[inside] == "", kind, " " + kind)
            group = np.where(group < 0, here, group)
        none = group < 0
        others = ~none
        others[others] = self.first[group[others]] != self.rows[piece][others]
        index = np.zeros(size, dtype=np.int64)
        index[others] = self.seats[group[others]]
        return {
            "duplicate_kind": pyarrow.array(kinds, pyarrow.string(), mask=none),
            "duplicate_group": masked(group, np.arange(size), ~none),
            "duplicate_of": self.ids.take(pyarrow.array(index, mask=~others)),
        }


def masked(values: Any, entries: IntArray, known: BoolArray) -> Any:
    """The values at the entries as an arrow array, null where not known."""
    import pyarrow

    here = values[entries] if len(values) else np.zeros(len(entries), dtype=values.dtype)
    return pyarrow.array(here, mask=~known)
