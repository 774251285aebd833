"""What every layout that pairs are handed on in has in common."""

from __future__ import annotations

from abc import ABC, abstractmethod
from pathlib import Path

import numpy as np

from truepair.data.collection import Collection
from truepair.data.pairs import Array
from truepair.data.selection import Selection


class Layout(ABC):
    """A layout that another tool reads.

    Attributes:
        holds: the file or folder that `write` leaves in the folder of the export.
    """

    holds: str

    def check(self, collection: Collection) -> None:  # noqa: B027
        """Refuse, before long work, pairs that the layout cannot express.

        Raises:
            InputError: what is missing, and what to export instead.
        """

    @abstractmethod
    def write(self, collection: Collection, selection: Selection, folder: Path) -> None:
        """Write `holds` into the folder of the export."""


def scores_of(selection: Selection) -> Array:
    """(N,) float64 p_match of every pair, NaN where it was not scored; the weight where nothing else is known."""
    return np.asarray(selection.weights if selection.p_match is None else selection.p_match, np.float64)


def rounded(value: float) -> float | None:
    """A float32 as the shortest decimal that means it; None for NaN."""
    return None if np.isnan(value) else float(str(np.float32(value)))
