"""`EnsembleEngine`: several networks that answer together."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from truepair.engines.similarity import ScoringEngine, SimilarityEngine

Encodings = tuple[Any, ...]


class EnsembleEngine(SimilarityEngine[Encodings]):
    """Networks with parameters of their own over the same words and features; similarity is the mean of theirs.

    Encodings are tuples, one entry a network. (Dual networks A and B of GSC.)
    """

    def __init__(self, members: list[ScoringEngine[Any]]) -> None:
        super().__init__()
        self.members = nn.ModuleList(members)

    def networks(self) -> list[ScoringEngine[Any]]:
        return list(self.members)  # type: ignore[arg-type]

    def encode_images(self, images: Any) -> Encodings:
        return tuple(member.encode_images(images) for member in self.networks())

    def encode_texts(self, texts: Any) -> Encodings:
        return tuple(member.encode_texts(texts) for member in self.networks())

    def similarity(self, images: Encodings, texts: Encodings) -> Tensor:
        each = [
            member.similarity(image, text).float()
            for member, image, text in zip(self.networks(), images, texts, strict=True)
        ]
        return torch.stack(each).mean(dim=0)

    @property
    def exact_vectors(self) -> bool:
        return all(member.exact_vectors for member in self.networks())

    def image_vectors(self, images: Encodings) -> Tensor:
        """Those of all members one after the other, scaled: inner products are the means of the members'."""
        both = zip(self.networks(), images, strict=True)
        return torch.cat([member.image_vectors(part) for member, part in both], dim=1).mul(len(images) ** -0.5)

    def text_vectors(self, texts: Encodings) -> Tensor:
        both = zip(self.networks(), texts, strict=True)
        return torch.cat([member.text_vectors(part) for member, part in both], dim=1).mul(len(texts) ** -0.5)

    def concatenate(self, parts: list[Encodings]) -> Encodings:
        return tuple(
            member.concatenate([part[index] for part in parts]) for index, member in enumerate(self.networks())
        )

    def select(self, encoded: Encodings, rows: slice | Tensor) -> Encodings:
        return tuple(member.select(part, rows) for member, part in zip(self.networks(), encoded, strict=True))

    def cell_bytes(self, images: Encodings, texts: Encodings) -> int:
        return sum(
            member.cell_bytes(image, text) for member, image, text in zip(self.networks(), images, texts, strict=True)
        )
