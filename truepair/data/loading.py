"""From `Pairs` to batches: an epoch's order, its batches, and items encoded for evaluation."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset

from truepair.data.augment import alter_words, drop_regions
from truepair.data.batch import ImageBatch, PairBatch, TextBatch, pad_words
from truepair.data.config import Augmentation
from truepair.data.pairs import Images, IntArray, Pairs, Texts
from truepair.data.text import Vocabulary
from truepair.seeding import generator


class EpochBatches(Dataset[PairBatch]):
    """The batches of one epoch; item k is batch k, whatever came before it.

    Every pair stands in exactly one batch. Batch sizes differ by one at most, so no tiny last batch makes its pairs
    look more probable than the others, and none is dropped.

    Args:
        pairs: the training pairs.
        captions: the word ids of every text.
        batch_size: at most this many pairs a batch.
        order: names the purpose of the order, so that two passes over one epoch's pairs differ.
        position: (seed, stage, epoch): names the order and the augmentation.
    """

    def __init__(
        self,
        pairs: Pairs,
        captions: list[list[int]],
        vocabulary: Vocabulary,
        augmentation: Augmentation,
        *,
        batch_size: int,
        position: tuple[int, int, int],
        order: str = "shuffle",
    ) -> None:
        self.pairs = pairs
        self.captions = captions
        self.vocabulary = vocabulary
        self.augmentation = augmentation
        self.position = position
        permutation = generator(position[0], order, *position[1:]).permutation(len(pairs))
        self.batches = np.array_split(permutation, batch_count(len(pairs), batch_size))

    def __len__(self) -> int:
        return len(self.batches)

    def __getitem__(self, step: int) -> PairBatch:
        ids = self.batches[step]
        seed, *place = self.position
        rng = generator(seed, "augment", *place, step)
        features = read_features(self.pairs.images, self.pairs.image_index[ids])
        images = drop_regions(features, share=self.augmentation.region_share, rng=rng)
        rows = self.pairs.text_index[ids]
        vectors = text_vectors(self.pairs.texts, rows)
        share = self.augmentation.word_share if vectors is None else 0.0
        words = [alter_words(self.captions[text], self.vocabulary, share=share, rng=rng) for text in rows]
        texts = pad_words(words, vectors)
        labels = None if self.pairs.labels is None else torch.from_numpy(self.pairs.labels[ids])
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


def read_features(images: Images, rows: IntArray) -> np.ndarray:
    """A float32 copy of some images' features, (len(rows), R, D); one vector an image counts as one region."""
    features = np.asarray(images.features[rows], dtype=np.float32)
    return features[:, None, :] if features.ndim == 2 else features


def image_batches(images: Images, rows: IntArray, batch_size: int) -> Iterator[ImageBatch]:
    """Images as they are, in the order of `rows`."""
    for start in range(0, len(rows), batch_size):
        features = read_features(images, rows[start : start + batch_size])
        lengths = torch.full((len(features),), features.shape[1], dtype=torch.int64)
        yield ImageBatch(torch.from_numpy(features), lengths)


def text_vectors(texts: Texts, rows: IntArray) -> torch.Tensor | None:
    """A float32 copy of the vectors of some texts, (len(rows), D); None where texts are words."""
    return None if texts.features is None else torch.from_numpy(np.asarray(texts.features[rows], dtype=np.float32))


def text_batches(texts: Texts, rows: IntArray, vocabulary: Vocabulary, batch_size: int) -> Iterator[TextBatch]:
    """Texts as they are, in the order of `rows`."""
    for start in range(0, len(rows), batch_size):
        here = rows[start : start + batch_size]
        yield pad_words([vocabulary.encode(texts.captions[row]) for row in here], text_vectors(texts, here))
