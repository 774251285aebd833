"""What a run keeps of every pair as values with a distribution, and how the field calls them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from truepair.data.pairs import Array, BoolArray
from truepair.evaluation.detection import detection
from truepair.methods.pair_field import PairField, PairFields

BINS = 40
SAME = 1e-5  # values that differ relatively by less differ by rounding: they are drawn as one
SMALL = 0.1  # where no value is above, the whole of [0, 1] would be one bin


BELIEF = {"belief": PairField("belief that the pair matches")}
SECOND = "_b"  # ends the fields of a second network


@dataclass(frozen=True)
class Components:
    """The two normal distributions fitted to an indicator, in its own units, the noisy one first.

    Attributes:
        used: whether the method divided by them; else it found one group only and set the fit aside.
    """

    means: tuple[float, float]
    deviations: tuple[float, float]
    weights: tuple[float, float]
    used: bool

    def densities(self, at: Array) -> list[Array]:
        """The weighted density of each component."""
        return [
            weight * np.exp(-0.5 * ((at - mean) / deviation) ** 2) / (deviation * np.sqrt(2 * np.pi))
            for mean, deviation, weight in zip(self.means, self.deviations, self.weights, strict=True)
        ]


@dataclass(frozen=True)
class Indicator:
    """One value of every pair.

    Attributes:
        field: its name in `pairs.parquet`, without `memory_`.
        term: its name for people.
        network: 1 or 2 where two networks keep one each, else None.
        values: (N,) finite.
        is_belief: what the method believes of a pair is this value.
        cut: a value that parts the two sides of the division, where one does.
        components: the mixture fitted to it, if one was.
    """

    field: str
    term: PairField
    network: int | None
    values: Array
    is_belief: bool = False
    cut: float | None = None
    components: Components | None = None

    @property
    def title(self) -> str:
        return self.term.name + self._whose

    @property
    def axis(self) -> str:
        return self.term.axis + self._whose

    @property
    def _whose(self) -> str:
        return f", network {self.network}" if self.network else ""

    @property
    def edges(self) -> Array:
        """Bounds of the bins of its histogram, of some width even where all values are the same."""
        low, high = float(self.values.min()), float(self.values.max())
        same = high - low <= SAME * max(abs(low), abs(high))
        if self.term.unit and low >= 0 and high <= 1 and (same or high > SMALL):
            return np.linspace(0, 1, BINS + 1)
        if same:  # in the middle of a bin
            bins = np.arange(BINS + 1) - (BINS + 1) / 2
            return np.asarray((low + high) / 2 + bins * 0.1 / BINS * max(1.0, abs(low), abs(high)))
        return np.linspace(low, high, BINS + 1)

    def auroc(self, mismatched: BoolArray) -> float | None:
        """The chance that a mismatched pair has a lower value than a matched one, ties counting half."""
        return detection(self.values, mismatched)["auroc"]


def indicators_of(
    columns: dict[str, Array], known: PairFields, options: dict[str, Any], last: dict[str, Any]
) -> list[Indicator]:
    """The indicators among the columns of `pairs.parquet`: what the method believes, and what it keeps beside.

    Args:
        columns: belief, division and the `memory_*` columns.
        known: how the method shows its fields.
        options: of the method; where one named `threshold` parts the division, it is the cut.
        last: the last line of `metrics.jsonl`, with the fitted mixtures.
    """
    division, threshold = columns["division"], options.get("threshold")
    fields = {name.removeprefix("memory_"): column for name, column in columns.items() if name.startswith("memory_")}
    believed = believed_field(columns["belief"], fields, known)
    if believed is None:
        believed, fields = "belief", {"belief": columns["belief"], **fields}
    found = []
    for name, values in fields.items():
        base = name.removesuffix(SECOND) if network_of(name, fields) else name
        term = known.get(base) or BELIEF.get(base) or PairField(base.replace("_", " "), unit=False)
        if term.shown == "never" or (term.shown == "believed" and name != believed):
            continue
        cut, components = None, None
        if name == believed:
            cut = cut_between(values, division == "noisy", division == "clean", (threshold, 0.5))
        elif term.below_threshold:
            cut = cut_between(values, division != "hard", division == "hard", (threshold,))
        elif term.mixture:
            components = components_of(last, term.mixture, name.removeprefix(base))
        found.append(Indicator(name, term, network_of(name, fields), values, name == believed, cut, components))
    return found


def believed_field(belief: Array, fields: dict[str, Array], known: PairFields) -> str | None:
    """The field that is the belief. Of several that agree, the label rather than what it is made of."""
    same = [name for name, values in fields.items() if np.array_equal(values, belief)]
    aside = {name for name, field in known.items() if field.shown == "believed"}
    return min(same, key=lambda name: (name in aside, name != "label"), default=None)


def network_of(name: str, fields: dict[str, Array]) -> int | None:
    """Which of two networks keeps the field; None where there is one network."""
    if name.endswith(SECOND) and name.removesuffix(SECOND) in fields:
        return 2
    return 1 if name + SECOND in fields else None


def cut_between(values: Array, below: BoolArray, above: BoolArray, candidates: Iterable[float | None]) -> float | None:
    """A value that parts two groups of pairs: the first candidate that does, else the middle between them, if any."""
    if not below.any() or not above.any() or values[below].max() >= values[above].min():
        return None
    highest, lowest = float(values[below].max()), float(values[above].min())
    fitting = [candidate for candidate in candidates if candidate is not None and highest <= candidate <= lowest]
    return fitting[0] if fitting else (highest + lowest) / 2


def components_of(last: dict[str, Any], names: tuple[str, str], suffix: str) -> Components | None:
    """The mixture of the last epoch; it was fitted to values scaled to [0, 1] and is given in their own units."""
    span, mixture = names
    try:
        low, high = (float(last[f"{span}_{end}{suffix}"]) for end in ("low", "high"))
        scale = high - low
        parts = [f"{mixture}_{part}_{{}}{suffix}" for part in ("noisy", "clean")]
        means = tuple(low + scale * float(last[part.format("mean")]) for part in parts)
        deviations = tuple(scale * float(last[part.format("deviation")]) for part in parts)
        weights = tuple(float(last[part.format("weight")]) for part in parts)
        used = bool(last[f"{mixture}_two_components{suffix}"])
    except KeyError:
        return None
    if not min(deviations) > 0:
        return None
    return Components((means[0], means[1]), (deviations[0], deviations[1]), (weights[0], weights[1]), used)
