"""Pairs in the space of one trained model: scored, compared with synthetic mismatches, rematched."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property

import numpy as np
import torch
from torch import Tensor

from truepair.audit.scoring.bank import Bank
from truepair.audit.scoring.other_captions import OtherCaptions
from truepair.audit.scoring.synthetic_mismatches import KINDS, NEAREST_IN_SPACE, mismatched_pairs, unit
from truepair.audit.scoring.vector_space import VectorSpace
from truepair.audit.scoring.vectors import Vectors, encode
from truepair.data.pairs import Array, IntArray, Pairs
from truepair.engines.retrieval_model import RetrievalModel
from truepair.seeding import generator

BLOCK = 8192
MOST_MISMATCHES = 20_000


class ModelSpace(VectorSpace):
    """The space of a model's vectors, and the pairs that it may score.

    Args:
        covered: (n,) int64, rows of the pairs it may be asked about, ascending; the bank is drawn from them.
        place: number of the space, where there are several; of the draw of the bank.
        others: the captions of each image; made where none are given.
    """

    def __init__(
        self,
        model: RetrievalModel,
        pairs: Pairs,
        covered: IntArray,
        *,
        bank_size: int,
        seed: int,
        place: int = 0,
        device: str = "auto",
        others: OtherCaptions | None = None,
    ) -> None:
        self.model, self.pairs, self.covered, self.device = model, pairs, covered, device
        self.others = OtherCaptions(pairs) if others is None else others
        self.bank_size, self.seed, self.place = bank_size, seed, place

    @cached_property
    def encoded(self) -> Vectors:
        return encode(self.model, self.pairs, device=self.device)

    @cached_property
    def bank(self) -> Bank:  # type: ignore[override]
        drawn = np.sort(generator(self.seed, "audit bank", self.place).permutation(self.covered)[: self.bank_size])
        return Bank.of(*self.vectors(drawn), torch.from_numpy(drawn))

    def by_words(self, image_rows: IntArray, caption_rows: IntArray) -> dict[str, Array]:
        return self.others.column(image_rows, caption_rows)

    def covers(self, rows: IntArray) -> IntArray:
        return np.sort(rows[np.isin(rows, self.covered)])

    def vectors(self, rows: IntArray) -> tuple[Tensor, Tensor]:
        encoded = self.encoded
        images = encoded.images[torch.from_numpy(self.pairs.image_index[rows])]
        return images, encoded.texts[torch.from_numpy(self.pairs.text_index[rows])]

    def blocks(self) -> Iterator[tuple[IntArray, Tensor, Tensor]]:
        for start in range(0, len(self.pairs), BLOCK):
            rows = np.arange(start, min(start + BLOCK, len(self.pairs)), dtype=np.int64)
            yield rows, *self.vectors(rows)

    def sample(self, count: int, rows: IntArray | None = None) -> tuple[Tensor, Tensor]:
        """Vectors of the images and texts of up to `count` of some pairs, of all that it may score, (n, D) each."""
        drawn = generator(self.seed, "audit sample", self.place).permutation(self.covered if rows is None else rows)
        images, texts = self.vectors(np.sort(drawn[:count]))
        return images.cpu(), texts.cpu()

    def synthetic_scores(self, rows: IntArray) -> dict[str, dict[str, Array]]:
        """Scores of synthetic mismatches made of some pairs; a table a kind."""
        described = unit(torch.cat(self.vectors(rows), dim=1).cpu().numpy())
        return {kind: self.mismatched(kind, rows, described) for kind in KINDS}

    def mismatched(self, kind: str, rows: IntArray, described: Array | None = None) -> dict[str, Array]:
        rng = generator(self.seed, "audit mismatches", KINDS.index(kind))
        drawn = mismatched_pairs(self.pairs, rows, kind, MOST_MISMATCHES, described, rng, NEAREST_IN_SPACE)
        return self.scores(drawn.image_of, drawn.caption_of)
