"""Regions → vectors and words → vectors, as VSE∞ does it.

Shape letters: B items, R regions, W words, F feature width, D embedding width.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from truepair.data.batch import ImageBatch, TextBatch
from truepair.engines.gru import read_both_ways
from truepair.engines.pooling import element_mask


class RegionEncoder(nn.Module):
    """Region features (B, R, F) → (B, R, D): a linear map plus a residual two-layer MLP (VSE∞).

    Batch normalisation inside the MLP sees the regions that exist and no padding, so that a result does not depend on
    how long the longest image of the batch is (the released code normalises over padded rows as well).
    """

    def __init__(self, feature_width: int, width: int) -> None:
        super().__init__()
        hidden = max(width // 2, 1)
        self.linear = nn.Linear(feature_width, width)
        self.expand = nn.Linear(feature_width, hidden)
        self.norm = nn.BatchNorm1d(hidden)
        self.contract = nn.Linear(hidden, width)
        nn.init.xavier_uniform_(self.linear.weight)
        nn.init.zeros_(self.linear.bias)

    def forward(self, images: ImageBatch) -> Tensor:
        features, lengths = images.features, images.lengths
        count, longest, _ = features.shape
        if not bool((lengths < longest).any()):
            return self.encode_rows(features.flatten(0, 1)).view(count, longest, -1)
        present = element_mask(lengths, longest, features.device).flatten().nonzero().squeeze(1)
        rows = self.encode_rows(features.flatten(0, 1)[present])
        padded = rows.new_zeros(count * longest, rows.shape[1])
        return padded.index_copy(0, present, rows).view(count, longest, -1)

    def encode_rows(self, rows: Tensor) -> Tensor:
        """(n, F) → (n, D), one row a region."""
        encoded: Tensor = self.linear(rows) + self.contract(torch.relu(self.norm(self.expand(rows))))
        return encoded


class WordEncoder(nn.Module):
    """Word ids (B, W) → (B, W, D): embedding, then a Bi-GRU whose two directions are averaged."""

    def __init__(self, vocabulary_size: int, width: int, word_width: int = 300) -> None:
        super().__init__()
        self.embed = nn.Embedding(vocabulary_size, word_width)
        self.read = nn.GRU(word_width, width, batch_first=True, bidirectional=True)
        nn.init.uniform_(self.embed.weight, -0.1, 0.1)

    def forward(self, texts: TextBatch) -> Tensor:
        return read_both_ways(self.read, self.embed.weight, texts.words, texts.lengths)
