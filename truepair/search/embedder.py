"""`Embedder`: what makes vectors of images and captions, and may compare a few of them more closely."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

import numpy as np

from truepair.data.pairs import Array, Images, IntArray, Pairs, Texts
from truepair.data.pictures.frozen_vectors import image_vectors, text_vectors
from truepair.encoders import ENCODERS, encoder_of
from truepair.encoders.encoder import Encoder, ImageTextEncoder, Picture
from truepair.errors import InputError
from truepair.search.vectors import Floats


class Embedder(ABC):
    """Makes unit vectors of both sides, whose inner products are the similarities or stand in for them.

    Attributes:
        exact: the inner product is the similarity; else the first hits are to be compared by `similarities`.
        reads_words: whether any words can be asked for; else only captions of the data, which have vectors.
        computes: whether vectors are made when they are asked for, so that they are worth keeping; else they are given,
            or in the cache already.
    """

    exact: bool = True
    reads_words: bool = True
    computes: bool = True

    @abstractmethod
    def digest(self) -> str:
        """A short hash of everything that decides the vectors: an index of another one is told by it."""

    @abstractmethod
    def images(self, images: Images, rows: IntArray) -> Floats:
        """(n, D) unit vectors of some images."""

    @abstractmethod
    def texts(self, texts: Texts, rows: IntArray) -> Floats:
        """(n, D) unit vectors of some captions."""

    @abstractmethod
    def picture(self, picture: Picture, like: Images) -> Images:
        """A picture from outside as the one image of some that can be read as those of the data.

        Raises:
            InputError: it is no picture, or those of the data were described by something that is not here.
        """

    def similarities(self, images: Images, image_rows: IntArray, texts: Texts, text_rows: IntArray) -> Floats:
        """(n, m) similarities as the model gives them."""
        return np.asarray(self.images(images, image_rows) @ self.texts(texts, text_rows).T, dtype=np.float32)


def unit(vectors: Array) -> Floats:
    """Rows of length one, float32; rows of zeros stay."""
    wide = np.asarray(vectors, dtype=np.float32)
    lengths = np.linalg.norm(wide, axis=1, keepdims=True)
    return np.asarray(wide / np.where(lengths > 0, lengths, 1), dtype=np.float32)


def encoder_by_identity(identity: str | None, like: Images) -> Encoder:
    """The built-in encoder that described some pictures.

    Raises:
        InputError: it is none of them, so that its name must be given; or the images have features from elsewhere.
    """
    if identity is None:
        raise InputError(
            f"these {len(like):,} images came as features, and nobody knows what made them: a picture cannot be "
            "compared with them. Pick one of the data instead"
        )
    for name in ENCODERS:
        try:
            made = encoder_of(name)
        except InputError:  # its extra is missing
            continue
        if made.identity() == identity:
            return made
    raise InputError(
        f"the pictures of the data were described by the encoder {identity}, which is not at hand in that version; "
        "install what it needs, or name its folder"
    )


def described(picture: Picture, encoder: Encoder) -> Images:
    """A picture as an image with the features of an encoder."""
    features = encoder.encode([encoder.prepare(picture)]).astype(np.float16)
    return Images(features, ("picture",), encoder=encoder.identity())


class EncoderEmbedder(Embedder):
    """A model of images and texts as it is (CLIP, SigLIP, …)."""

    computes = False

    def __init__(self, encoder: ImageTextEncoder) -> None:
        self.encoder = encoder
        self._whole: dict[str, tuple[Any, Array]] = {}

    def digest(self) -> str:
        return self.encoder.identity()

    def images(self, images: Images, rows: IntArray) -> Floats:
        return unit(self._computed("images", images, image_vectors)[rows])

    def texts(self, texts: Texts, rows: IntArray) -> Floats:
        return unit(self._computed("texts", texts, text_vectors)[rows])

    def picture(self, picture: Picture, like: Images) -> Images:
        return described(picture, self.encoder)

    def _computed(self, side: str, items: Any, compute: Callable[[Any, ImageTextEncoder], Array]) -> Array:
        """All vectors of a side at once, as a cache has them; those of the side asked for last are remembered."""
        if len(items) == 1:
            return compute(items, self.encoder)
        known = self._whole.get(side)
        if known is None or known[0] is not items:
            known = self._whole[side] = items, compute(items, self.encoder)
        return known[1]


class GivenVectors(Embedder):
    """Data that are vectors of one space already; what made them is not here."""

    reads_words = False
    computes = False

    def __init__(self, pairs: Pairs) -> None:
        if pairs.texts.features is None or pairs.images.features.ndim != 2:
            raise InputError(f"{pairs.name}: its captions have no vectors; there is nothing to search by")
        if pairs.images.feature_width != pairs.texts.feature_width:
            raise InputError(f"{pairs.name}: vectors of images and captions differ in width; they are of two spaces")
        self._name = pairs.name

    def digest(self) -> str:
        return f"vectors of {self._name}"

    def images(self, images: Images, rows: IntArray) -> Floats:
        return unit(images.features[rows])

    def texts(self, texts: Texts, rows: IntArray) -> Floats:
        if texts.features is None:
            raise InputError(
                f"{self._name} holds vectors without the model that made them: words have none here. Pick a caption or "
                "a picture of the data"
            )
        return unit(texts.features[rows])

    def picture(self, picture: Picture, like: Images) -> Images:
        raise InputError(
            f"{self._name} holds vectors without the model that made them: a picture from outside has none. Pick one "
            "of the data"
        )
