"""Which images are the same, and the vectors by which images are compared."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from truepair.audit.duplicates.captions import digest, numbered
from truepair.audit.scoring.row_ranges import row_ranges, vectors_at
from truepair.data.collection import Collection, EmbeddingCollection, PairsCollection
from truepair.data.pairs import Array, IntArray
from truepair.data.repeats import bytes_digest
from truepair.phrases import printable

Read = Callable[[int, int], Array]
SIDE = 16
NEAR_PICTURES, NEAR_FEATURES, NEAR_EMBEDDINGS = 0.995, 0.995, 0.97
SAMPLE, SAMPLE_NUMBERS = 4096, 1 << 24


@dataclass(frozen=True)
class ImageVectors:
    """Unit vectors of images, whatever they are described by.

    Attributes:
        at: the raw vectors, (n, D) float32, of the images of ascending rows of the collection.
        mean, scale: (D,) what is taken away from the raw vectors, and what they are multiplied by.
        near: cosine from which two images are all but the same.
    """

    at: Callable[[IntArray], Array]
    mean: Array
    scale: Array
    near: float

    def unit(self, rows: IntArray) -> Array:
        """(n, D) float32 of length 1; 0 where an image is the mean image, or its vector is not finite."""
        with np.errstate(over="ignore", invalid="ignore"):
            vectors = (self.at(rows) - self.mean) * self.scale
            lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
        vectors[~np.isfinite(lengths[:, 0])] = 0
        unit: Array = vectors / np.maximum(np.nan_to_num(lengths, posinf=1), 1e-12)
        return unit

    @property
    def block(self) -> int:
        """Images whose vectors take 64 MB together, at most 1024."""
        return int(np.clip((1 << 24) // len(self.mean), 16, 1024))


def image_classes(collection: Collection, rows: IntArray, read: Read | None) -> tuple[IntArray, IntArray] | None:
    """Two class numbers for every pair, (M,) each: of what its image holds, byte for byte, and of which image it is.

    Features are compared where the collection has them, else the vectors that `read` gives. None without either.
    """
    if isinstance(collection, PairsCollection):
        used, index = np.unique(collection.pairs.image_index[rows], return_inverse=True)
        features = collection.pairs.images.features
        held = np.array([bytes_digest(features[image]) for image in used], dtype=np.uint64)
        return numbered(held)[index], np.asarray(index, dtype=np.int64)
    if read is None:
        return None
    names = np.empty(len(rows), dtype=np.uint64)
    for piece, start, stop in row_ranges(rows):
        called = collection.image_names(start, stop)
        names[piece] = [digest(printable(called[row - start])) for row in rows[piece]]
    return vector_classes(read, rows), numbered(names)


def vector_classes(read: Read, rows: IntArray) -> IntArray:
    """(M,) a number for each different vector, byte for byte."""
    held = np.empty(len(rows), dtype=np.uint64)
    for piece, start, stop in row_ranges(rows):
        vectors = read(start, stop)
        held[piece] = [bytes_digest(vectors[row - start]) for row in rows[piece]]
    return numbered(held)


def vectors_of_images(
    collection: Collection, rows: IntArray, read: Read | None, near: float | None
) -> ImageVectors | None:
    """How images are compared: by 16 × 16 pixels where they are in memory, else by `read`, else by their features.

    Pixels are centred; features and embeddings are centred and brought to spread one in each dimension. Mean and spread
    are those of up to 4096 of the rows.
    """
    if isinstance(collection, PairsCollection):
        images, index = collection.pairs.images, collection.pairs.image_index
        if images.pictures is not None:
            pictures = images.pictures
            return prepared(lambda at: thumbnails(pictures, index[at]), rows, near or NEAR_PICTURES, spread=False)
        held, near = images.features, near or NEAR_FEATURES
        return prepared(lambda at: held[index[at]].reshape(len(at), -1).astype(np.float32), rows, near)
    if read is None:
        return None
    return prepared(lambda at: vectors_at(read, at), rows, near or NEAR_EMBEDDINGS)


def own_reader(collection: Collection, side: int) -> Read | None:
    """The images (side 0) or texts (side 1) of a collection of embeddings; None for another."""
    if not isinstance(collection, EmbeddingCollection):
        return None
    return lambda start, stop: collection.read_side(side, start, stop)


def prepared(at: Callable[[IntArray], Array], rows: IntArray, near: float, *, spread: bool = True) -> ImageVectors:
    count = min(len(rows), SAMPLE, max(2, SAMPLE_NUMBERS // at(rows[:1]).shape[1]))
    sample = at(rows[np.linspace(0, len(rows) - 1, count).astype(np.int64)])
    sample = sample[(np.abs(sample) < 1e18).all(axis=1)]
    mean: Array = sample.mean(axis=0) if len(sample) else np.zeros(sample.shape[1], dtype=np.float32)
    scale = np.ones_like(mean)
    if spread and len(sample):
        deviation = sample.std(axis=0)
        # Dimensions that hardly vary (the position in the grid) say nothing; dividing by their spread would make noise.
        scale = np.where(deviation > 1e-3 * deviation.max(), 1 / np.maximum(deviation, 1e-30), 0).astype(np.float32)
    return ImageVectors(at, mean, scale, near)


def thumbnails(pictures: Array, index: IntArray) -> Array:
    """(n, 16 · 16 · 3) float32: the mean colours of a grid. Saving again or at another size hardly changes them."""
    from PIL import Image

    small = [Image.fromarray(pictures[image]).resize((SIDE, SIDE), Image.Resampling.BOX) for image in index]
    return np.stack([np.asarray(picture, dtype=np.float32).reshape(-1) for picture in small])
