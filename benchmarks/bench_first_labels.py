"""Held-out scores by cross-fitted CCA against models that are each fitted anew: seconds, ratio, memory, agreement.

python -m benchmarks.bench_first_labels
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np

from benchmarks.measure import extra_peak_bytes, median_seconds
from truepair.correspondence import canonical
from truepair.correspondence.calibration import Calibration
from truepair.correspondence.canonical import BLOCK, DIRECTIONS, FOLDS, RIDGES, ROUNDS, CrossFittedCCA, folds_of
from truepair.correspondence.mixture_proportion import quantiles_among
from truepair.data.pairs import Array, IntArray
from truepair.seeding import generator

WIDTHS = (512, 256)
"""Of image and text vectors: the most that our method gives."""
NOISE, TEMPERATURE = 0.8, 0.05
COMPARED = (3_000, 12_000)
ALONE = (100_000,)
ALIKE = 0.05
"""Largest difference of scores, which span about 20: single precision, through two rounds of weights."""


@dataclass(frozen=True)
class Row:
    """One line of the table."""

    pairs: int
    way: str
    seconds: float
    times_faster: float | None
    extra_peak_mb: float
    difference: float | None


def made(pairs: int) -> tuple[Array, Array, IntArray]:
    """Vectors of both sides of pairs with 40 common factors, four fifths of them mismatched."""
    rng = np.random.default_rng(0)
    factors = rng.normal(size=(pairs, 40))
    wrong = rng.permutation(pairs)[: round(NOISE * pairs)]
    of_texts = factors.copy()
    of_texts[wrong] = factors[np.roll(wrong, 1)]
    shown = (side @ rng.normal(size=(40, width)) for side, width in zip((factors, of_texts), WIDTHS, strict=True))
    images, texts = ((side + 3 * rng.normal(size=side.shape)).astype(np.float32) for side in shown)
    return images, texts, np.arange(pairs)


def cross_fitted(images: Array, texts: Array, rows: IntArray) -> Array:
    return CrossFittedCCA(images, texts, rows, temperature=TEMPERATURE, seed=0).cleaned(NOISE).given


def fitted_anew(images: Array, texts: Array, rows: IntArray) -> Array:
    """The same scores with every model from the rows it learns from: whitened, multiplied, and decomposed in full."""
    fold = folds_of(rows, 0)
    places = [np.flatnonzero(fold == each) for each in range(FOLDS)]
    images, texts = images.astype(float), texts.astype(float)

    def scores(weights: Array, learned: IntArray, each: int, ridge: float) -> tuple[Array, Array]:
        sides = [whitened(side, ridge) for side in (images, texts)]
        covariance = (sides[0][learned] * weights[learned, None]).T @ sides[1][learned]
        left, strength, right = np.linalg.svd(covariance, full_matrices=False)
        root = np.sqrt(strength[:DIRECTIONS])
        u = canonical.unit(sides[0][places[each]] @ (left[:, :DIRECTIONS] * root))
        v = canonical.unit(sides[1][places[each]] @ (right[:DIRECTIONS].T * root))
        given, synthetic = np.zeros(len(u)), []
        order = generator(0, "held-out blocks", each).permutation(len(u))
        for block in np.array_split(order, -(-len(u) // BLOCK)):
            scaled = u[block] @ v[block].T / TEMPERATURE
            to_text, to_image = (np.log(np.exp(scaled).mean(axis=axis)) for axis in (1, 0))
            given[block] = scaled.diagonal() - (to_text + to_image) / 2
            after, others = np.roll(np.arange(len(block)), -1), np.exp(scaled)
            np.fill_diagonal(others, 0)  # a synthetic mismatch competes without the partners of its items
            to_text, to_image = (np.log(others.mean(axis=axis)) for axis in (1, 0))
            synthetic.append(scaled[np.arange(len(block)), after] - (to_text + to_image[after]) / 2)
        return given, np.concatenate(synthetic)

    def rest_of(parts: list[int]) -> IntArray:
        return np.concatenate([places[each] for each in parts])

    equal, auroc = np.ones(len(rows)), {}
    for ridge in RIDGES:
        found = [scores(equal, rest_of([o for o in range(FOLDS) if o != each]), each, ridge) for each in range(FOLDS)]
        auroc[ridge] = quantiles_among(*(np.concatenate(side) for side in zip(*found, strict=True))).mean()
    ridge = min(each for each in RIDGES if auroc[each] >= max(auroc.values()) - np.sqrt(1 / (12 * len(rows))))
    final = np.zeros(len(rows))
    for held in range(FOLDS):
        others, weights = [each for each in range(FOLDS) if each != held], equal.copy()
        for _ in range(ROUNDS):
            inner = [scores(weights, rest_of([o for o in others if o != each]), each, ridge) for each in others]
            together, synthetic = (np.concatenate(side) for side in zip(*inner, strict=True))
            equally = np.full(len(synthetic), 1 / len(synthetic))
            weights[rest_of(others)] = Calibration.of(together, synthetic, equally, NOISE)(together)
        final[places[held]] = scores(weights, rest_of(others), held, ridge)[0]
    return final


def whitened(vectors: Array, ridge: float) -> Array:
    centred = vectors - vectors.mean(axis=0)
    variances, axes = np.linalg.eigh(centred.T @ centred / len(centred))
    white: Array = centred @ (axes / np.sqrt(np.maximum(variances, 0) + ridge * variances.mean()))
    return white


WAYS: dict[str, Callable[[Array, Array, IntArray], Array]] = {"fitted anew": fitted_anew, "truepair": cross_fitted}


def ready(way: str, pairs: int) -> Callable[[], object]:
    """What the memory of a way is measured on; libraries are loaded before it counts."""
    WAYS[way](*made(400))
    return partial(WAYS[way], *made(pairs))


def compare(pairs: int, ways: tuple[str, ...]) -> list[Row]:
    given, rows = made(pairs), list[Row]()
    found: dict[str, Array] = {}
    for way in ways:
        seconds = median_seconds(partial(_keep, found, way, given), 1, warm_up=False)
        first = rows[0].seconds if rows else seconds
        difference = float(np.abs(found[way] - found[ways[0]]).max())
        alone = len(ways) == 1
        memory = extra_peak_bytes(partial(ready, way, pairs)) / 1e6
        rows.append(Row(pairs, way, seconds, None if alone else first / seconds, memory, None if alone else difference))
    return rows


def _keep(found: dict[str, Array], way: str, given: tuple[Array, Array, IntArray]) -> None:
    found[way] = WAYS[way](*given)


def table(rows: list[Row]) -> str:
    """The rows, aligned."""
    lines = [f"{'pairs':>9}  {'way':<11} {'seconds':>8} {'ratio':>7} {'extra peak':>11}  largest difference"]
    for row in rows:
        ratio = "" if row.times_faster is None else f"{row.times_faster:.1f}x"
        difference = "" if row.difference is None else f"{row.difference:.0e}"
        lines.append(
            f"{row.pairs:>9,}  {row.way:<11} {row.seconds:>8.1f} {ratio:>7} {row.extra_peak_mb:>8.0f} MB  {difference}"
        )
    return "\n".join(lines)


def measure() -> list[Row]:
    """All rows.

    Raises:
        SystemExit: the ways do not agree on their numbers.
    """
    rows = [row for pairs in COMPARED for row in compare(pairs, ("fitted anew", "truepair"))]
    rows += [row for pairs in ALONE for row in compare(pairs, ("truepair",))]
    if any(row.difference is not None and row.difference > ALIKE for row in rows):
        raise SystemExit("the ways disagree on scores")
    return rows


if __name__ == "__main__":
    print(table(measure()))
