"""The records of the audit grid, put together over seeds."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from truepair.audit.result import INDICATORS
from truepair.reproduce.audit_grid import DATA, KINDS
from truepair.reproduce.noise_report import Record

Place = tuple[str, str, float]
"""Data set, kind of noise, nominal rate."""
Groups = dict[Place, list[Record]]

CLEAN = "none"
ROWS = {
    "similarity": "plain cosine",
    "loss mixture": "loss mixture (NCR's way)",
    "lemon": "LEMoN's way",
    **{name: f"{name} alone" for name in INDICATORS},
    "verdict": "the verdict",
}
ESTIMATING = {"similarity": "plain cosine", "loss mixture": "loss mixture"}


def figures(records: list[Record], name: str, key: str) -> list[float]:
    """A figure of one row of the table in every record that has it."""
    found = [record["rows"].get(name, {}).get(key) for record in records]
    return [float(value) for value in found if value is not None]


def group(records: list[Record]) -> Groups:
    """Records of the same data set, kind of noise and rate, over seeds; without noise there is one kind."""
    groups: Groups = defaultdict(list)
    for record in records:
        asked = record["cell"]
        groups[asked["data"], asked["kind"] if asked["noise"] else CLEAN, asked["noise"]].append(record)

    def order(place: Place) -> tuple[Any, ...]:
        data, kind, rate = place
        return DATA.index(data) if data in DATA else len(DATA), data, [CLEAN, *KINDS].index(kind), rate

    return {place: groups[place] for place in sorted(groups, key=order)}


def named(place: Place) -> str:
    data, kind, rate = place
    return f"`{data}` without noise" if kind == CLEAN else f"`{data}` {kind} {100 * rate:.0f} %"
