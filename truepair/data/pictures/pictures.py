"""One picture, from a file or from inside a shard: its pixels, its region features, or why it has none."""

from __future__ import annotations

from dataclasses import dataclass
from io import BytesIO
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from truepair.data.pairs import Array
from truepair.data.pictures.descriptor import SMALLEST_CELL, grid_descriptor
from truepair.data.pictures.picture_features import GRID, PostScript, TooManyPixels, read_picture
from truepair.errors import InputError
from truepair.files import open_file

LARGEST_FILE = 256 * 2**20
"""Bytes of a picture file; it is read as a whole, by several threads at once."""

SMALLEST_SIDE = SMALLEST_CELL * (GRID + 1)


class Place(NamedTuple):
    """Where the bytes of a picture lie: in a file of their own, or `size` bytes from `offset` of another one."""

    file: str
    offset: int = 0
    size: int = -1


@dataclass(frozen=True)
class Failure:
    """Why a picture cannot be used: `reason` and `detail` as in `Problem`."""

    reason: str
    detail: str


def read_pixels(place: Place) -> NDArray[np.uint8] | Failure:
    """(H, W, 3) RGB, upright, on white, longer side at most 192; the type is told by the content, not by the name."""
    data = _read_bytes(place)
    if isinstance(data, Failure):
        return data
    try:
        return read_picture(BytesIO(data))
    except InputError as error:
        return _failure_of(error.__cause__ or error, data)


def describe(place: Place) -> Array | Failure:
    """Region features (36, 56) float16 of the built-in descriptor, as `describe_files` makes them."""
    pixels = read_pixels(place)
    if isinstance(pixels, Failure):
        return pixels
    if min(pixels.shape[:2]) < SMALLEST_SIDE:
        height, width = pixels.shape[:2]
        return Failure(
            "tiny-picture",
            f"it is {width} x {height} pixels after shrinking to 192, too few for its description; expected at least "
            f"{SMALLEST_SIDE} x {SMALLEST_SIDE}: take a larger version, or remove the entry",
        )
    return grid_descriptor(pixels, grid=GRID).astype(np.float16)


def _read_bytes(place: Place) -> bytes | Failure:
    try:
        with open_file(place.file) as file:
            file.seek(place.offset)
            data = file.read(LARGEST_FILE + 1 if place.size < 0 else min(place.size, LARGEST_FILE + 1))
    except OSError as error:
        return Failure(
            "unreadable-picture",
            f"its file cannot be read ({error.strerror or error}); check the disk and the permissions",
        )
    if len(data) > LARGEST_FILE:
        return Failure(
            "huge-picture", f"its file has more than {LARGEST_FILE >> 20} MiB; scale it down, or remove the entry"
        )
    return data


def _failure_of(cause: BaseException, data: bytes) -> Failure:
    from PIL import Image, UnidentifiedImageError

    if isinstance(cause, PostScript):
        return _not_a_picture("PostScript, which is a program")
    if isinstance(cause, Image.DecompressionBombError | TooManyPixels):
        return Failure(
            "huge-picture",
            f"it was not decoded, because it claims far too many pixels ({cause}); scale it down, or remove the entry",
        )
    if isinstance(cause, UnidentifiedImageError):
        return _not_a_picture("nothing at all" if not data else "something else")
    return Failure(
        "broken-picture",
        f"it cannot be decoded ({str(cause) or type(cause).__name__}); copy or download it again",
    )


def _not_a_picture(found: str) -> Failure:
    return Failure(
        "not-a-picture",
        f"the file holds {found}, whatever its name says; expected PNG, JPEG, WebP or another format that "
        "Pillow reads: put the picture there, or remove the entry",
    )
