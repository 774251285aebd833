"""One batch of given pairs; and of regions and of word ids, with the only place that pads.

Shape letters: B pairs, R regions, D feature width, W words.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from truepair.data.preparation import Batch


@dataclass(frozen=True)
class ImageBatch:
    """Region features of B images: `features` (B, R, D) float32, `lengths` (B,) int64 in [1, R].

    Rows of `features` beyond an image's length are zero and must not influence any result.
    `lengths` always lives on the CPU: it is only ever used to lay out work.
    """

    features: Tensor
    lengths: Tensor

    def __len__(self) -> int:
        return int(self.features.shape[0])

    def to(self, device: torch.device) -> ImageBatch:
        return ImageBatch(self.features.to(device, non_blocking=True), self.lengths)


@dataclass(frozen=True)
class TextBatch:
    """Word ids of B captions: `words` (B, W) int64, padded with 0, `lengths` (B,) int64 in [1, W], on the CPU.

    `vectors` (B, D) float32 describe the texts where the source has vectors instead of words, else None.
    """

    words: Tensor
    lengths: Tensor
    vectors: Tensor | None = None

    def __len__(self) -> int:
        return int(self.words.shape[0])

    def to(self, device: torch.device) -> TextBatch:
        vectors = None if self.vectors is None else self.vectors.to(device, non_blocking=True)
        return TextBatch(self.words.to(device, non_blocking=True), self.lengths, vectors)


@dataclass(frozen=True)
class PairBatch:
    """B given pairs: pair i is item i of `images` and of `texts`; `ids` (B,) int64 are its keys in the memory.

    `labels` (B,) int64 are the classes of the pairs as given, None where they have none.
    """

    ids: Tensor
    images: Batch
    texts: Batch
    labels: Tensor | None = None

    def __len__(self) -> int:
        return int(self.ids.shape[0])

    def to(self, device: torch.device) -> PairBatch:
        labels = None if self.labels is None else self.labels.to(device, non_blocking=True)
        return PairBatch(self.ids, self.images.to(device), self.texts.to(device), labels)


def pad_words(items: list[list[int]], vectors: Tensor | None = None) -> TextBatch:
    """Stack captions of word ids into one zero-padded `TextBatch`, with the vectors that describe them if there are."""
    lengths = torch.tensor([len(item) for item in items], dtype=torch.int64)
    words = torch.zeros(len(items), int(lengths.max()), dtype=torch.int64)
    for row, item in enumerate(items):
        words[row, : len(item)] = torch.tensor(item, dtype=torch.int64)
    return TextBatch(words, lengths, vectors)
