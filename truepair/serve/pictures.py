"""Pictures as the page shows them: small, kept in memory up to a budget, and only those that the opened data name."""

from __future__ import annotations

import io
import os
from collections import OrderedDict
from dataclasses import dataclass
from pathlib import Path
from threading import Lock

from truepair.data.pairs import Array, Images
from truepair.data.pictures.pictures import Failure, Place, PlacedPictures, read_pixels
from truepair.serve.errors import Problem

WIDTHS = (96, 192, 384, 768)
"""Pixels that the longer side of a picture may have."""
BUDGET = 128 << 20
"""Bytes of pictures that are kept."""


@dataclass(frozen=True)
class Shown:
    """A picture file for the page."""

    data: bytes
    media_type: str


class Pictures:
    """The images of one source.

    A picture is asked for by its number, never by a path, so that nothing but what the data name can be had. Where a
    link leads outside `folder` it is refused: a table may name a link that somebody else put into the folder.

    Args:
        images: whose pixels are shown.
        folder: what the files of pictures must lie in; None where all that the data name may be shown.
    """

    def __init__(self, images: Images, folder: Path | None) -> None:
        self.images = images
        self._folder = None if folder is None else folder.resolve()

    def __len__(self) -> int:
        return len(self.images)

    @property
    def any(self) -> bool:
        return self.images.have_pixels

    def shown(self, number: int, width: int) -> Shown:
        """A picture whose longer side has at most `width` pixels, as JPEG or PNG, whichever is smaller.

        Raises:
            Problem: there is no such picture, it cannot be read any more, or a link leads outside the data.
        """
        if not 0 <= number < len(self.images):
            raise Problem(404, "no-such-picture", f"there is no picture {number}; there are {len(self.images)}, from 0")
        pixels = self._pixels(number, width)
        if pixels is None:
            raise Problem(404, "no-pixels", "these data have features and no pixels; serve a source of pictures")
        return encoded(pixels, width)

    def _pixels(self, number: int, width: int) -> Array | None:
        files = self.images.files
        if not isinstance(files, PlacedPictures):
            return self.images.picture(number)
        place = self._safe(files.place(int(files.rows[number])), number)
        pixels = read_pixels(place, shortest=width)
        if isinstance(pixels, Failure):
            raise Problem(404, "picture-gone", f"picture {self.images.ids[number]!r:.200}: {pixels.detail}")
        return pixels

    def _safe(self, place: Place, number: int) -> Place:
        """The place by its real path, which lies in the folder of the data; parts of opened files are safe."""
        if place.size >= 0:
            return place
        real = Path(os.path.realpath(place.file))
        if self._folder is not None and not real.is_relative_to(self._folder):
            raise Problem(
                403,
                "outside-data",
                f"picture {self.images.ids[number]!r:.200} is a link that leads outside the folder of the data; put "
                "the file there, or start truepair serve with --follow-links",
            )
        return place._replace(file=str(real))


def encoded(pixels: Array, width: int) -> Shown:
    """Pixels (H, W, 3) uint8 as a file, scaled down where a side has more than `width`."""
    from PIL import Image

    image = Image.fromarray(pixels)
    image.thumbnail((width, width))
    jpeg = io.BytesIO()
    image.save(jpeg, "JPEG", quality=85)
    if image.width * image.height > 96 * 96:
        return Shown(jpeg.getvalue(), "image/jpeg")
    png = io.BytesIO()
    image.save(png, "PNG")
    smaller = png.tell() < jpeg.tell()
    return Shown(png.getvalue(), "image/png") if smaller else Shown(jpeg.getvalue(), "image/jpeg")


class Cache:
    """Pictures that were shown last, up to a budget of bytes; several threads may ask at once."""

    def __init__(self, budget: int = BUDGET) -> None:
        self.budget, self.bytes, self.hits, self.misses = budget, 0, 0, 0
        self._kept: OrderedDict[tuple[str, int, int], Shown] = OrderedDict()
        self._lock = Lock()

    def shown(self, source: str, pictures: Pictures, number: int, width: int) -> Shown:
        """As `Pictures.shown`, kept for the next time."""
        key = source, number, width
        with self._lock:
            found = self._kept.get(key)
            if found is not None:
                self._kept.move_to_end(key)
                self.hits += 1
                return found
            self.misses += 1
        made = pictures.shown(number, width)
        with self._lock:
            if key not in self._kept and len(made.data) <= self.budget:
                self._kept[key] = made
                self.bytes += len(made.data)
                while self.bytes > self.budget:
                    self.bytes -= len(self._kept.popitem(last=False)[1].data)
        return made
