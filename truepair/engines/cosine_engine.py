"""`CosineEngine`: one L2-normalised vector an item, compared by cosine; how items are encoded is the subclass's own."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import normalize

from truepair.engines.features import Features
from truepair.engines.similarity import SingleViewEngine
from truepair.engines.similarity_head import SimilarityHead


class CosineEngine(SingleViewEngine[Tensor]):
    """Encodings are L2-normalised vectors (n, D); similarity is their cosine, in [−1, 1].

    With a similarity head (`use_head`), whose vectors are √D (v − t)², scores are its logits and similarity their σ. It
    starts as about σ(4 cos): with one drawn at random the hinge of a network that learns its features from scratch is
    smallest where all scores are the same, and there it stays.

    Attributes:
        vector_width: D.
    """

    vector_width: int

    def __init__(self) -> None:
        super().__init__()
        self.head: SimilarityHead | None = None

    def use_head(self, width: int) -> None:
        self.head = SimilarityHead(self.vector_width, width)
        self.head.start_from_distance(largest=4.0, steepness=2.0)

    @property
    def similarity_head(self) -> SimilarityHead:
        assert self.head is not None
        return self.head

    def represent_images(self, features: Features) -> Tensor:
        return features.vectors

    represent_texts = represent_images

    def scores(self, images: Tensor, texts: Tensor) -> Tensor:
        # Never in bf16: its steps of 1/256 near 1, divided by a temperature of 0.05, would blur the probabilities.
        with torch.autocast(images.device.type, enabled=False):
            if self.head is None:
                return images @ texts.T
            return self.head.of_distances(images, texts)

    def as_similarity(self, scores: Tensor) -> Tensor:
        return scores if self.head is None else torch.sigmoid(scores)

    def as_ranking(self, scores: Tensor) -> Tensor:
        return scores if self.head is None else torch.tanh(scores)

    def image_scores(self, images: Tensor) -> Tensor:
        return self.scores(images, images)

    def text_scores(self, texts: Tensor) -> Tensor:
        return self.scores(texts, texts)

    def vectors(self, encoded: Tensor) -> Tensor:
        return encoded

    @property
    def exact_vectors(self) -> bool:
        return True

    def concatenate(self, parts: list[Tensor]) -> Tensor:
        return torch.cat(parts)

    def select(self, encoded: Tensor, rows: slice | Tensor) -> Tensor:
        return encoded[rows]

    def cell_bytes(self, images: Tensor, texts: Tensor) -> int:
        cell = 1 if self.head is None else 3 * self.head.hidden.out_features
        return texts.shape[0] * texts.element_size() * cell


def unit_vectors(pooled: Tensor) -> Tensor:
    """L2-normalised rows, in float32 where mixed precision pooled them in less."""
    return normalize(pooled.float() if pooled.dtype in (torch.bfloat16, torch.float16) else pooled, dim=1)
