"""The built-in encoder without a network: 36 overlapping windows, each described by 56 numbers (`descriptor.py`)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from truepair.encoders.decode import TooFewPixels, pixels_of
from truepair.encoders.descriptor import DESCRIPTOR_SIZE, SMALLEST_CELL, grid_descriptor
from truepair.encoders.encoder import Encoder, Floats, Picture

GRID = 6
SMALLEST_SIDE = SMALLEST_CELL * (GRID + 1)
_RECIPE = 3  # counts changes to the numbers


class Windows(Encoder):
    """(36, 56) of a picture shrunk to at most 192 pixels a side; all is done while it is prepared, in threads."""

    name = "windows"
    regions, width = GRID**2, DESCRIPTOR_SIZE

    def identity(self) -> str:
        return f"windows-{_RECIPE}"

    def prepare(self, picture: Picture) -> Floats:
        pixels = pixels_of(picture)
        if min(pixels.shape[:2]) < SMALLEST_SIDE:
            raise TooFewPixels(
                f"it is {pixels.shape[1]} x {pixels.shape[0]} pixels after shrinking to 192, too few for its "
                f"description; expected at least {SMALLEST_SIDE} x {SMALLEST_SIDE}: take a larger version, or remove "
                "the entry"
            )
        return grid_descriptor(pixels, grid=GRID)

    def encode(self, prepared: Sequence[Floats]) -> Floats:
        return np.stack(prepared)
