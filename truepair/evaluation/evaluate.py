"""`evaluate`: a model and pairs in, the figures of a retrieval table out, in bounded memory."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor
from tqdm import tqdm

from truepair.data.pairs import IntArray, Pairs
from truepair.evaluation.ranks import ranks_from_blocks
from truepair.evaluation.retrieval import folds_of, mean_over_folds, recall, recall_from_ranks

WHOLE_MATRIX_BYTES = 64 << 20
"""A similarity matrix up to this size is computed once and kept; a larger one is computed twice, block by block, unless
its cells are costly (local engines): then it is kept whatever its size."""


class ScoresPairs(Protocol):
    """What `evaluate` needs of a model (`RetrievalModel` has it)."""

    def similarity_blocks(self, pairs: Pairs, image_rows: IntArray, text_rows: IntArray) -> Iterable[Tensor]:
        """Blocks of rows of the similarity matrix; iterating again computes them again."""
        ...


def evaluate(model: ScoresPairs, pairs: Pairs, *, folds: int | None = None) -> dict[str, float]:
    """Recall, ranks and rSum of a model on pairs, as `recall` names them.

    Args:
        model: a `RetrievalModel`, such as `run.model`.
        pairs: evaluation pairs; each text stands in exactly one pair.
        folds: mean over that many consecutive folds of images (5 for "5 × 1K"); None for all images at once.

    Raises:
        InputError: a text has no image or several, features do not fit the model, or the images do not divide.
    """
    image_of_text = pairs.image_of_text
    if folds is None:
        return _figures(model, pairs, np.arange(len(pairs.images)), np.arange(len(pairs.texts)), image_of_text)
    return mean_over_folds(
        _figures(model, pairs, fold.images, fold.texts, fold.image_of_text)
        for fold in folds_of(image_of_text, len(pairs.images), folds)
    )


def _figures(
    model: ScoresPairs, pairs: Pairs, images: IntArray, texts: IntArray, image_of_text: IntArray
) -> dict[str, float]:
    blocks = model.similarity_blocks(pairs, images, texts)
    if 4 * len(images) * len(texts) <= WHOLE_MATRIX_BYTES or getattr(blocks, "costly", False):
        return recall(torch.cat(list(blocks)), image_of_text)
    return recall_from_ranks(*ranks_from_blocks(lambda: blocks, torch.from_numpy(image_of_text)))


def counted(parts: Iterable[Tensor], cells: int, *, progress: bool | None, title: str) -> Iterator[Tensor]:
    """The parts as they are, while a bar, gone when it ends, counts their cells.

    Args:
        parts: tensors with `cells` entries altogether.
        progress: show the bar; None shows it on a terminal only.
        title: what stands before the bar.
    """
    disable = None if progress is None else not progress
    bar: tqdm[Any] = tqdm(total=cells, desc=title, unit=" cells", unit_scale=True, leave=False, disable=disable)
    with bar:
        for part in parts:
            bar.update(part.numel())
            yield part


@dataclass(frozen=True)
class Watched:
    """A model whose similarity matrix shows its progress; for `evaluate` it is the model itself.

    Attributes:
        model: the model.
        progress: as `counted`.
    """

    model: ScoresPairs
    progress: bool | None = None

    def similarity_blocks(self, pairs: Pairs, image_rows: IntArray, text_rows: IntArray) -> Iterable[Tensor]:
        blocks = self.model.similarity_blocks(pairs, image_rows, text_rows)
        return _WatchedBlocks(blocks, len(image_rows) * len(text_rows), self.progress)


@dataclass(frozen=True)
class _WatchedBlocks:
    blocks: Iterable[Tensor]
    cells: int
    progress: bool | None

    def __iter__(self) -> Iterator[Tensor]:
        return counted(self.blocks, self.cells, progress=self.progress, title="similarity")

    @property
    def costly(self) -> bool:
        return bool(getattr(self.blocks, "costly", False))
