"""Which records are of an earlier revision of their method: it comes to other figures today, on their data."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from truepair import methods
from truepair.reproduce.cells import Record

NO_FREQUENT_CAPTION = frozenset({"fashion_precomp", "flickr8k", "scenes"})
"""Data of the tables on which no caption stands on more than 1 % of the pairs: of 12,000 products the most frequent one
stands on 19, as the network reads them, of 10,000 drawings on 9, of 30,000 photographs on 6."""
TELLING = frozenset({"fashion_precomp", "flickr8k", "scenes", "emoji", "icons"})
"""Data of the tables of which linear models find at least 0.6 of the matched pairs, or less than half.

Of products and photographs, whole or in part, they find 0.67 or more at the rates of the tables, and of icons 0.68 or
more; of emoji 0.74 at 60 % noise and 0.44 to 0.47 at 80 %, of all drawings 0.73 or more and at most 0.22. Of 3,000
drawings at 60 % it is 0.43 to 0.50, by the seed."""
NETWORKS_BEGIN = frozenset({"emoji"})
"""Data of the tables with frequent captions where linear models never give the first labels: at 80 % noise they find
too few of the matched pairs, and at 60 % they estimate that 0.61 to 0.63 are mismatched."""
FEW = 3000
"""Pairs of a part of a set in the tables."""
FEW_NOISY = 0.4
"""Noise rate of the tables up to which they find nine tenths."""


def has_no_frequent_caption(record: Record) -> bool:
    return data_of(record) in NO_FREQUENT_CAPTION


def has_telling_models(record: Record) -> bool:
    pairs = record.get("result", record).get("pairs", FEW)  # one that diverged has no result, an audit is one
    few_drawings = data_of(record) == "scenes" and pairs <= FEW
    return data_of(record) in TELLING and not (few_drawings and record["cell"]["noise"] > FEW_NOISY)


def asks_no_network(record: Record) -> bool:
    """Linear models judge all pairs, or give no first labels that the network of the first stage could contradict."""
    given = data_of(record) in NETWORKS_BEGIN or record["cell"]["noise"] <= FEW_NOISY
    return given or has_no_frequent_caption(record)


AS_BEFORE: Mapping[tuple[str, int], Callable[[Record], bool]] = {
    ("truepair", 7): has_no_frequent_caption,  # treats pairs with a frequent caption apart
    ("truepair", 8): has_telling_models,  # takes first labels of models that find 0.6 of the matched pairs, before 0.5
    ("truepair", 9): asks_no_network,  # asks the network of the first stage of the judged pairs alone
}
"""(Method, revision) → whether it comes to the figures of the revision before on the data of a record, bit by bit."""


def outdated(records: Iterable[Record]) -> list[Record]:
    """Those of a method that comes to other figures today on their data."""
    return [record for record in records if any(_is_outdated(record, method) for method in methods_in(record))]


def _is_outdated(record: Record, method: dict[str, Any]) -> bool:
    as_before = [revision for (of, revision), holds in AS_BEFORE.items() if of == method.get("name") and holds(record)]
    return methods.is_outdated(method, as_before)


def data_of(record: Record) -> str | None:
    found = record.get("cell", {}).get("data")
    return None if found is None else str(found)


def methods_in(record: Record) -> list[dict[str, Any]]:
    """Name and revision of the methods that a record is of, where it says so."""
    single = record.get("options", {}).get("method")
    return [*record.get("methods", ()), *([single] if isinstance(single, dict) else [])]
