"""Picture files to pixels: upright, RGB, on white, of a bounded size."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

import numpy as np
from numpy.typing import NDArray

from truepair.encoders.encoder import Picture
from truepair.errors import InputError
from truepair.files import open_file

if TYPE_CHECKING:
    from PIL import Image

LONGEST_SIDE = 192
# More pixels than any photograph has; a small file that claims them is there to exhaust the memory.
_MOST_PIXELS = 100_000_000
# Encapsulated PostScript is a program: Pillow would hand it to Ghostscript.
_POSTSCRIPT = (b"%!PS", b"\xc5\xd0\xd3\xc6")
# A JPEG is decoded at 1/2, 1/4 or 1/8 of its size where its longer side keeps this many times the pixels needed.
_SPARE = 2
# Bytes in which Pillow allocates a large picture.
_BLOCK = 64 * 2**20


class Budget:
    """An amount that several threads share: who wants more than is left waits until others give theirs back."""

    def __init__(self, total: int) -> None:
        self._left, self._changed = total, threading.Condition()

    @contextmanager
    def taken(self, amount: int) -> Iterator[None]:
        """Holds `amount`, at most the total, within the block."""
        with self._changed:
            self._changed.wait_for(lambda: self._left >= amount)
            self._left -= amount
        try:
            yield
        finally:
            with self._changed:
                self._left += amount
                self._changed.notify_all()


# Pixels being decoded at once, by all threads: each takes 4 to 16 bytes.
_AT_ONCE = Budget(_MOST_PIXELS)


class TooManyPixels(ValueError):
    """A picture was not decoded, because it claims more pixels than any photograph has."""


class TooFewPixels(InputError):
    """A picture is too small to be described."""


class PostScript(ValueError):
    """A file was not decoded, because it is a program."""


def read_picture(
    source: Path | BinaryIO, *, square: int | None = None, shortest: int | None = None, least: int = 1
) -> NDArray[np.uint8]:
    """(H, W, 3) RGB of a picture: upright, on white, its longer side at most 192 pixels; or resized to a square.

    With `shortest` it is not resized at all, for somebody who will shrink its shorter side to so many pixels.

    JPEG files of more than 768 pixels (four times the side of the square) are decoded at a part of their size, never
    below 384 (twice the side): a photograph of 12 megapixels takes a tenth of the time, and its descriptor is the same
    to a cosine of 0.9999.

    Args:
        source: a file, or an open one that stands at its beginning; what it holds decides, not its name.
        least: pixels that each side must have.

    Raises:
        InputError: the file is missing, broken, no picture, PostScript (cause: `PostScript`), or claims far too many
            pixels (cause: `TooManyPixels`) or has too few (cause: `TooFewPixels`).
    """
    try:
        if isinstance(source, Path):
            with open_file(source) as file:
                return _decoded(file, square, shortest, least)
        return _decoded(source, square, shortest, least)
    except Exception as error:  # a broken file makes Pillow raise nearly anything
        name = source if isinstance(source, Path) else "it"
        raise InputError(
            f"{name} cannot be read as a picture ({str(error) or type(error).__name__}); expected PNG, JPEG or another "
            "format that Pillow reads. Copy or draw the picture again, or remove its line from the table"
        ) from error


def pixels_of(
    picture: Picture, *, square: int | None = None, shortest: int | None = None, least: int = 1
) -> NDArray[np.uint8]:
    """(H, W, 3) RGB of a picture as `read_picture` gives it; pixels in memory as they are, or resized to a square.

    Raises:
        InputError: as `read_picture`; or pixels are of another shape or type.
    """
    if isinstance(picture, np.ndarray):
        check_rgb(picture)
        _check_size(picture.shape[1], picture.shape[0], least)
        return picture if square is None else resized(picture, square)
    source = BytesIO(picture) if isinstance(picture, bytes) else picture
    return read_picture(source, square=square, shortest=shortest, least=least)


def _check_size(width: int, height: int, least: int) -> None:
    if min(width, height) < least:
        raise TooFewPixels(
            f"it is {width} x {height} pixels, too few to show anything; expected at least {least} x {least}: take a "
            "larger version, or remove the entry"
        )


def check_rgb(pixels: NDArray[np.uint8]) -> None:
    """Raises InputError where an array holds no RGB pixels."""
    if pixels.ndim != 3 or pixels.shape[2] != 3 or pixels.dtype != np.uint8:
        raise InputError(
            f"a picture has shape {pixels.shape} and type {pixels.dtype}; expected RGB, (H, W, 3) uint8. "
            'Convert grey, palette or transparent pictures first, for example with PIL: image.convert("RGB").'
        )


def _decoded(file: BinaryIO, square: int | None, shortest: int | None, least: int) -> NDArray[np.uint8]:
    from PIL import Image

    if file.read(4) in _POSTSCRIPT:
        raise PostScript("it is PostScript, which is a program")
    file.seek(0)
    with Image.open(file) as image:
        if image.width * image.height > _MOST_PIXELS:
            raise TooManyPixels(
                f"it has {image.width} x {image.height} pixels, and at most {_MOST_PIXELS:,} are decoded"
            )
        _check_size(*image.size, least)
        side = square or LONGEST_SIDE if shortest is None else -(-shortest * max(image.size) // min(image.size))
        decode_small(image, side)
        pixels = image.width * image.height
    with _AT_ONCE.taken(pixels):  # and free again within it: that is why the picture is opened anew
        return _shrunk(file, square, side, as_is=shortest is not None)


def _shrunk(file: BinaryIO, square: int | None, side: int, *, as_is: bool) -> NDArray[np.uint8]:
    from PIL import Image

    # Blocks that malloc gives back to the system: smaller ones each thread would keep.
    Image.core.set_block_size(_BLOCK)  # type: ignore[attr-defined]
    file.seek(0)
    with Image.open(file) as opened:
        upright: Image.Image = opened
        decode_small(upright, side)
        upright.load()
        upright = _turned(upright)
        if upright.mode.startswith(("I", "F")):
            upright = _eight_bits(upright)
        if upright.mode == "RGB" and not upright.has_transparency_data:
            flat: Image.Image = upright
        else:
            ground = Image.new("RGBA", upright.size, "white")
            flat = Image.alpha_composite(ground, upright.convert("RGBA")).convert("RGB")
        if as_is:
            return np.asarray(flat)
        if square is not None:
            return np.asarray(flat.resize((square, square), Image.Resampling.BICUBIC))
        flat.thumbnail((LONGEST_SIDE, LONGEST_SIDE))
        return np.asarray(flat)


def _turned(image: Image.Image) -> Image.Image:
    """A loaded picture as its EXIF block (or XMP) says it is to be held; as it is where that cannot be read.

    Pillow's own `exif_transpose` writes the block again, and fails at any odd tag in it, though the pixels are sound.
    """
    from PIL import ExifTags, Image

    turn = Image.Transpose
    turns = (
        *(turn.FLIP_LEFT_RIGHT, turn.ROTATE_180, turn.FLIP_TOP_BOTTOM),
        *(turn.TRANSPOSE, turn.ROTATE_270, turn.TRANSVERSE, turn.ROTATE_90),
    )
    try:
        method = dict(enumerate(turns, start=2)).get(image.getexif().get(ExifTags.Base.Orientation, 1))
    except Exception:  # a damaged block makes Pillow raise nearly anything
        method = None
    return image if method is None else image.transpose(method)


def _eight_bits(image: Image.Image) -> Image.Image:
    """Grey of 16 or 32 bits or of floats as 8 bits: white is 65535 of 16 bits, else the least of 1 (floats), 255 and
    65535 that no pixel exceeds, or the largest value. Pillow itself cuts all of them off at 255.
    """
    from PIL import Image

    values = np.nan_to_num(np.asarray(image, dtype=np.float64), posinf=0)
    whites = [65535] if image.mode.startswith("I;16") else [1, 255, 65535] if image.mode == "F" else [255, 65535]
    most = values.max(initial=0)
    white = next((white for white in whites if most <= white), most)
    return Image.fromarray(np.round(np.clip(values, 0, white) * (255 / white)).astype(np.uint8))


def resized(pixels: NDArray[np.uint8], size: int) -> NDArray[np.uint8]:
    """(size, size, 3) uint8 of pixels in memory, bicubic."""
    from PIL import Image

    return np.asarray(Image.fromarray(pixels).resize((size, size), Image.Resampling.BICUBIC))


def decode_small(image: Image.Image, side: int = LONGEST_SIDE) -> None:
    """Have a JPEG decoded at the smallest of its sizes whose longer side is at least twice `side`."""
    longer, wanted = max(image.size), _SPARE * side
    if longer >= 2 * wanted:
        image.draft(None, (max(1, image.width * wanted // longer), max(1, image.height * wanted // longer)))
