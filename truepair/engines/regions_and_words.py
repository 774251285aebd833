"""The preparation of all engines here that train from scratch: region features of an image, word ids of a caption.

One vector an image counts as one region. Texts may be vectors instead of words, for engines that take them. In training
some regions are dropped and some words altered (`truepair.data.augment`). Features that are far smaller or larger than
1, such as vectors of length one with hundreds of entries, are brought to a root mean square of 1: from the first layer
on, engines and learning rates are made for such.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from truepair.data.augment import alter_words, drop_regions
from truepair.data.batch import ImageBatch, TextBatch, pad_words
from truepair.data.config import Augmentation
from truepair.data.pairs import Images, IntArray, Pairs, Texts
from truepair.data.preparation import Preparation
from truepair.data.text import SPECIALS, Vocabulary
from truepair.errors import InputError
from truepair.files import options_from

VOCABULARY = "vocabulary.json"
LEAST_SIZE, LARGEST_SIZE = 0.1, 10.0
"""Root mean squares of features between which they are read as they are."""
SAMPLE = 200
"""Images that say how large features are."""


@dataclass(frozen=True)
class InputSizes:
    """What an engine of regions and words is built for.

    Attributes:
        feature_width: F of the region features.
        regions: R, the most regions an image has; 0 where a released model does not say.
        vocabulary_size: number of word ids.
        text_width: width of the text vectors; 0 where texts are words.
        encoder: the identity of what made the features of pictures; None where nobody knows.
        feature_scale: what region features are multiplied by; None: nothing.
    """

    feature_width: int
    regions: int
    vocabulary_size: int
    text_width: int = 0
    encoder: str | None = None
    feature_scale: float | None = None

    def described(self) -> dict[str, Any]:
        """The same for files, without what is None."""
        return {name: value for name, value in asdict(self).items() if value is not None}


class RegionsAndWords(Preparation):
    """Batches are `ImageBatch` and `TextBatch`.

    Args:
        vocabulary: word → id.
        sizes: of the training pairs.
        augmentation: how training batches are altered.
        positions: the engine knows regions by their place, and no more places than it was trained with.
    """

    def __init__(
        self, vocabulary: Vocabulary, sizes: InputSizes, augmentation: Augmentation, *, positions: bool = False
    ) -> None:
        self.vocabulary, self.sizes, self.augmentation, self.positions = vocabulary, sizes, augmentation, positions
        self._kept: tuple[Texts | None, list[list[int]]] = None, []

    @property
    def embedded_words(self) -> Vocabulary | None:
        return None if self.sizes.text_width else self.vocabulary

    @classmethod
    def of(
        cls,
        pairs: Pairs,
        augmentation: Augmentation,
        vocabulary: Vocabulary | None,
        minimum_count: int,
        *,
        positions: bool,
        scaled: bool,
    ) -> RegionsAndWords:
        """That of training pairs; without a vocabulary one is made of their captions, unless texts are vectors.

        Args:
            scaled: features that are far from 1 are brought there.
        """
        if vocabulary is not None and pairs.texts.features is not None:
            raise InputError(f"--vocabulary: the texts of {pairs.name} are vectors and have no words; leave it out")
        if pairs.texts.features is not None:
            vocabulary = Vocabulary(SPECIALS)
        elif vocabulary is None:
            vocabulary = Vocabulary.build(pairs.captions(), minimum_count=minimum_count)
        images = pairs.images
        sizes = InputSizes(
            images.feature_width,
            images.regions,
            len(vocabulary),
            pairs.texts.feature_width,
            images.encoder,
            scale_of(images) if scaled else None,
        )
        return cls(vocabulary, sizes, augmentation, positions=positions)

    @classmethod
    def read(cls, described: dict[str, Any], folder: Path, *, positions: bool) -> RegionsAndWords:
        """That of a saved model, whose words lie beside it. Raises InputError: they are those of another model."""
        vocabulary = Vocabulary.read(folder / VOCABULARY)
        sizes = {name: value for name, value in described.items() if name != "words"}
        if described["words"] != vocabulary.digest:
            raise InputError(
                f"{folder}: its model was made for another vocabulary than the {VOCABULARY} beside it; put back its own"
            )
        return cls(vocabulary, options_from(InputSizes, sizes, f"{folder}: sizes"), Augmentation(), positions=positions)

    def images(self, images: Images, rows: IntArray, rng: np.random.Generator | None = None) -> ImageBatch:
        features = np.asarray(images.features[rows], dtype=np.float32)
        features = features[:, None, :] if features.ndim == 2 else features
        if self.sizes.feature_scale is not None:
            features = features * np.float32(self.sizes.feature_scale)
        if rng is not None:
            return drop_regions(features, share=self.augmentation.region_share, rng=rng)
        lengths = torch.full((len(features),), features.shape[1], dtype=torch.int64)
        return ImageBatch(torch.from_numpy(features), lengths)

    def texts(self, texts: Texts, rows: IntArray, rng: np.random.Generator | None = None) -> TextBatch:
        kept, encoded = self._kept
        words = [encoded[row] if kept is texts else self.vocabulary.encode(texts.captions[row]) for row in rows]
        if texts.features is not None:
            vectors = torch.from_numpy(np.asarray(texts.features[rows], dtype=np.float32))
            return pad_words(words, vectors)
        if rng is not None:
            share = self.augmentation.word_share
            words = [alter_words(caption, self.vocabulary, share=share, rng=rng) for caption in words]
        return pad_words(words)

    def keep(self, texts: Texts) -> None:
        """Read the captions once."""
        if self._kept[0] is not texts:
            self._kept = texts, [self.vocabulary.encode(caption) for caption in texts.captions]

    def check(self, pairs: Pairs) -> None:
        sizes = self.sizes
        if pairs.texts.feature_width != sizes.text_width:
            given, taken = (
                f"vectors of width {width}" if width else "words"
                for width in (pairs.texts.feature_width, sizes.text_width)
            )
            raise InputError(f"{pairs.name}: texts are {given}, this model takes {taken}; use data made the same way")
        encoders = pairs.images.encoder, sizes.encoder
        if None not in encoders and encoders[0] != encoders[1]:
            raise InputError(
                f"{pairs.name}: its pictures are described by the encoder {encoders[0]}, this model was trained on "
                f"those of {encoders[1]}; give the run's encoder (--encoder), in the version it was trained with"
            )
        if pairs.images.feature_width != sizes.feature_width:
            raise InputError(
                f"{pairs.name}: features are {pairs.images.feature_width} wide, this model takes "
                f"{sizes.feature_width}; use features made the same way as those it is trained on"
            )
        if self.positions and pairs.images.regions > sizes.regions:
            raise InputError(
                f"{pairs.name}: images have up to {pairs.images.regions} regions, those of training {sizes.regions}; "
                f"this engine knows no more positions than it was trained with: keep at most {sizes.regions} regions "
                "an image"
            )

    def record(self) -> dict[str, Any]:
        scale = self.sizes.feature_scale
        scaled = {} if scale is None else {"feature_scale": scale}
        return {"vocabulary": self.vocabulary.digest, "augmentation": asdict(self.augmentation), **scaled}

    def described(self) -> dict[str, Any]:
        return {**self.sizes.described(), "words": self.vocabulary.digest}

    def write(self, folder: Path) -> None:
        self.vocabulary.write(folder / VOCABULARY)


def scale_of(images: Images) -> float | None:
    """What brings features to a root mean square of 1, by a sample of the images; None where they are near it.

    Regions that are all zero stand for none and do not count.
    """
    rows = np.unique(np.linspace(0, len(images) - 1, min(len(images), SAMPLE)).astype(np.int64))
    regions = np.asarray(images.features[rows], dtype=np.float64).reshape(-1, images.feature_width)
    regions = regions[regions.any(axis=1)]
    size = float(np.sqrt(np.square(regions).mean())) if len(regions) else 0.0
    known = math.isfinite(size) and size > 0  # training refuses what is not finite
    return 1 / size if known and not LEAST_SIZE <= size <= LARGEST_SIZE else None
