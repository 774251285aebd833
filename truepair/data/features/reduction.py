"""Features of pictures made smaller: regions pooled to a coarser grid, and projected to fewer numbers each."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from truepair.data.pairs import Array
from truepair.errors import InputError
from truepair.seeding import generator

MOST_IMAGES = 2000
"""Images that principal components are computed of."""


@dataclass(frozen=True)
class Projection:
    """Principal components: (x − mean) @ basis.

    Attributes:
        mean: (D,) float32 of the regions it was computed of.
        basis: (D, d) float32, orthonormal columns, the direction of the largest variance first.
        kept: share of the variance of these regions that the d directions hold, in [0, 1].
    """

    mean: Array
    basis: Array
    kept: float

    def __call__(self, features: Array) -> Array:
        """(n, R, D) to (n, R, d) float32."""
        return (features - self.mean) @ self.basis


def grid_of(regions: int) -> int | None:
    """The side of the square grid that so many regions fill in reading order; None where they fill none."""
    side = math.isqrt(regions)
    return side if side * side == regions else None


def check_grid(regions: int, grid: int) -> None:
    """Raises InputError where regions cannot be pooled to a grid."""
    side = grid_of(regions)
    if side is None or not 1 <= grid <= side:
        given = f"{regions} regions, which fill no square grid" if side is None else f"a grid of {side} x {side}"
        raise InputError(
            f"--grid is {grid}, but this encoder gives {given}; expected 1 to {side or 1}, or leave it out"
        )


def pooled(features: Array, grid: int) -> Array:
    """(n, R, D) regions of a square grid to (n, grid², D) float32: each the mean of the cells that it covers.

    Cell i of the coarse grid covers rows ⌊i g / grid⌋ to ⌈(i + 1) g / grid⌉ of g, and columns alike (adaptive average
    pooling).
    """
    side = grid_of(features.shape[1])
    assert side is not None
    cells = features.astype(np.float32).reshape(len(features), side, side, -1)
    weights = np.zeros((grid, side), dtype=np.float32)
    for cell in range(grid):
        covered = slice(cell * side // grid, -(-(cell + 1) * side // grid))
        weights[cell, covered] = 1 / (covered.stop - covered.start)
    coarse: Array = np.einsum("ir,jc,nrcd->nijd", weights, weights, cells, optimize=True)
    return coarse.reshape(len(features), grid**2, -1)


def principal_components(features: Array, width: int, *, grid: int | None, seed: int) -> Projection:
    """Those of the regions of at most `MOST_IMAGES` images (n, R, D), drawn at random, pooled to the grid first.

    Computed in float64; each direction has the sign that makes its largest entry positive.

    Raises:
        InputError: `width` is not below D, or there are fewer regions than directions.
    """
    if not 1 <= width < features.shape[2]:
        raise InputError(
            f"--project is {width}, but features are {features.shape[2]} wide; expected 1 to {features.shape[2] - 1}"
        )
    rows = np.arange(len(features))
    if len(rows) > MOST_IMAGES:
        rows = np.sort(generator(seed, "projection").choice(rows, MOST_IMAGES, replace=False))
    drawn = features[rows] if grid is None else pooled(features[rows], grid)
    regions = drawn.reshape(-1, features.shape[2]).astype(np.float64)
    if len(regions) <= width:
        raise InputError(
            f"--project {width} needs more than {width} regions to be computed of; there are {len(regions)}"
        )
    mean = regions.mean(axis=0)
    values, vectors = np.linalg.eigh(np.cov(regions.T))
    basis = vectors[:, ::-1][:, :width]
    basis = basis * np.sign(basis[np.abs(basis).argmax(axis=0), np.arange(width)])
    kept = float(values[::-1][:width].sum() / values.sum())
    return Projection(mean.astype(np.float32), np.ascontiguousarray(basis, dtype=np.float32), kept)
