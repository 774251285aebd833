"""What spoke against a pair, in words."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from truepair.data.pairs import Array, BoolArray

MOST_NAMED = 2
SUSPICIOUS = 0.25  # an indicator is named where less than this share of the unflagged pairs stands lower


def reasons(similarity: Array, indicators: Mapping[str, Array], flagged: BoolArray, *, bank: int) -> list[str]:
    """(M,) for each flagged pair the one or two indicators that speak loudest against it, in words; "" for the others.

    Loudest is where the fewest unflagged pairs stand lower (all pairs where every one is flagged), and among equals
    where the distance to their median is largest, in units of the distance from their median to their lowest tenth. An
    indicator is named only where less than a quarter of them stands lower. Where none is that low, the similarity is
    named if it is, else that no single indicator is. "rank" is taken among `bank` others; NaN says nothing.
    """
    words = [""] * len(flagged)
    rows = np.flatnonzero(flagged)
    if not len(rows):
        return words
    trusted = ~flagged if not flagged.all() else flagged
    values = {name: np.asarray(column, np.float64) for name, column in {**indicators, "similarity": similarity}.items()}
    standing = {name: stand(column[rows], column[trusted]) for name, column in values.items()}
    for place, row in enumerate(rows.tolist()):
        low = {name: (lower[place], -far[place]) for name, (lower, far) in standing.items()}
        loud = [name for name in sorted(indicators, key=lambda name: low[name]) if low[name][0] < SUSPICIOUS]
        if not loud and low["similarity"][0] < SUSPICIOUS:
            loud = ["similarity"]
        told = [told_by(name, float(values[name][row]), bank) for name in loud[:MOST_NAMED]]
        words[row] = "; ".join(told) or "no single indicator is low, all together are"
    return words


def stand(values: Array, trusted: Array) -> tuple[Array, Array]:
    """Share of the trusted that stand lower, equal ones half (unknown: 1), and the distance below their median."""
    trusted = np.sort(trusted[~np.isnan(trusted)])
    if not len(trusted):
        return np.ones(len(values)), np.zeros(len(values))
    share = sum(np.searchsorted(trusted, values, side=side) for side in ("left", "right")) / (2 * len(trusted))
    low, middle = np.quantile(trusted, [0.1, 0.5])
    distance = np.nan_to_num((middle - values) / max(middle - low, 1e-6))
    return np.where(np.isnan(values), 1.0, share), distance


def told_by(name: str, value: float, bank: int) -> str:
    """One indicator in words."""
    if name == "rank":
        return ranked(value, bank)
    return _WORDS[name](value) if name in _WORDS else f"{name} is low ({shown(value)})"


def ranked(value: float, bank: int) -> str:
    """The mutual rank √(r₁ r₂) = (m + 1)^(1 − ρ) among m others, as how many of them stand before it."""
    better = (bank + 1) ** (1 - value) - 1
    if better >= 0.0095 * bank and better >= 1.5:
        return f"{100 * better / bank:.0f} % of the other captions and images fit better"
    if better >= 1.5:
        return f"{better:.0f} other captions and images fit better"
    return "another caption or image fits at least as well" if better >= 0.2 else "others come close to fitting as well"


def shown(value: float) -> str:
    return "under 0.01" if value < 0.01 else f"{value:.2f}"


_WORDS: dict[str, Callable[[float], str]] = {
    "matching": lambda value: f"among others, image and caption do not choose each other (matching {shown(value)})",
    "structure": lambda value: f"its image and its caption resemble different pairs (structure {shown(value)})",
    "neighbours": lambda value: f"similar images have captions unlike its own (neighbours {shown(value)})",
    "certainty": lambda value: f"hardly any evidence for this or any other partner (certainty {shown(value)})",
    "others": lambda value: f"it has little in common with the image's other captions (others {shown(value)})",
    "memory": lambda value: f"models that trained on it came to doubt it (memory {shown(value)})",
    "similarity": lambda value: f"image and caption are less alike than others (similarity {value:.2f})".replace(
        "-", "−"
    ),
}
