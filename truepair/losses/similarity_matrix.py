"""What every loss asks of a batch's similarity matrix before it computes anything."""

from __future__ import annotations

import torch
from torch import Tensor

from truepair.errors import InputError, NaNError


def check_similarity(similarity: Tensor) -> int:
    """B of a usable (B, B) similarity matrix: square, floating, not empty, all finite.

    Raises:
        InputError: it is not; the message names the first bad cell.
    """
    if similarity.ndim != 2 or similarity.shape[0] != similarity.shape[1] or similarity.shape[0] == 0:
        raise InputError(
            f"similarity has shape {tuple(similarity.shape)}; expected (B, B), B ≥ 1, given pairs on the diagonal"
        )
    if not similarity.is_floating_point():
        raise InputError(f"similarity is {similarity.dtype}; expected a floating dtype")
    if not bool(torch.isfinite(similarity).all()):
        row, column = (~torch.isfinite(similarity)).nonzero()[0].tolist()
        raise InputError(
            f"similarity[{row}, {column}] is {similarity[row, column].item()}; expected finite values. Look for NaN in "
            "the features or a learning rate that is too high"
        )
    return int(similarity.shape[0])


def check_labels(labels: Tensor, count: int) -> None:
    """Refuse correspondence labels that are not (B,) within [0, 1].

    Raises:
        InputError: wrong shape, or a value outside [0, 1] (NaN included).
    """
    if labels.shape != (count,):
        raise InputError(f"labels have shape {tuple(labels.shape)}; expected ({count},), one per pair")
    inside = (labels >= 0) & (labels <= 1)
    if not bool(inside.all()):
        row = int((~inside).nonzero()[0])
        raise InputError(f"labels[{row}] is {labels[row].item()}; expected a value in [0, 1]")


def check_finite(name: str, values: Tensor) -> None:
    """Refuse values of any shape of which one is not finite.

    Raises:
        NaNError: one is not; the message names the first.
    """
    if not bool(torch.isfinite(values).all()):
        place = (~torch.isfinite(values)).nonzero()[0].tolist()
        raise NaNError(
            f"{name}{place if place else ''} is {values[tuple(place)].item()}; expected finite values. Look for NaN in "
            "the features or a learning rate that is too high"
        )


def check_temperature(temperature: float) -> None:
    if not temperature > 0:
        raise InputError(f"temperature is {temperature}; expected a value above 0")


def log_matching_probabilities(similarity: Tensor, temperature: float) -> tuple[Tensor, Tensor]:
    """log p (image → text, softmax of S/τ along rows) and log pᵀ (text → image, along columns), both (B, B)."""
    scaled = similarity / temperature
    return torch.log_softmax(scaled, dim=1), torch.log_softmax(scaled, dim=0)
