"""The tables of an audit, whatever the number of pairs: `pairs.parquet`, `problems.parquet`, `duplicates.parquet`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from truepair.audit.people import People
from truepair.audit.result import INDICATORS, AuditResult
from truepair.audit.scoring.row_ranges import words_at
from truepair.data.pair_columns import AUDIT, DECIDED, SHARED, described_schema
from truepair.data.pairs import IntArray
from truepair.files import atomic_file, writing
from truepair.phrases import printable

ROWS = 50_000
PROBLEM_COLUMNS = {
    "entry": ("string", "what people know the entry by"),
    "file": ("string", "the file it stands in, relative to the input"),
    "row": ("int64", "its place in that file from 0; -1 for the whole file"),
    "reason": ("string", "what kind of problem"),
    "detail": ("string", "the same in a sentence"),
    "used": ("bool", "whether the entry was audited all the same"),
}
DUPLICATE_COLUMNS = {
    "group": ("int64", "number of the group"),
    "kind": ("string", "what its pairs share"),
    **{name: SHARED[name] for name in ("pair_id", "image", "caption")},
}

FAULT_COLUMNS = {
    "fault": ("int64", "number of the fault, in the order of summary.json"),
    "kind": ("string", "what is wrong with its pairs"),
    **{name: SHARED[name] for name in ("pair_id", "row", "image", "caption")},
    "repaired_caption": ("string", "the caption that belongs to the image; empty where none is known"),
    "repaired_caption_pair": ("string", "pair_id it stands at"),
}


def write_problems(result: AuditResult, path: Path) -> None:
    """Write every problem of an audit, also where there is none."""

    def tables() -> Iterator[dict[str, Any]]:
        for start in range(0, max(1, len(result.problems)), ROWS):
            piece = result.problems[start : start + ROWS]
            columns = {name: [getattr(problem, name) for problem in piece] for name in PROBLEM_COLUMNS}
            for name in ("entry", "file", "reason", "detail"):
                columns[name] = [printable(text) for text in columns[name]]
            yield columns

    write_tables(path, PROBLEM_COLUMNS, tables())


def write_duplicates(result: AuditResult, path: Path) -> None:
    """Write every pair of every group of duplicates, also where there is none."""
    collection, groups = result.collection, result.duplicates

    def tables() -> Iterator[dict[str, Any]]:
        sizes = np.array([len(group.rows) for group in groups], dtype=np.int64)
        pieces = np.cumsum(sizes) // ROWS
        for piece in np.unique(pieces) if len(groups) else [0]:
            numbers = np.flatnonzero(pieces == piece)
            rows = np.concatenate([np.empty(0, np.int64), *(groups[number].rows for number in numbers)])
            yield {
                "group": np.repeat(numbers, sizes[numbers]),
                "kind": [groups[number].kind for number in numbers for _ in groups[number].rows],
                "pair_id": words_of(collection.ids, rows),
                "image": words_of(collection.image_names, rows),
                "caption": words_of(collection.captions, rows),
            }

    write_tables(path, DUPLICATE_COLUMNS, tables())


def write_faults(result: AuditResult, path: Path) -> None:
    """Write every pair of every fault, with its repaired caption where there is one; also where there is no fault."""
    import pyarrow

    collection = result.collection

    def tables() -> Iterator[dict[str, Any]]:
        for number, fault in enumerate(result.faults):
            for start in range(0, len(fault.rows), ROWS):
                rows = fault.rows[start : start + ROWS]
                sources = np.full(len(rows), -1) if fault.caption_from is None else fault.caption_from[start:][:ROWS]
                known = np.flatnonzero(sources >= 0)
                repaired = Some(known, words_of(collection.captions, sources[known]))
                repaired_pair = Some(known, words_of(collection.ids, sources[known]))
                yield {
                    "fault": np.full(len(rows), number),
                    "kind": [fault.kind] * len(rows),
                    "pair_id": words_at(collection.ids, rows),
                    "row": collection.source_rows(rows),
                    "image": words_at(collection.image_names, rows),
                    "caption": words_at(collection.captions, rows),
                    "repaired_caption": repaired.at(slice(0, len(rows))),
                    "repaired_caption_pair": repaired_pair.at(slice(0, len(rows))),
                }
        if not result.faults:
            yield {name: pyarrow.array([], pyarrow.type_for_alias(kind)) for name, (kind, _) in FAULT_COLUMNS.items()}

    write_tables(path, FAULT_COLUMNS, tables())


def write_tables(path: Path, described: dict[str, tuple[str, str]], tables: Iterable[dict[str, Any]]) -> None:
    """Write tables of the described columns as the row groups of one file, whole or not at all; one table in memory at
    a time. A TruepairError where the system refuses (disk full, no permission).
    """
    import pyarrow
    from pyarrow import parquet

    schema = described_schema(described)
    with atomic_file(path) as temporary:
        with writing(path):
            writer = parquet.ParquetWriter(temporary, schema, compression="zstd")
        try:
            for columns in tables:  # whose own errors (a source that vanished) are not this file's
                table = pyarrow.table(columns, schema=schema)
                with writing(path):
                    writer.write_table(table, row_group_size=max(1, table.num_rows))
        finally:
            with writing(path):
                writer.close()


def columns_of(result: AuditResult) -> dict[str, tuple[str, str]]:
    """Column → its type and what it holds, of all columns that the table of this audit has, in their order."""
    found: dict[str, tuple[str, str]] = {}
    for name, column in {**SHARED, **AUDIT, **(DECIDED if result.people else {})}.items():
        if name == "indicator_…":
            for indicator in result.indicators:
                text = f"{INDICATORS.get(indicator, indicator)}; 0 to 1, larger = better"
                found[f"indicator_{indicator}"] = (column[0], text)
        elif name != "mismatched" or result.mismatched is not None:
            found[name] = column
    return found


def pair_tables(result: AuditResult) -> Iterator[dict[str, Any]]:
    """The columns of `pairs.parquet`, a row group after the other: of 50,000 pairs at a time, ids and captions are in
    memory; of the proposals, all captions and names.
    """
    verdict, collection = result.verdict, result.collection
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
        if result.people is not None:
            columns |= decided_columns(result.people, piece)
        if result.mismatched is not None:
            columns["mismatched"] = result.mismatched[piece]
        yield columns


def decided_columns(people: People, piece: slice) -> dict[str, Any]:
    """The columns of what people decided, of a slice of the pairs."""
    places = range(piece.start, piece.stop)
    here = [people.decisions.get(place) for place in places]
    return {
        "decision": ["" if decision is None else decision.verdict for decision in here],
        "decided_by": [None if decision is None else printable(decision.person) for decision in here],
        "corrected_caption": [people.captions.get(place) for place in places],
        "p_match_undecided": people.p_match[piece],
    }


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
