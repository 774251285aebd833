"""Images as people can tell them: their pixels where the source has them, else a name and a caption of their own."""

from __future__ import annotations

import io
from dataclasses import dataclass

import numpy as np

from truepair.data.pairs import Array, Images, Pairs
from truepair.pages.kit.page import data_source


@dataclass(frozen=True)
class Picture:
    """An image to show; `caption` is one that truly belongs to it, `source` the `src` of an `<img>` or None."""

    name: str
    source: str | None
    caption: str = ""


class Album:
    """The images of some pairs, ready to be shown, each with a caption that is truly its own."""

    def __init__(self, pairs: Pairs) -> None:
        self.pairs = pairs
        self.true_image = pairs.image_index if pairs.true_image is None else pairs.true_image
        owners, first = np.unique(self.true_image, return_index=True)
        self._first_own = dict(zip(owners.tolist(), pairs.text_index[first].tolist(), strict=True))

    def picture(self, image: int) -> Picture:
        images, own = self.pairs.images, self._first_own.get(image)
        pixels = images.picture(image)
        return Picture(
            images.ids[image],
            None if pixels is None else png_source(pixels),
            "(no caption)" if own is None else self.pairs.texts.captions[own],
        )


def pixels_of(images: Images | None, index: int, name: str) -> Array | None:
    """The pixels of an image; None where the source has none, or another image stands at its place by now."""
    if images is None or index >= len(images) or images.ids[index] != name:
        return None
    return images.picture(index)


def png_source(picture: Array) -> str:
    """A picture, (H, W, 3) uint8, as the `src` of an `<img>`."""
    from PIL import Image

    buffer = io.BytesIO()
    Image.fromarray(picture).save(buffer, "PNG", optimize=True)
    return data_source(buffer.getvalue())


def thumbnail(picture: Array, side: int) -> str:
    """A picture, (H, W, 3) uint8, as a small `src` of an `<img>`: as JPEG or PNG, whichever takes less.

    Args:
        side: pixels of the longer side at most.
    """
    from PIL import Image

    image = Image.fromarray(picture)
    image.thumbnail((side, side))
    files = {"jpeg": io.BytesIO(), "png": io.BytesIO()}
    image.save(files["jpeg"], "JPEG", quality=82)
    image.save(files["png"], "PNG")
    kind = min(files, key=lambda name: files[name].tell())
    return data_source(files[kind].getvalue(), kind)
