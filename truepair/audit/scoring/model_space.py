"""Pairs in the space of one trained model: scored, measured by known mismatches, rematched."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property

import numpy as np
import torch
from torch import Tensor

from truepair.audit.scoring.bank import Bank
from truepair.audit.scoring.indicators import score
from truepair.audit.scoring.vectors import Vectors, encode
from truepair.audit.scoring.yardstick import KINDS, NEAREST_IN_SPACE, draw_mismatches, unit
from truepair.data.pairs import Array, IntArray, Pairs
from truepair.engines.retrieval_model import RetrievalModel
from truepair.seeding import generator

BLOCK = 8192
MOST_MISMATCHES = 20_000


class ModelSpace:
    """A `Judge` of the pairs it is given.

    Args:
        model: whose vectors these are.
        pairs: row p of the table is position p.
        judged: (n,) int64, the positions it may be asked about, ascending; the bank is drawn from them.
        bank_size: m.
        seed: of the draw of the bank.
    """

    def __init__(
        self,
        model: RetrievalModel,
        pairs: Pairs,
        judged: IntArray,
        *,
        bank_size: int,
        seed: int,
        place: int = 0,
        device: str = "auto",
    ) -> None:
        self.model, self.pairs, self.judged, self.device = model, pairs, judged, device
        self.bank_size, self.seed, self.place = bank_size, seed, place

    @cached_property
    def encoded(self) -> Vectors:
        return encode(self.model, self.pairs, device=self.device)

    @cached_property
    def bank(self) -> Bank:
        drawn = np.sort(generator(self.seed, "audit bank", self.place).permutation(self.judged)[: self.bank_size])
        return Bank.of(*self.vectors(drawn), torch.from_numpy(drawn))

    def may_judge(self, positions: IntArray) -> IntArray:
        return positions[np.isin(positions, self.judged)]

    def vectors(self, positions: IntArray) -> tuple[Tensor, Tensor]:
        encoded = self.encoded
        images = encoded.images[torch.from_numpy(self.pairs.image_index[positions])]
        return images, encoded.texts[torch.from_numpy(self.pairs.text_index[positions])]

    def blocks(self) -> Iterator[tuple[int, Tensor, Tensor]]:
        for start in range(0, len(self.pairs), BLOCK):
            yield start, *self.vectors(np.arange(start, min(start + BLOCK, len(self.pairs))))

    def bank_rows(self, positions: IntArray) -> IntArray:
        return positions

    def scores(self, image_of: IntArray, caption_of: IntArray) -> dict[str, Array]:
        """Similarity, log odds and indicators of the images of some pairs with the captions of others, (n,) each."""
        found = score(
            self.vectors(image_of)[0],
            self.vectors(caption_of)[1],
            self.bank,
            image_rows=torch.from_numpy(image_of),
            text_rows=torch.from_numpy(caption_of),
        )
        return {name: values.cpu().numpy() for name, values in found.columns().items()}

    def sample(self, count: int) -> tuple[Tensor, Tensor]:
        """Vectors of the images and texts of up to `count` of the judged pairs, (n, D) each."""
        drawn = generator(self.seed, "audit sample", self.place).permutation(self.judged)[:count]
        images, texts = self.vectors(np.sort(drawn))
        return images.cpu(), texts.cpu()

    def known_mismatches(self, kinds: Sequence[str] = KINDS) -> dict[str, dict[str, Array]]:
        """Scores of pairs mismatched on purpose, a table a kind."""
        described = unit(torch.cat(self.vectors(self.judged), dim=1).cpu().numpy()) if "near" in kinds else None
        found = {}
        for kind in kinds:
            place = KINDS.index(kind)
            drawn = draw_mismatches(
                kind,
                self.judged,
                MOST_MISMATCHES,
                images=self.pairs.image_index[self.judged],
                captions=[self.pairs.texts.captions[text] for text in self.pairs.text_index[self.judged].tolist()],
                described=described,
                rng=generator(self.seed, "audit mismatches", place),
                nearest=NEAREST_IN_SPACE,
            )
            found[kind] = self.scores(drawn.image_of, drawn.caption_of)
        return found
