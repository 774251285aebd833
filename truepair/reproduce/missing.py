"""What a table lacks, row by row, and how long it would take."""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

from truepair.reproduce.cells import Cell, Record
from truepair.reproduce.records import seconds_of
from truepair.reproduce.revisions import outdated
from truepair.reproduce.tables import Table

Seconds = Mapping[tuple[str, ...], Sequence[float]]


def core_hours(cells: Iterable[Cell], records: Iterable[Record]) -> float:
    """Core-hours that cells will take, by the median of records of their source, engine and method, or of less; 0 of
    none.
    """
    return hours_by(seconds_by_key(records), cells)


def seconds_by_key(records: Iterable[Record]) -> Seconds:
    seconds: dict[tuple[str, ...], list[float]] = defaultdict(list)
    for record in records:
        for key in keys_of(record["cell"]) if "training_seconds" in record else ():
            seconds[key].append(seconds_of(record))
    return seconds


def hours_by(known: Seconds, cells: Iterable[Cell]) -> float:
    nearest = (next((known[key] for key in keys_of(cell.facts) if key in known), [0.0]) for cell in cells)
    return sum(map(statistics.median, nearest)) / 3600


def keys_of(facts: Mapping[str, object]) -> list[tuple[str, ...]]:
    """What a run takes as long as, the most telling first."""
    data, engine, method = str(facts.get("data")), str(facts.get("engine", "global")), str(facts.get("method"))
    return [(data, engine, method), (data, engine), (engine,), ()]


def lines_of(table: Table, records: Sequence[Record]) -> list[str]:
    """What is left to run of a table: a line a source, engine and row, with its noise, seeds and core-hours."""
    done, old = {record["name"] for record in records}, {record["name"] for record in outdated(records)}
    known = seconds_by_key(records)
    groups: dict[tuple[str, str, str], list[Cell]] = defaultdict(list)
    for cell in table.cells:
        if cell.name not in done or cell.name in old:
            facts = cell.facts
            groups[facts.get("data", ""), facts.get("engine", ""), facts.get("method", "")].append(cell)
    lines = []
    for names, cells in groups.items():
        again = sum(cell.name in old for cell in cells)
        hours = f"{hours_by(known, cells):6.1f}" if known else "     ?"
        lines.append(
            f"  {' '.join(filter(None, names)):44s} {len(cells) - again:4d} missing {again:4d} to run anew "
            f"{hours} core-hours   {conditions(cells)}"
        )
    return lines


def conditions(cells: Sequence[Cell]) -> str:
    """Kinds and rates of noise, and how many seeds of each, in words."""
    seeds: dict[tuple[str, float], list[int]] = defaultdict(list)
    for cell in cells:
        seeds[cell.facts.get("kind", "caption"), cell.facts.get("noise", 0.0)].append(cell.facts["seed"])
    named = (
        f"{'' if kind == 'caption' else f'{kind} '}{rate:g} ({', '.join(map(str, sorted(found)))})"
        for (kind, rate), found in sorted(seeds.items())
    )
    return "rates (seeds): " + ", ".join(named)
