"""`pairs.parquet`: every scored pair, one row each, whatever their number."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from truepair.audit.result import INDICATORS, AuditResult
from truepair.audit.scoring.row_ranges import words_at
from truepair.audit.tables.parquet_file import write_tables
from truepair.data.pair_columns import AUDIT, SHARED, described_schema
from truepair.data.pairs import IntArray

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
    some = {**proposals(result), **memberships(result)}
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
            **{name: column.at(piece) for name, column in some.items()},
        }
        if result.mismatched is not None:
            columns["mismatched"] = result.mismatched[piece]
        yield pyarrow.table(columns, schema=schema)


@dataclass(frozen=True)
class Some:
    """A column that only some pairs have a value in: their ascending positions, and an arrow array of the values."""

    positions: IntArray
    values: Any

    def at(self, piece: slice) -> Any:
        """The column of a slice of the pairs, null where there is no value."""
        import pyarrow

        first, last = np.searchsorted(self.positions, [piece.start, piece.stop])
        index, none = np.zeros(piece.stop - piece.start, np.int64), np.ones(piece.stop - piece.start, bool)
        here = self.positions[first:last] - piece.start
        index[here], none[here] = np.arange(first, last), False
        return self.values.take(pyarrow.array(index, mask=none))


def proposals(result: AuditResult) -> dict[str, Some]:
    """Columns of the proposed captions and images, with how well they fit, and of the swaps."""
    import pyarrow

    found, collection = result.rematch, result.collection
    at = result.at(found.rows)
    columns = {}
    for name, sources, fit, read in (
        ("proposed_caption", found.caption_from, found.caption_fit, collection.captions),
        ("proposed_image", found.image_from, found.image_fit, collection.image_names),
        ("swap_with", found.swap_with, None, collection.ids),
    ):
        chosen = np.flatnonzero(sources >= 0)
        chosen = chosen[np.argsort(at[chosen])]
        columns[name] = Some(at[chosen], words_of(read, sources[chosen]))
        if fit is not None:
            columns[f"{name}_pair"] = Some(at[chosen], words_of(collection.ids, sources[chosen]))
            columns[f"{name}_fit"] = Some(at[chosen], pyarrow.array(fit[chosen], pyarrow.float32()))
    return columns


def memberships(result: AuditResult) -> dict[str, Some]:
    """Columns of the duplicates that each pair is in."""
    import pyarrow

    kinds = list(dict.fromkeys(group.kind for group in result.duplicates))
    groups = sorted(enumerate(result.duplicates), key=lambda entry: kinds.index(entry[1].kind))
    sizes = [len(group.rows) for _, group in groups]
    numbers = np.repeat(np.array([number for number, _ in groups], np.int64), sizes)
    bits = np.repeat(np.array([1 << kinds.index(group.kind) for _, group in groups], np.int64), sizes)
    rows = np.concatenate([np.empty(0, np.int64), *(group.rows for _, group in groups)])
    positions, first, inverse = np.unique(result.at(rows), return_index=True, return_inverse=True)
    sets = np.zeros(len(positions), np.int64)
    np.bitwise_or.at(sets, inverse, bits)
    names = [" ".join(kind for bit, kind in enumerate(kinds) if code >> bit & 1) for code in range(1 << len(kinds))]
    group = numbers[first]
    heads = np.array([group.rows[0] for group in result.duplicates], np.int64)[group]
    others = heads != result.rows[positions]
    return {
        "duplicate_kind": Some(positions, pyarrow.array(names).take(pyarrow.array(sets))),
        "duplicate_group": Some(positions, pyarrow.array(group)),
        "duplicate_of": Some(positions[others], words_of(result.collection.ids, heads[others])),
    }


def words_of(read: Callable[[int, int], list[str]], rows: IntArray) -> Any:
    """What a reader of the source knows of rows in any order, as an arrow array; each is read once."""
    import pyarrow

    wanted, seats = np.unique(rows, return_inverse=True)
    return pyarrow.array(words_at(read, wanted), pyarrow.string()).take(pyarrow.array(seats))
