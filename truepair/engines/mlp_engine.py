"""The engine of MRL and UOT-RCL: three fully connected layers a side on one vector an item, cosine.

Shape letters: n items, R regions, F feature width, H hidden width, D width of the encodings.
Source: "Learning Cross-Modal Retrieval with Noisy Labels" (MRL), section 3.4; UOT-RCL, section V-B.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from torch import Tensor, nn

from truepair.data.batch import ImageBatch, TextBatch
from truepair.engines.cosine_engine import CosineEngine, unit_vectors
from truepair.engines.features import Features
from truepair.engines.input_vectors import region_vectors, word_vectors
from truepair.engines.pooling import element_mask

if TYPE_CHECKING:
    from truepair.engines.config import MLPConfig

SMALLEST_VARIANCE = 1e-8  # topic shares and visual words have variances of 1e-5, which torch's 1e-5 would drown


class MLPEngine(CosineEngine):
    """Encodings are L2-normalised vectors (n, D); similarity is their cosine, in [−1, 1].

    An image's regions become one vector first, their mean or one after the other. A text is its own vector where the
    source has vectors, else the bag of its words, whose first layer is then one vector a word.

    Decided: input vectors are standardised by a batch norm without scale and shift, since sources differ in size by
    orders of magnitude.

    Args:
        feature_width, regions: F of the region features, and R, the most an image has.
        vocabulary_size: number of word ids.
        text_width: width of the text vectors; 0 where texts are words.
        config: sizes.
    """

    def __init__(
        self, feature_width: int, regions: int, vocabulary_size: int, text_width: int, config: MLPConfig
    ) -> None:
        super().__init__()
        self.vector_width, self.vocabulary_size = config.width, vocabulary_size
        self.image_sizes = (feature_width, regions, config)
        self.regions = self.new_region_encoder()
        first = FirstLayer(text_width, config.hidden_width) if text_width else BagOfWords(vocabulary_size, config)
        self.texts = nn.Sequential(first, *later_layers(config))

    def new_region_encoder(self) -> nn.Module:
        feature_width, regions, config = self.image_sizes
        joined = config.regions == "joined"
        first = FirstLayer(feature_width * (regions if joined else 1), config.hidden_width)
        return nn.Sequential(JoinedRegions(regions) if joined else MeanRegion(), first, *later_layers(config))

    def image_features(self, images: ImageBatch, regions: nn.Module | None = None) -> Features:
        return Features(unit_vectors((regions or self.regions)(images)))

    def input_vectors(self, images: ImageBatch, texts: TextBatch) -> tuple[list[Tensor], list[Tensor]]:
        return region_vectors(images), word_vectors(texts, self.vocabulary_size)

    def text_features(self, texts: TextBatch) -> Features:
        return Features(unit_vectors(self.texts(texts if texts.vectors is None else texts.vectors)))


class MeanRegion(nn.Module):
    """(n, R, F) → (n, F): the mean of the regions an image has."""

    def forward(self, images: ImageBatch) -> Tensor:
        return images.features.sum(dim=1) / images.lengths.to(images.features)[:, None]


class JoinedRegions(nn.Module):
    """(n, R, F) → (n, R·F): one after the other; regions an image lacks are zero."""

    def __init__(self, regions: int) -> None:
        super().__init__()
        self.regions = regions

    def forward(self, images: ImageBatch) -> Tensor:
        missing = self.regions - images.features.shape[1]
        return nn.functional.pad(images.features, (0, 0, 0, missing)).flatten(start_dim=1)


class FirstLayer(nn.Module):
    """(n, F) → (n, H): standardised and mapped."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.standardise = nn.BatchNorm1d(inputs, eps=SMALLEST_VARIANCE, affine=False)
        self.linear = nn.Linear(inputs, outputs)

    def forward(self, vectors: Tensor) -> Tensor:
        mapped: Tensor = self.linear(self.standardise(vectors))
        return mapped


class BagOfWords(nn.Module):
    """Word ids → (n, H): the mean of one vector a word."""

    def __init__(self, words: int, config: MLPConfig) -> None:
        super().__init__()
        self.vectors = nn.Embedding(words, config.hidden_width)

    def forward(self, texts: TextBatch) -> Tensor:
        mask = element_mask(texts.lengths, texts.words.shape[1], texts.words.device)
        words: Tensor = self.vectors(texts.words)
        return (words * mask[..., None]).sum(dim=1) / texts.lengths.to(words)[:, None]


def later_layers(config: MLPConfig) -> list[nn.Module]:
    """The second and the third layer, each after a ReLU."""
    hidden = config.hidden_width
    return [nn.ReLU(), nn.Linear(hidden, hidden), nn.ReLU(), nn.Linear(hidden, config.width)]
