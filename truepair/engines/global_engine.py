"""The global similarity engine of VSE∞: one vector a picture, one vector a caption, cosine."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torch import Tensor, nn

from truepair.data.batch import ImageBatch, TextBatch
from truepair.engines.cosine_engine import CosineEngine, unit_vectors
from truepair.engines.encoders import RegionEncoder, WordEncoder
from truepair.engines.features import Features
from truepair.engines.input_vectors import region_vectors, word_vectors
from truepair.engines.pooling import POOLINGS

if TYPE_CHECKING:
    from truepair.engines.config import GlobalConfig


class GlobalEngine(CosineEngine):
    """Encodings are L2-normalised vectors (n, D); similarity is their cosine, in [−1, 1].

    Args:
        feature_width: F of the region features.
        vocabulary_size: number of word ids.
        config: sizes and pooling.
    """

    def __init__(self, feature_width: int, vocabulary_size: int, config: GlobalConfig) -> None:
        super().__init__()
        self.vector_width, self.vocabulary_size = config.width, vocabulary_size
        self.region_sizes = (feature_width, config.width)
        self.regions = self.new_region_encoder()
        self.pool_regions = POOLINGS[config.pooling]()
        self.words = WordEncoder(vocabulary_size, config.width, config.word_width)
        self.pool_words = POOLINGS[config.pooling]()

    def new_region_encoder(self) -> nn.Module:
        return RegionEncoder(*self.region_sizes)

    def image_features(self, images: ImageBatch, regions: nn.Module | None = None) -> Features:
        return Features(unit_vectors(self.pool_regions((regions or self.regions)(images), images.lengths)))

    def input_vectors(self, images: ImageBatch, texts: TextBatch) -> tuple[list[Tensor], list[Tensor]]:
        return region_vectors(images), word_vectors(texts, self.vocabulary_size)

    def text_features(self, texts: TextBatch) -> Features:
        return Features(unit_vectors(self.pool_words(self.words(texts), texts.lengths)))
