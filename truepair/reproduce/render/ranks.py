"""Which of several methods is better, by a paired test over seeds and noise rates rather than by eye."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

from truepair.reproduce.cells import Record
from truepair.reproduce.records import figure_of
from truepair.reproduce.render.markdown import table

_Name = TypeVar("_Name")
Cell = tuple[float, int]
"""Nominal noise rate and seed: what the runs of all methods share."""
SURE = 0.05
LEAST_SHARED = 0.4
"""Of the cells of the method with most of them: those with fewer are not ranked. Some are run with five seeds and most
with three, so that half would be too much."""


def rank_table(titles: Mapping[str, str], records: Sequence[Record], figure: str, digits: int) -> str:
    """A row a method, the best first: its mean rank, its mean difference from the best, and the chance of that.

    Only cells that all shown methods have count, and only noise. Methods with less than two fifths as many cells as the
    one with most are left out, so that they do not take the cells of the others away, and named below. The test is
    Wilcoxon's signed-rank test of the differences, cell by cell, two-sided; p is Holm's, for as many tests as there are
    other methods.

    Args:
        titles: row → title.
        figure: as `figure_of` reads it, larger = better.
    """
    every = values_of(titles, records, figure)
    most = max(map(len, every.values()), default=0)
    found = {name: cells for name, cells in every.items() if len(cells) >= LEAST_SHARED * most}
    shared = sorted(set.intersection(*map(set, found.values()))) if found else []
    if len(found) < 2 or not shared:
        return ""
    ranks = mean_ranks({name: [cells[cell] for cell in shared] for name, cells in found.items()})
    order = sorted(ranks, key=lambda name: ranks[name])
    best = order[0]
    gaps = {name: [found[name][cell] - found[best][cell] for cell in shared] for name in order[1:]}
    chances = holm({name: chance_of(gap) for name, gap in gaps.items()})
    rows = [[titles[best], f"{ranks[best]:.2f}", "", ""]]
    for name, gap in gaps.items():
        chance = chances[name]
        said = f"{chance:.3f}" + ("" if chance < SURE else ", not told apart")
        rows.append([titles[name], f"{ranks[name]:.2f}", f"{statistics.fmean(gap):+.{digits}f}", said])
    left = [f"{titles[name]} ({len(cells)})" for name, cells in every.items() if name not in found]
    few = f"\n\nNot ranked, with too few cells: {', '.join(left)}." if left else ""
    head = ["", "mean rank", f"difference from {titles[best]}", "p"]
    return f"{len(shared)} cells (noise rate × seed).\n\n{table(head, rows)}{few}"


def values_of(titles: Mapping[str, str], records: Sequence[Record], figure: str) -> dict[str, dict[Cell, float]]:
    found: dict[str, dict[Cell, float]] = {}
    for record in records:
        facts, value = record["cell"], figure_of(record, figure)
        if facts["method"] in titles and facts["noise"] and value is not None:
            found.setdefault(facts["method"], {})[facts["noise"], facts["seed"]] = value
    return found


def mean_ranks(values: Mapping[str, Sequence[float]]) -> dict[str, float]:
    """The mean over cells of each method's place, 1 = best; equals share their places."""
    from scipy.stats import rankdata

    places: Any = rankdata([[-value for value in column] for column in values.values()], axis=0)
    return {name: float(row.mean()) for name, row in zip(values, places, strict=True)}


def chance_of(gaps: Sequence[float]) -> float:
    """p of Wilcoxon's signed-rank test, two-sided; 1 where all gaps are 0 or there is one cell."""
    from scipy.stats import wilcoxon

    if len(gaps) < 2 or not any(gaps):
        return 1.0
    return float(wilcoxon(gaps).pvalue)


def holm(chances: Mapping[_Name, float]) -> dict[_Name, float]:
    """Holm's correction for several tests: the k-th smallest of m counts m − k + 1 times, none less than one before."""
    adjusted: dict[_Name, float] = {}
    largest = 0.0
    for k, name in enumerate(sorted(chances, key=lambda name: chances[name])):
        largest = max(largest, min(1.0, (len(chances) - k) * chances[name]))
        adjusted[name] = largest
    return adjusted
