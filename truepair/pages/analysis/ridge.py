"""A linear map from one part to another, fitted by ridge regression: what one tells of the other, read linearly."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from torch import Tensor

from truepair.data.pairs import Array
from truepair.seeding import generator

STRENGTHS = (1e-3, 1e-2, 1e-1, 1.0, 10.0)
"""Penalties to choose from, in units of the mean variance of a column of x."""
HELD_OUT = 0.1


@dataclass(frozen=True)
class LinearMap:
    """ŷ = (x − x̄) W + ȳ.

    Attributes:
        weights: W, (D_x, D_y).
        x_mean, y_mean: x̄ (D_x,) and ȳ (D_y,) of the rows it was fitted on.
        strength: the penalty that was chosen, one of STRENGTHS.
    """

    weights: Array
    x_mean: Array
    y_mean: Array
    strength: float

    def centred(self, x: Tensor) -> Array:
        """ŷ − ȳ of n rows, (n, D_y)."""
        mapped: Array = (x.double().numpy() - self.x_mean) @ self.weights
        return mapped

    def explained(self, x: Tensor, y: Tensor) -> float:
        """R² on other rows: 1 − Σ‖y − ŷ‖² / Σ‖y − ȳ‖² ≤ 1; below 0 where ȳ would guess better; 0 of a constant."""
        target = y.double().numpy() - self.y_mean
        whole = float((target**2).sum())
        return 1 - float(((target - self.centred(x)) ** 2).sum()) / whole if whole > 0 else 0.0


def fit_ridge(x: Tensor, y: Tensor, *, seed: int) -> LinearMap:
    """The map from x (n, D_x) to y (n, D_y), n ≥ 2; the penalty is the best of STRENGTHS on a held-out tenth."""
    values, targets = x.double().numpy(), y.double().numpy()
    order = generator(seed, "ridge held out").permutation(len(values))
    held = max(1, round(HELD_OUT * len(values)))
    scored, fitted = order[:held], order[held:]

    def error(strength: float) -> float:
        found = _solve(values[fitted], targets[fitted], strength)
        mapped = (values[scored] - found.x_mean) @ found.weights + found.y_mean
        return float(((mapped - targets[scored]) ** 2).sum())

    return _solve(values, targets, min(STRENGTHS, key=error))


def _solve(x: Array, y: Array, strength: float) -> LinearMap:
    """W = (XᵀX/n + λ v I)⁻¹ XᵀY/n of centred X and Y, v the mean variance of the columns of x, λ the strength."""
    x_mean, y_mean = x.mean(axis=0), y.mean(axis=0)
    centred = x - x_mean
    covariance, cross = centred.T @ centred / len(x), centred.T @ (y - y_mean) / len(x)
    scale = float(np.trace(covariance)) / len(covariance) or 1.0
    weights = np.linalg.solve(covariance + strength * scale * np.eye(len(covariance)), cross)
    return LinearMap(weights, x_mean, y_mean, strength)
