"""The global similarity engine of VSE∞: one vector a picture, one vector a caption, cosine."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn.functional import normalize

from truepair.data.batch import ImageBatch, TextBatch
from truepair.models.config import GlobalConfig
from truepair.models.encoders import RegionEncoder, WordEncoder
from truepair.models.features import Features
from truepair.models.pooling import POOLINGS
from truepair.models.similarity import SingleViewEngine


class GlobalEngine(SingleViewEngine[Tensor]):
    """Encodings are L2-normalised vectors (n, D); similarity is their cosine, in [−1, 1].

    Args:
        feature_width: F of the region features.
        vocabulary_size: number of word ids.
        config: sizes and pooling.
    """

    def __init__(self, feature_width: int, vocabulary_size: int, config: GlobalConfig) -> None:
        super().__init__()
        self.region_sizes = (feature_width, config.width)
        self.regions = self.new_region_encoder()
        self.pool_regions = POOLINGS[config.pooling]()
        self.words = WordEncoder(vocabulary_size, config.width, config.word_width)
        self.pool_words = POOLINGS[config.pooling]()

    def new_region_encoder(self) -> nn.Module:
        return RegionEncoder(*self.region_sizes)

    def image_features(self, images: ImageBatch, regions: nn.Module | None = None) -> Features:
        return Features(unit_vectors(self.pool_regions((regions or self.regions)(images), images.lengths)))

    def text_features(self, texts: TextBatch) -> Features:
        return Features(unit_vectors(self.pool_words(self.words(texts), texts.lengths)))

    def represent_images(self, features: Features) -> Tensor:
        return features.vectors

    def represent_texts(self, features: Features) -> Tensor:
        return features.vectors

    def scores(self, images: Tensor, texts: Tensor) -> Tensor:
        # Never in bf16: its steps of 1/256 near 1, divided by a temperature of 0.05, would blur the probabilities.
        with torch.autocast(images.device.type, enabled=False):
            return images @ texts.T

    def image_scores(self, images: Tensor) -> Tensor:
        return self.scores(images, images)

    def text_scores(self, texts: Tensor) -> Tensor:
        return self.scores(texts, texts)

    def concatenate(self, parts: list[Tensor]) -> Tensor:
        return torch.cat(parts)

    def select(self, encoded: Tensor, rows: slice | Tensor) -> Tensor:
        return encoded[rows]

    def cell_bytes(self, images: Tensor, texts: Tensor) -> int:
        return texts.shape[0] * texts.element_size()


def unit_vectors(pooled: Tensor) -> Tensor:
    """L2-normalised rows, in float32 where mixed precision pooled them in less."""
    return normalize(pooled.float() if pooled.dtype in (torch.bfloat16, torch.float16) else pooled, dim=1)
