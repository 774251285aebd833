"""Pictures, in files or inside shards: their pixels, what an encoder takes of them, or why there is nothing."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from hashlib import blake2b
from io import BytesIO
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from truepair.data.pairs import Array, IntArray
from truepair.encoders.decode import PostScript, TooFewPixels, TooManyPixels, read_picture
from truepair.encoders.encoder import Encoder
from truepair.errors import InputError
from truepair.files import open_file

LARGEST_FILE = 256 * 2**20
"""Bytes of a picture file; it is read as a whole, by several threads at once."""


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


class PlacedPictures:
    """Pictures by their places, read and decoded one by one when asked for: `Images.files`.

    Args:
        place: where picture k of all lies.
        rows: which of all these are.
    """

    def __init__(self, place: Callable[[int], Place], rows: IntArray) -> None:
        self.place, self.rows = place, rows

    def __len__(self) -> int:
        return len(self.rows)

    def read(self, row: int) -> Array | None:
        pixels = read_pixels(self.place(int(self.rows[row])))
        return None if isinstance(pixels, Failure) else pixels

    def resized(self, row: int, size: int) -> Array:
        place = self.place(int(self.rows[row]))
        pixels = read_pixels(place, square=size)
        if isinstance(pixels, Failure):
            raise InputError(f"{place.file}: picture {row} {pixels.detail}")
        return pixels

    def prepared(self, row: int, encoder: Encoder) -> Any:
        place = self.place(int(self.rows[row]))
        found = prepare(place, encoder)
        if isinstance(found, Failure):
            raise InputError(f"{place.file}: picture {row} {found.detail}")
        return found

    def take(self, rows: IntArray) -> PlacedPictures:
        return PlacedPictures(self.place, self.rows[rows])


def read_pixels(place: Place, *, square: int | None = None, shortest: int | None = None) -> NDArray[np.uint8] | Failure:
    """Pixels as `read_picture` gives them; the type is told by the content, not by the name."""
    data = _read_bytes(place)
    if isinstance(data, Failure):
        return data
    try:
        return read_picture(BytesIO(data), square=square, shortest=shortest)
    except InputError as error:
        return _failure_of(error.__cause__ or error, data)


def prepare(place: Place, encoder: Encoder) -> Any | Failure:
    """What the encoder takes of a picture."""
    data = _read_bytes(place)
    if isinstance(data, Failure):
        return data
    try:
        return encoder.prepare(data)
    except InputError as error:
        return _failure_of(error.__cause__ or error, data)


def readable(place: Place) -> bool:
    """Whether its bytes can be read, whatever they are."""
    data = _read_bytes(place)
    return not isinstance(data, Failure) or data.reason != "unreadable-picture"


def content_of(place: Place) -> bytes:
    """16 bytes of what is in a picture's file; zeros where it cannot be read."""
    data = _read_bytes(place)
    return bytes(16) if isinstance(data, Failure) else blake2b(data, digest_size=16).digest()


def _read_bytes(place: Place) -> bytes | Failure:
    try:
        with open_file(place.file) as file:
            file.seek(place.offset)
            data = file.read(LARGEST_FILE + 1 if place.size < 0 else min(place.size, LARGEST_FILE + 1))
    except OSError as error:
        found = f"its file cannot be read ({error.strerror or error})"
        return Failure("unreadable-picture", f"{found}; check the disk and the permissions")
    if len(data) > LARGEST_FILE:
        found = f"its file has more than {LARGEST_FILE >> 20} MiB"
        return Failure("huge-picture", f"{found}; scale it down, or remove the entry")
    return data


def _failure_of(cause: BaseException, data: bytes) -> Failure:
    from PIL import Image, UnidentifiedImageError

    if isinstance(cause, TooFewPixels):
        return Failure("tiny-picture", str(cause))
    if isinstance(cause, PostScript | UnidentifiedImageError):
        found = "something else" if data else "nothing at all"
        found = "PostScript, which is a program" if isinstance(cause, PostScript) else found
        return Failure(
            "not-a-picture",
            f"the file holds {found}, whatever its name says; expected PNG, JPEG, WebP or another format that "
            "Pillow reads: put the picture there, or remove the entry",
        )
    if isinstance(cause, Image.DecompressionBombError | TooManyPixels):
        found = str(cause) if isinstance(cause, TooManyPixels) else f"it claims far too many pixels ({cause})"
        return Failure("huge-picture", f"{found}; scale it down, or remove the entry")
    found = f"it cannot be decoded ({str(cause) or type(cause).__name__})"
    return Failure("broken-picture", f"{found}; copy or download it again")
