"""From `Pairs` to batches: of given pairs, of regions and of word ids, with the only place that pads; and an epoch's
order and its batches, prepared as the engine reads them.

Shape letters: B pairs, R regions, D feature width, W words.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import DataLoader, Dataset

from truepair.data.pairs import IntArray, Pairs
from truepair.data.preparation import Batch, Preparation
from truepair.seeding import generator


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

    def piece(self, rows: slice) -> ImageBatch:
        return ImageBatch(self.features[rows], self.lengths[rows])


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

    def piece(self, rows: slice) -> TextBatch:
        vectors = None if self.vectors is None else self.vectors[rows]
        return TextBatch(self.words[rows], self.lengths[rows], vectors)


@dataclass(frozen=True)
class PairBatch:
    """B given pairs: pair i is item i of `images` and of `texts`; `ids` (B,) int64 are its keys in the memory.

    `labels` (B,) int64 are the classes of the pairs as given, None where they have none. `image_rows` (B,) int64 say
    which image of its source each pair has, on the CPU; None where nobody knows.
    """

    ids: Tensor
    images: Batch
    texts: Batch
    labels: Tensor | None = None
    image_rows: Tensor | None = None

    def __len__(self) -> int:
        return int(self.ids.shape[0])

    def to(self, device: torch.device) -> PairBatch:
        labels = None if self.labels is None else self.labels.to(device, non_blocking=True)
        return PairBatch(self.ids, self.images.to(device), self.texts.to(device), labels, self.image_rows)


@dataclass(frozen=True)
class Share:
    """Of a batch cut in pieces of `size` pairs, those that one of several processes prepares: `rank`, `rank + of`, …"""

    size: int
    rank: int
    of: int

    def rows(self, count: int) -> list[slice]:
        return [slice(start, start + self.size) for start in range(self.rank * self.size, count, self.of * self.size)]


@dataclass(frozen=True)
class SharedImages:
    """The images of a batch of `count`, of which only some pieces are prepared here: first row → piece."""

    count: int
    held: dict[int, Batch]

    def __len__(self) -> int:
        return self.count

    def to(self, device: torch.device) -> SharedImages:
        return SharedImages(self.count, {start: piece.to(device) for start, piece in self.held.items()})

    def piece(self, rows: slice) -> Batch:
        return self.held[rows.start]


def pad_words(items: list[list[int]], vectors: Tensor | None = None) -> TextBatch:
    """Stack captions of word ids into one zero-padded `TextBatch`, with the vectors that describe them if there are."""
    lengths = torch.tensor([len(item) for item in items], dtype=torch.int64)
    words = pad_sequence([torch.tensor(item, dtype=torch.int64) for item in items], batch_first=True)
    return TextBatch(words, lengths, vectors)


def pair_batch(
    pairs: Pairs,
    preparation: Preparation,
    ids: IntArray,
    rng: np.random.Generator | None = None,
    share: Share | None = None,
) -> PairBatch:
    """The pairs of these ids as a batch.

    Args:
        rng: alters images and texts at random, as the preparation does that; None: as they are.
        share: prepare the images of these pieces only, where the preparation alters nothing. Texts are prepared whole:
            the longest of the batch says how wide all are.
    """
    images: Batch
    rows = pairs.image_index[ids]
    if share is None or preparation.alters:
        images = preparation.images(pairs.images, rows, rng)
    else:
        held = {own.start: preparation.images(pairs.images, rows[own]) for own in share.rows(len(ids))}
        images = SharedImages(len(ids), held)
    texts = preparation.texts(pairs.texts, pairs.text_index[ids], rng)
    labels = None if pairs.labels is None else torch.from_numpy(pairs.labels[ids])
    return PairBatch(torch.from_numpy(ids), images, texts, labels, torch.from_numpy(rows))


class EpochBatches(Dataset[PairBatch]):
    """The batches of one epoch; item k is batch k, whatever came before it.

    Every pair stands in exactly one batch. Batch sizes differ by one at most, so no tiny last batch makes its pairs
    look more probable than the others, and none is dropped.

    Args:
        pairs: the training pairs.
        preparation: what makes batches of them.
        batch_size: at most this many pairs a batch.
        order: names the purpose of the order, so that two passes over one epoch's pairs differ.
        position: (seed, stage, epoch, …): names the order and the augmentation.
        augmented: whether images and texts are altered at random, as the preparation does that.
        share: what of every batch this process prepares; None: all.
    """

    def __init__(
        self,
        pairs: Pairs,
        preparation: Preparation,
        *,
        batch_size: int,
        position: tuple[int, ...],
        order: str = "shuffle",
        augmented: bool = True,
        share: Share | None = None,
    ) -> None:
        self.pairs, self.preparation, self.position, self.augmented = pairs, preparation, position, augmented
        self.share = share
        permutation = generator(position[0], order, *position[1:]).permutation(len(pairs))
        self.batches = np.array_split(permutation, batch_count(len(pairs), batch_size))
        preparation.keep(pairs.texts)
        preparation.keep_images(pairs.images)

    def __len__(self) -> int:
        return len(self.batches)

    def __getitem__(self, step: int) -> PairBatch:
        seed, *place = self.position
        rng = generator(seed, "augment", *place, step) if self.augmented else None
        return pair_batch(self.pairs, self.preparation, self.batches[step], rng, self.share)

    def loader(self, *, first: int, workers: int) -> Iterator[PairBatch]:
        """Batches first, first + 1, …; worker processes only prepare them sooner, they change no number."""
        steps = range(first, len(self))
        return iter(
            DataLoader(
                self, batch_size=None, sampler=steps, num_workers=min(workers, len(steps)), generator=torch.Generator()
            )
        )


def batch_count(pairs: int, batch_size: int) -> int:
    """Batches an epoch: as few as `batch_size` allows, but never so many that one would hold a single pair."""
    return max(1, min(-(-pairs // batch_size), pairs // 2))
