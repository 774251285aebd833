"""Pairs under an engine of cross-attention, which has no vector of an item: SGR and SAF compare the regions of an image
with the words of a text.

Matching, rank and certainty need only similarities to a bank of other pairs; the indicators that compare items of one
side with each other are left out. A similarity takes some 100 µs, so that the bank is small, and what was computed is
kept in a folder.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cached_property
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from truepair.audit.scoring.bank import background_of, temperature_for
from truepair.audit.scoring.comparison import own_entries
from truepair.audit.scoring.indicators import COLUMNS, VECTOR_INDICATORS, settled, two_way
from truepair.audit.scoring.other_captions import OtherCaptions
from truepair.audit.scoring.scored_pairs import Offer
from truepair.audit.scoring.scoring_folder import kept_columns
from truepair.audit.scoring.synthetic_mismatches import KINDS, described_pairs, mismatched_pairs
from truepair.data.pairs import Array, IntArray, Pairs
from truepair.device import resolve_device
from truepair.engines.retrieval_model import RetrievalModel
from truepair.seeding import generator

MOST_ENTRIES = 128
"""Entries of the bank: with 2,048 of them 10,000 pairs would take an hour, and so few rank nearly as well."""
MOST_MISMATCHES = 1000
MOST_REMATCHED = 200
"""Each suspicious pair is compared with all images and all texts."""
AT_ONCE = 512


class CrossAttentionSpace:
    """A `Space` of some pairs, scored against a bank of at most 128 of them.

    Args:
        folder: for what was computed; made if missing. It must be of the same pairs, model, bank and seed.
        moved: told how many images and texts have been compared with the bank.
    """

    def __init__(
        self,
        model: RetrievalModel,
        pairs: Pairs,
        folder: Path,
        *,
        bank_size: int,
        seed: int,
        device: str = "auto",
        moved: Callable[[int], None] = lambda done: None,
    ) -> None:
        self.model, self.pairs, self.folder = model.to(resolve_device(device)), pairs, folder
        self.seed, self.moved, self.done = seed, moved, 0
        self.others = OtherCaptions(pairs)
        folder.mkdir(parents=True, exist_ok=True)
        drawn = generator(seed, "audit bank", 0).permutation(len(pairs))[: min(bank_size, MOST_ENTRIES)]
        self.entries: IntArray = np.sort(drawn).astype(np.int64)

    @cached_property
    def to_texts(self) -> Tensor:
        """(images, m) similarity of every image to the bank's texts."""
        texts = self.pairs.text_index[self.entries]
        return self._table("images", len(self.pairs.images), lambda rows: self._similarity(rows, texts))

    @cached_property
    def to_images(self) -> Tensor:
        """(texts, m) similarity of every text to the bank's images."""
        images = self.pairs.image_index[self.entries]
        return self._table("texts", len(self.pairs.texts), lambda rows: self._similarity(images, rows).T)

    @cached_property
    def constants(self) -> tuple[float, float]:
        """Temperature and background of the bank, as in `Bank`."""
        similarity = self.to_texts[torch.from_numpy(self.pairs.image_index[self.entries])]
        temperature, own = temperature_for(similarity), torch.arange(len(similarity))
        return temperature, background_of([(similarity, (own, own))], temperature)

    def scores(self, image_rows: IntArray, caption_rows: IntArray) -> dict[str, Array]:
        """Similarity, log odds, matching, rank and certainty of the images of some pairs with the captions of others,
        (n,) float32 each; and what the images' other captions say.
        """
        images, texts = self.pairs.image_index[image_rows], self.pairs.text_index[caption_rows]
        temperature, background = self.constants
        bank_rows = torch.from_numpy(self.entries)
        parts: list[dict[str, Tensor]] = []
        for start in range(0, len(images), AT_ONCE):
            piece = slice(start, start + AT_ONCE)
            similarity = self._paired(images[piece], texts[piece])
            own = own_entries(bank_rows, torch.from_numpy(image_rows[piece]), torch.from_numpy(caption_rows[piece]))
            tables = ((self.to_texts, images), (self.to_images, texts))
            directions = (own.fill(table[torch.from_numpy(rows[piece])], -torch.inf) for table, rows in tables)
            known = two_way(similarity, directions, own.others, temperature, background)
            parts.append({"similarity": similarity, **settled(known, own.others)})
        names = [name for name in COLUMNS if name not in VECTOR_INDICATORS]
        empty = np.empty(0, dtype=np.float32)
        columns = {name: np.concatenate([empty, *(part[name].numpy() for part in parts)]) for name in names}
        return {**columns, **self.others.column(image_rows, caption_rows)}

    def given_scores(self) -> dict[str, Array]:
        """`scores` of the pairs themselves, kept in the folder."""
        rows = np.arange(len(self.pairs), dtype=np.int64)
        return kept_columns(self.folder / "given.safetensors", self.scores, rows, rows)

    def synthetic_scores(self, rows: IntArray) -> dict[str, dict[str, Array]]:
        """`scores` of synthetic mismatches made of some pairs, a table a kind; at most 1,000 of each."""
        found, described = {}, described_pairs(self.pairs, seed=self.seed)[rows]
        for place, kind in enumerate(KINDS):
            rng = generator(self.seed, "audit mismatches", place)
            drawn = mismatched_pairs(self.pairs, rows, kind, MOST_MISMATCHES, described, rng)
            found[kind] = self.scores(drawn.image_of, drawn.caption_of)
        return found

    def covers(self, rows: IntArray) -> IntArray:
        return np.sort(rows[:MOST_REMATCHED])

    def similarity(self, rows: IntArray) -> Tensor:
        return self._paired(self.pairs.image_index[rows], self.pairs.text_index[rows])

    def paired(self, image_rows: IntArray, caption_rows: IntArray) -> Tensor:
        return self._paired(self.pairs.image_index[image_rows], self.pairs.text_index[caption_rows])

    def compared(self, image_rows: IntArray, caption_rows: IntArray) -> Tensor:
        return self._similarity(self.pairs.image_index[image_rows], self.pairs.text_index[caption_rows])

    def offers(self, rows: IntArray) -> Iterator[Offer]:
        images, texts = self.pairs.image_index[rows], self.pairs.text_index[rows]
        compared: tuple[tuple[str, IntArray, Callable[[IntArray], Tensor]], ...] = (
            ("caption", self.pairs.text_index, lambda items: self._similarity(images, items)),
            ("image", self.pairs.image_index, lambda items: self._similarity(items, texts).T),
        )
        for side, index, similarity in compared:
            items, first = np.unique(index, return_index=True)
            items, first = items[np.argsort(first)], np.sort(first)  # each item once, by the first pair that has it
            for start in range(0, len(items) if len(rows) else 0, AT_ONCE):
                piece = slice(start, start + AT_ONCE)
                yield Offer(side, slice(0, len(rows)), first[piece], similarity(items[piece]))

    def _similarity(self, images: IntArray, texts: IntArray) -> Tensor:
        """(images, texts) float32 on the CPU."""
        return torch.cat(list(self.model.similarity_blocks(self.pairs, images, texts)))

    def _paired(self, images: IntArray, texts: IntArray) -> Tensor:
        """(n,) similarity of image i with text i."""
        parts = [torch.empty(0)]
        for start in range(0, len(images), AT_ONCE):
            image_rows, image_at = np.unique(images[start : start + AT_ONCE], return_inverse=True)
            text_rows, text_at = np.unique(texts[start : start + AT_ONCE], return_inverse=True)
            order = np.argsort(image_at, kind="stable")  # one call of the engine for all texts of an image
            blocks = self.model.similarity_blocks(self.pairs, image_rows, text_rows)
            cells = blocks.cells(torch.from_numpy(image_at[order]), torch.from_numpy(text_at[order]))
            found = torch.empty(len(order))
            found[torch.from_numpy(order)] = torch.cat(list(cells))
            parts.append(found)
        return torch.cat(parts)

    def _table(self, side: str, count: int, similarity: Callable[[IntArray], Tensor]) -> Tensor:
        """(count, m) similarities of all items of a side to the bank, some hundred items at a time, kept in files."""
        parts = []
        for number, start in enumerate(range(0, count, AT_ONCE)):
            rows = np.arange(start, min(start + AT_ONCE, count), dtype=np.int64)
            path = self.folder / f"{side}-{number:06d}.safetensors"
            piece = kept_columns(path, lambda rows: {"similarity": similarity(rows)}, rows)["similarity"]
            parts.append(torch.from_numpy(piece))
            self.done += len(piece)
            self.moved(self.done)
        return torch.cat(parts)
