"""`SimilarityEngine`: features → similarity; what every engine offers, and how a large matrix is computed in pieces."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Generic, TypeVar

import torch
from torch import Tensor, nn

from truepair.data.batch import ImageBatch, TextBatch

Encoded = TypeVar("Encoded")


class SimilarityEngine(nn.Module, ABC, Generic[Encoded]):
    """Encodes each side once, then scores any image against any text.

    A global engine encodes to one vector an item, a local one to padded vectors and lengths; `Encoded` is whatever the
    engine's own `similarity` takes.
    """

    @abstractmethod
    def encode_images(self, images: ImageBatch) -> Encoded:
        """Encodings of B images."""

    @abstractmethod
    def encode_texts(self, texts: TextBatch) -> Encoded:
        """Encodings of B texts."""

    @abstractmethod
    def similarity(self, images: Encoded, texts: Encoded) -> Tensor:
        """Similarity of every image to every text, (n, m), in the range the engine documents."""

    @abstractmethod
    def concatenate(self, parts: list[Encoded]) -> Encoded:
        """Encodings of several batches as one."""

    @abstractmethod
    def select(self, encoded: Encoded, rows: slice) -> Encoded:
        """The encodings of some items."""

    @abstractmethod
    def cell_bytes(self, images: Encoded, texts: Encoded) -> int:
        """Peak bytes that one image row of the similarity matrix costs while it is computed."""


@torch.inference_mode()
def similarity_blocks(
    engine: SimilarityEngine[Encoded], images: Encoded, count: int, texts: Encoded, *, memory_bytes: int = 256 << 20
) -> Iterator[Tensor]:
    """The (count, texts) similarity matrix in blocks of whole rows, one after the other.

    Args:
        engine: in evaluation mode.
        images, texts: encodings; `count` is the number of images.
        memory_bytes: budget of one block, working memory included; at least one row is computed at a time.
    """
    rows = max(1, memory_bytes // max(1, engine.cell_bytes(images, texts)))
    for start in range(0, count, rows):
        yield engine.similarity(engine.select(images, slice(start, min(start + rows, count))), texts)
