"""`CosineEngine`: one L2-normalised vector an item, compared by cosine; how items are encoded is the subclass's own."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import normalize

from truepair.engines.features import Features
from truepair.engines.similarity import SingleViewEngine


class CosineEngine(SingleViewEngine[Tensor]):
    """Encodings are L2-normalised vectors (n, D); similarity is their cosine, in [−1, 1].

    Attributes:
        vector_width: D.
    """

    vector_width: int

    def represent_images(self, features: Features) -> Tensor:
        return features.vectors

    represent_texts = represent_images

    def scores(self, images: Tensor, texts: Tensor) -> Tensor:
        # Never in bf16: its steps of 1/256 near 1, divided by a temperature of 0.05, would blur the probabilities.
        with torch.autocast(images.device.type, enabled=False):
            return images @ texts.T

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
        return texts.shape[0] * texts.element_size()


def unit_vectors(pooled: Tensor) -> Tensor:
    """L2-normalised rows, in float32 where mixed precision pooled them in less."""
    return normalize(pooled.float() if pooled.dtype in (torch.bfloat16, torch.float16) else pooled, dim=1)
