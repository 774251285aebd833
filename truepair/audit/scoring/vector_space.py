"""Pairs in a space of embeddings, compared with others block by block."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator

import numpy as np
import torch
from torch import Tensor

from truepair.audit.scoring.bank import Bank
from truepair.audit.scoring.indicators import scored_columns
from truepair.audit.scoring.scored_pairs import Offer
from truepair.data.pairs import Array, IntArray

COMPARED_AT_ONCE = 1024
MOST_COPIES = 3000
SAME_IMAGE = 1 - 1e-3


class VectorSpace(ABC):
    """A `Space` of unit vectors. All pairs are compared with its bank, which knows pairs by their rows, too."""

    bank: Bank

    @abstractmethod
    def vectors(self, rows: IntArray) -> tuple[Tensor, Tensor]:
        """Unit vectors of the images and texts of some pairs, (n, D) each; rows are ascending."""

    @abstractmethod
    def blocks(self) -> Iterator[tuple[IntArray, Tensor, Tensor]]:
        """(rows, images, texts) of all scored pairs, block by block, rows ascending."""

    def covers(self, rows: IntArray) -> IntArray:
        return np.sort(rows)

    def similarity(self, rows: IntArray) -> Tensor:
        images, texts = self.vectors(rows)
        return (images * texts).sum(dim=1)

    def paired(self, image_rows: IntArray, caption_rows: IntArray) -> Tensor:
        return (self.side(0, image_rows) * self.side(1, caption_rows)).sum(dim=1)

    def compared(self, image_rows: IntArray, caption_rows: IntArray) -> Tensor:
        return self.side(0, image_rows) @ self.side(1, caption_rows).T

    def side(self, side: int, rows: IntArray) -> Tensor:
        """(n, D) unit vectors of the images (0) or texts (1) of pairs in any order."""
        ascending, place = np.unique(rows, return_inverse=True)
        return self.vectors(ascending)[side][torch.from_numpy(place)]

    def offers(self, rows: IntArray) -> Iterator[Offer]:
        images, texts = self.vectors(rows)
        pieces = [slice(start, start + COMPARED_AT_ONCE) for start in range(0, len(rows), COMPARED_AT_ONCE)]
        for offered, block_images, block_texts in self.blocks():
            for piece in pieces:
                yield Offer("caption", piece, offered, images[piece] @ block_texts.T)
                yield Offer("image", piece, offered, texts[piece] @ block_images.T)

    def scores(self, image_rows: IntArray, caption_rows: IntArray) -> dict[str, Array]:
        """Similarity, log odds and indicators of the images of some pairs with the captions of others, (n,) each."""
        images, texts = self.side(0, image_rows), self.side(1, caption_rows)
        columns = scored_columns(images, texts, self.bank, image_rows, caption_rows)
        return {**columns, **self.by_words(image_rows, caption_rows)}

    def by_words(self, image_rows: IntArray, caption_rows: IntArray) -> dict[str, Array]:
        """Indicators that need no vectors but the captions' words; none where these are not at hand."""
        return {}

    def nearest_copies(self, rows: IntArray, rng: np.random.Generator) -> dict[str, Array]:
        """Scores of up to 3,000 of some pairs' images, each with a copy of the caption of the image most like it among
        these pairs. A copy: the bank may hold the pair that the caption is of.
        """
        images, texts = self.vectors(rows)
        chosen = np.sort(rng.permutation(len(rows))[:MOST_COPIES])
        nearest = [torch.empty(0, dtype=torch.int64)]
        for start in range(0, len(chosen) if len(rows) > 1 else 0, COMPARED_AT_ONCE):
            alike = images[torch.from_numpy(chosen[start : start + COMPARED_AT_ONCE])] @ images.T
            nearest.append(alike.masked_fill_(alike >= SAME_IMAGE, -torch.inf).argmax(dim=1))
        other = torch.cat(nearest)
        kept = torch.from_numpy(chosen[: len(other)])
        unrelated = (images[kept] * images[other]).sum(dim=1) < SAME_IMAGE
        kept, other = kept[unrelated], other[unrelated]
        asked = rows[kept.numpy()]
        columns = scored_columns(images[kept], texts[other], self.bank, asked, np.full_like(asked, -1))
        return {**columns, **self.by_words(asked, rows[other.numpy()])}
