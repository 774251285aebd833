"""Region features of picture files by the built-in descriptor, made once and kept: in memory and in a cache folder.

The cache folder is `$TRUEPAIR_CACHE`, else `~/.cache/truepair`; it may be deleted at any time. An entry is named by a
hash of the list of files, their sizes and times, so that changed pictures are described anew.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import lru_cache
from hashlib import blake2b
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

import numpy as np
from numpy.typing import NDArray

from truepair.data.pairs import Array
from truepair.data.pictures.descriptor import DESCRIPTOR_SIZE, grid_descriptor
from truepair.errors import InputError, TruepairError
from truepair.files import map_npy, open_file, write_bytes_atomically

if TYPE_CHECKING:
    from PIL import Image

GRID = 6
LONGEST_SIDE = 192
# More pixels than any photograph has; a small file that claims them is there to exhaust the memory.
_MOST_PIXELS = 100_000_000
# Encapsulated PostScript is a program: Pillow would hand it to Ghostscript.
_POSTSCRIPT = (b"%!PS", b"\xc5\xd0\xd3\xc6")
# A JPEG is decoded at 1/2, 1/4 or 1/8 of its size where its longer side keeps this many times the pixels needed.
_SPARE = 2
# Counts changes to what a cached array holds: to the descriptor, or to how pictures are prepared for it.
_RECIPE = 2


def describe_files(folder: Path, names: tuple[str, ...]) -> tuple[Array, Array | None]:
    """Region features (n, 36, 56) float16 of the pictures, and their pixels (n, H, W, 3) uint8 if all have one size.

    Both are shared with later calls and read-only.

    Raises:
        InputError: a picture is missing, broken or too small; the message names it.
    """
    digest = blake2b(f"{_RECIPE} {GRID} {LONGEST_SIDE} ".encode() + os.fsencode(folder), digest_size=16)
    for name in names:
        try:
            status = (folder / name).stat()
        except OSError as error:
            raise InputError(
                f"{folder / name} cannot be read ({error.strerror or error}); expected a picture that the table names. "
                "Copy it there, or remove its line from the table"
            ) from error
        digest.update(os.fsencode(f"\0{name}\0{status.st_size}\0{status.st_mtime_ns}"))
    return _describe_files(folder, names, digest.hexdigest())


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


# Pixels being decoded at once, by all threads: each takes 8 to 20 bytes.
_AT_ONCE = Budget(_MOST_PIXELS)


class TooManyPixels(ValueError):
    """A picture was not decoded, because it claims more pixels than any photograph has."""


class PostScript(ValueError):
    """A file was not decoded, because it is a program."""


def read_picture(source: Path | BinaryIO) -> NDArray[np.uint8]:
    """(H, W, 3) RGB of a picture: upright, on white, its longer side at most 192 pixels.

    JPEG files of more than 768 pixels are decoded at a part of their size, never below 384: a photograph of 12
    megapixels takes a tenth of the time, and its descriptor is the same to a cosine of 0.9999.

    Args:
        source: a file, or an open one that stands at its beginning; what it holds decides, not its name.

    Raises:
        InputError: the file is missing, broken, no picture, PostScript (cause: `PostScript`), or claims far too many
            pixels (cause: `TooManyPixels`).
    """
    try:
        if isinstance(source, Path):
            with open_file(source) as file:
                return _decoded(file)
        return _decoded(source)
    except Exception as error:  # a broken file makes Pillow raise nearly anything
        name = source if isinstance(source, Path) else "it"
        raise InputError(
            f"{name} cannot be read as a picture ({str(error) or type(error).__name__}); expected PNG, JPEG or another "
            "format that Pillow reads. Copy or draw the picture again, or remove its line from the table"
        ) from error


def _decoded(file: BinaryIO) -> NDArray[np.uint8]:
    from PIL import Image, ImageOps

    if file.read(4) in _POSTSCRIPT:
        raise PostScript("it is PostScript, which is a program")
    file.seek(0)
    with Image.open(file) as image:
        if image.width * image.height > _MOST_PIXELS:
            raise TooManyPixels(f"it claims {image.width} x {image.height} pixels")
        decode_small(image)
        with _AT_ONCE.taken(image.width * image.height):
            return _flattened(ImageOps.exif_transpose(image))


def _flattened(upright: Image.Image) -> NDArray[np.uint8]:
    from PIL import Image

    if upright.mode == "RGB" and not upright.has_transparency_data:
        flat = upright
    else:
        ground = Image.new("RGBA", upright.size, "white")
        flat = Image.alpha_composite(ground, upright.convert("RGBA")).convert("RGB")
    flat.thumbnail((LONGEST_SIDE, LONGEST_SIDE))
    return np.asarray(flat)


def decode_small(image: Image.Image) -> None:
    """Have a JPEG decoded at the smallest of its sizes whose longer side is at least 384; others as they are."""
    longer, wanted = max(image.size), _SPARE * LONGEST_SIDE
    if longer >= 2 * wanted:
        image.draft(None, (max(1, image.width * wanted // longer), max(1, image.height * wanted // longer)))


@lru_cache(maxsize=6)
def _describe_files(folder: Path, names: tuple[str, ...], digest: str) -> tuple[Array, Array | None]:
    cached = cache_folder() / f"pictures-{digest}.npy"
    known = _read_cached(cached, len(names))
    features = np.empty((len(names), GRID**2, DESCRIPTOR_SIZE), dtype=np.float16) if known is None else known
    pictures: Array | None = None

    def draw(row: int) -> NDArray[np.uint8]:
        picture = read_picture(folder / names[row])
        if known is None:
            try:
                features[row] = grid_descriptor(picture, grid=GRID)
            except InputError as error:
                raise InputError(f"{folder / names[row]}: {error}") from error
        return picture

    # Threads, not processes: NumPy and Pillow let others run meanwhile, and a script needs no guard for them.
    with ThreadPoolExecutor(min(8, os.cpu_count() or 1)) as threads:
        for row, picture in enumerate(threads.map(draw, range(len(names)))):
            if row == 0:
                pictures = np.empty((len(names), *picture.shape), dtype=np.uint8)
            if pictures is not None and pictures.shape[1:] == picture.shape:
                pictures[row] = picture
            else:
                pictures = None
    if known is None:
        _write_cached(cached, features)
    for shared in (features, pictures):
        if shared is not None:
            shared.flags.writeable = False
    return features, pictures


def cache_folder() -> Path:
    named = os.environ.get("TRUEPAIR_CACHE")
    return Path(named) if named else Path.home() / ".cache" / "truepair"


def _read_cached(path: Path, count: int) -> Array | None:
    """The features of the file, or None where it is missing or damaged: then they are described again."""
    try:
        features = np.array(map_npy(path))
    except (OSError, ValueError):
        return None
    fits = features.shape == (count, GRID**2, DESCRIPTOR_SIZE) and features.dtype == np.float16
    return features if fits and np.isfinite(features).all() else None


def _write_cached(path: Path, features: Array) -> None:
    buffer = BytesIO()
    np.save(buffer, features, allow_pickle=False)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_bytes_atomically(path, buffer.getvalue())
    except (OSError, TruepairError):
        return  # a home that cannot be written to costs time, never the features
