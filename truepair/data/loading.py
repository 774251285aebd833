"""From `Pairs` to batches: an epoch's order and its batches, prepared as the engine reads them."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset

from truepair.data.batch import PairBatch
from truepair.data.pairs import Pairs
from truepair.data.preparation import Preparation
from truepair.seeding import generator


class EpochBatches(Dataset[PairBatch]):
    """The batches of one epoch; item k is batch k, whatever came before it.

    Every pair stands in exactly one batch. Batch sizes differ by one at most, so no tiny last batch makes its pairs
    look more probable than the others, and none is dropped.

    Args:
        pairs: the training pairs.
        preparation: what makes batches of them.
        batch_size: at most this many pairs a batch.
        order: names the purpose of the order, so that two passes over one epoch's pairs differ.
        position: (seed, stage, epoch): names the order and the augmentation.
        augmented: whether images and texts are altered at random, as the preparation does that.
    """

    def __init__(
        self,
        pairs: Pairs,
        preparation: Preparation,
        *,
        batch_size: int,
        position: tuple[int, int, int],
        order: str = "shuffle",
        augmented: bool = True,
    ) -> None:
        self.pairs = pairs
        self.preparation = preparation
        self.position = position
        self.augmented = augmented
        permutation = generator(position[0], order, *position[1:]).permutation(len(pairs))
        self.batches = np.array_split(permutation, batch_count(len(pairs), batch_size))
        preparation.keep(pairs.texts)

    def __len__(self) -> int:
        return len(self.batches)

    def __getitem__(self, step: int) -> PairBatch:
        ids, pairs = self.batches[step], self.pairs
        seed, *place = self.position
        rng = generator(seed, "augment", *place, step) if self.augmented else None
        images = self.preparation.images(pairs.images, pairs.image_index[ids], rng)
        texts = self.preparation.texts(pairs.texts, pairs.text_index[ids], rng)
        labels = None if pairs.labels is None else torch.from_numpy(pairs.labels[ids])
        return PairBatch(torch.from_numpy(ids), images, texts, labels)

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
