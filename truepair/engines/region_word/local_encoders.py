"""Regions → unit vectors and words → unit vectors, as SGRAF does it.

Shape letters: B items, R regions, W words, T words of all captions together, F feature width, D embedding width.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from truepair.data.batch import ImageBatch, TextBatch
from truepair.engines.encoders import WordEncoder
from truepair.engines.gru import read_both_ways
from truepair.engines.pooling import element_mask
from truepair.engines.region_word.self_attention import xavier_linear
from truepair.engines.unit import unit


class LinearRegionEncoder(nn.Module):
    """Region features (B, R, F) → (B, R, D): a linear map, L2-normalised; zero beyond an image's length."""

    def __init__(self, feature_width: int, width: int) -> None:
        super().__init__()
        self.linear = xavier_linear(feature_width, width)

    def forward(self, images: ImageBatch) -> Tensor:
        features, lengths = images.features, images.lengths
        vectors = unit(self.linear(features).to(self.linear.weight.dtype))
        longest = features.shape[1]
        if not bool((lengths < longest).any()):
            return vectors
        return vectors.masked_fill(~element_mask(lengths, longest, features.device)[..., None], 0.0)


class DroppingWordEncoder(WordEncoder):
    """Word ids (B, W) → (B, W, D): embedding, dropout, Bi-GRU whose directions are averaged, L2-normalised."""

    def __init__(self, vocabulary_size: int, width: int, word_width: int, dropout: float) -> None:
        super().__init__(vocabulary_size, width, word_width)
        self.dropout = nn.Dropout(dropout)

    def forward(self, texts: TextBatch) -> Tensor:
        vectors, words = self.embed.weight, texts.words
        if self.training and self.dropout.p > 0:
            # Every occurrence of a word is dropped anew, so every place of the batch becomes a word of its own.
            vectors = self.dropout(self.embed(words.flatten()))
            words = torch.arange(words.numel(), device=words.device).view_as(words)
        # Mixed precision reads in half precision; vectors are compared in the parameters' own.
        return unit(read_both_ways(self.read, vectors, words, texts.lengths).to(self.embed.weight.dtype))
