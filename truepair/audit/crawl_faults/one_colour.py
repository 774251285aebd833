"""Pictures that decode to one colour: an upload that was cut off, a lazy placeholder, a scan of nothing."""

from __future__ import annotations

from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor

from truepair.data.collection import Collection
from truepair.data.pairs import Array
from truepair.errors import TruepairError

SPREAD = 8
"""Of 255: how far the values of a colour may lie apart within a picture; JPEG alters even colours a little."""
TRIED = 50
THREADS = 4


def one_colour(pixels: Array) -> tuple[int, int, int] | None:
    """The colour (R, G, B) of (H, W, 3) uint8 pixels that hold no other; else None."""
    flat = pixels.reshape(-1, pixels.shape[-1])
    low, high = flat.min(axis=0).astype(int), flat.max(axis=0).astype(int)
    if (high - low > SPREAD).any():
        return None
    red, green, blue = ((low + high) // 2).tolist()
    return red, green, blue


def pictures_of_one_colour(collection: Collection, rows: Iterable[int]) -> dict[int, tuple[int, int, int]]:
    """Row → colour of those of the rows whose picture holds one colour. Pictures that cannot be read are left out.

    Where none of the first rows has a picture, no more are asked for.
    """
    asked = list(rows)
    found: dict[int, tuple[int, int, int]] = {}
    seen = 0
    with ThreadPoolExecutor(THREADS) as pool:
        for start in range(0, len(asked), TRIED):
            some = asked[start : start + TRIED]
            for row, colour, shown in pool.map(lambda row: looked_at(collection, row), some):
                seen += shown
                if colour is not None:
                    found[row] = colour
            if not seen:
                break
    return found


def looked_at(collection: Collection, row: int) -> tuple[int, tuple[int, int, int] | None, bool]:
    """The row, the only colour of its picture, and whether there is a picture."""
    try:
        pixels = collection.picture(row)
    except (TruepairError, OSError):  # a file that vanished since
        pixels = None
    return (row, None, False) if pixels is None else (row, one_colour(pixels), True)
