"""Held-out scores of classes by ridge regressions against scikit-learn's, each fitted anew; and all that is said of the
labels: seconds, ratio, memory, agreement.

python -m benchmarks.bench_class_noise
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np

from benchmarks.measure import extra_peak_bytes, median_seconds
from truepair.correspondence.canonical import FOLDS, folds_of
from truepair.correspondence.class_noise import PENALTIES, ClassNoise, HeldOutModels
from truepair.data.pairs import Array, IntArray

WIDTHS = (512, 256)
"""Of image and text vectors: the most that UOT-RCL gives."""
CLASSES, NOISE = 61, 0.4
COMPARED = (3_000, 12_000)
ALONE = (12_000, 100_000)

Given = tuple[list[Array], IntArray, IntArray]
"""Vectors of both sides, rows of the images, labels."""


@dataclass(frozen=True)
class Row:
    """One line of the table."""

    pairs: int
    way: str
    seconds: float
    times_faster: float | None
    extra_peak_mb: float
    difference: float | None


def made(pairs: int) -> Given:
    """Vectors around a centre of their class on either side, two fifths of the labels drawn anew."""
    rng = np.random.default_rng(0)
    truth = rng.integers(CLASSES, size=pairs)
    sides = [
        (rng.normal(size=(CLASSES, width))[truth] + 4 * rng.normal(size=(pairs, width))).astype(np.float32)
        for width in WIDTHS
    ]
    labels = np.where(rng.random(pairs) < NOISE, rng.integers(CLASSES, size=pairs), truth)
    return sides, np.arange(pairs), labels


def from_moments(sides: list[Array], rows: IntArray, labels: IntArray) -> Array:
    models = HeldOutModels.of(sides, rows, labels, CLASSES, seed=0)
    return models.scores(sides, np.arange(len(labels)))


def fitted_anew(sides: list[Array], rows: IntArray, labels: IntArray) -> Array:
    """The same scores by scikit-learn: every side, penalty and fold fitted to the rows it learns from."""
    from sklearn.linear_model import Ridge

    folds, indicators = folds_of(rows, 0), np.eye(CLASSES)[labels]
    scores = np.empty((len(labels), len(sides) * len(PENALTIES), CLASSES))
    for place, side in enumerate(each.astype(np.float64) for each in sides):
        for i, penalty in enumerate(PENALTIES):
            for fold in range(FOLDS):
                learned, held = folds != fold, folds == fold
                alpha = penalty * side[learned].var(axis=0).mean() * learned.sum()
                model = Ridge(alpha=alpha).fit(side[learned], indicators[learned])
                found = model.predict(side[held]) - indicators[learned].mean(axis=0)
                scores[held, place * len(PENALTIES) + i] = found
    return scores


def whole(sides: list[Array], rows: IntArray, labels: IntArray) -> Array:
    found = ClassNoise.of(sides, rows, labels, CLASSES, seed=0)
    assert found is not None
    return found.posterior


WAYS: dict[str, Callable[..., Array]] = {
    "scikit-learn, scores": fitted_anew,
    "truepair, scores": from_moments,
    "truepair, all": whole,
}


def ready(way: str, pairs: int) -> Callable[[], object]:
    """What the memory of a way is measured on; libraries are loaded before it counts."""
    WAYS[way](*made(3000))
    return partial(WAYS[way], *made(pairs))


def compare(pairs: int, ways: tuple[str, ...]) -> list[Row]:
    given, rows = made(pairs), list[Row]()
    found: dict[str, Array] = {}
    for way in ways:
        seconds = median_seconds(partial(_keep, found, way, given), 1, warm_up=False)
        memory = extra_peak_bytes(partial(ready, way, pairs)) / 1e6
        alone = len(ways) == 1
        ratio = None if alone else (rows[0].seconds if rows else seconds) / seconds
        difference = None if alone else float(np.abs(found[way] - found[ways[0]]).max())
        rows.append(Row(pairs, way, seconds, ratio, memory, difference))
    return rows


def _keep(found: dict[str, Array], way: str, given: Given) -> None:
    found[way] = WAYS[way](*given)


def measure() -> list[Row]:
    rows = [row for pairs in COMPARED for row in compare(pairs, ("scikit-learn, scores", "truepair, scores"))]
    return rows + [row for pairs in ALONE for row in compare(pairs, ("truepair, all",))]


def table(rows: list[Row]) -> str:
    """The rows, aligned."""
    lines = [f"{'pairs':>9}  {'way':<20} {'seconds':>8} {'ratio':>7} {'extra peak':>11}  largest difference"]
    for row in rows:
        ratio = "" if row.times_faster is None else f"{row.times_faster:.1f}x"
        difference = "" if row.difference is None else f"{row.difference:.0e}"
        lines.append(
            f"{row.pairs:>9,}  {row.way:<20} {row.seconds:>8.2f} {ratio:>7} {row.extra_peak_mb:>8.0f} MB  {difference}"
        )
    return "\n".join(lines)


if __name__ == "__main__":
    print(table(measure()))
