"""Retrieval in two stages: a fast model proposes k candidates of every query, a slow one ranks only these.

A local engine (SGR, SAF) compares every word with every region, which on 5,000 images and 25,000 texts takes hours on
a CPU; a global one compares two vectors. With k of some dozens, a few per cent of the cells remain.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor

from truepair.data.pairs import Pairs
from truepair.errors import InputError
from truepair.evaluation.evaluate import WHOLE_MATRIX_BYTES, ScoresPairs
from truepair.evaluation.progress import Watched, counted
from truepair.evaluation.proposals import propose
from truepair.evaluation.ranks import ranks_from_blocks
from truepair.evaluation.retrieval import recall, recall_from_ranks


@dataclass(frozen=True)
class TwoStage:
    """What two stages found, and at what cost.

    Attributes:
        figures: as `recall` names them.
        top: k.
        proposer: the figures of the proposing model alone.
        proposed: percentage [0, 100] of images (`i2t`) and texts (`t2i`) with a right item among the proposed: no
            recall can be higher while k is at least the k of that recall.
        cells: cells of the similarity matrix that were computed.
        share: the same as a share of all, in (0, 1].
        seconds: of both stages, encoding included.
        full: the figures of the whole matrix; None unless compared.
        full_seconds: of the whole matrix, encoding included; None unless compared.
    """

    figures: dict[str, float]
    top: int
    proposer: dict[str, float]
    proposed: dict[str, float]
    cells: int
    share: float
    seconds: float
    full: dict[str, float] | None = None
    full_seconds: float | None = None

    @property
    def difference(self) -> dict[str, float] | None:
        """`figures` minus `full`: recall that two stages lose is negative, ranks they lose are positive."""
        return None if self.full is None else {name: self.figures[name] - self.full[name] for name in self.figures}

    def to_dict(self) -> dict[str, Any]:
        """Everything above, for JSON."""
        return {**asdict(self), "difference": self.difference}


def evaluate_two_stage(
    proposer: ScoresPairs,
    model: ScoresPairs,
    pairs: Pairs,
    *,
    top: int,
    compare: bool = False,
    progress: bool | None = None,
) -> TwoStage:
    """Recall, ranks and rSum when `proposer` proposes k candidates of every query and `model` ranks only these.

    A query finds its right item at its rank among the proposed, by the model's similarity; where it was not proposed,
    at its rank among all, by the proposer's, which is at least k. Ties count against both: a right item is not
    proposed if it ties with the last place. An image with several texts is ranked by the best of those proposed. With
    k as large as the collection the figures are those of `evaluate(model, pairs)`.

    Args:
        proposer: a fast model, such as a `RetrievalModel` with a global engine: its whole matrix is computed.
        model: a `RetrievalModel` or `EnsembleModel`, such as one with local engines.
        pairs: evaluation pairs; each text stands in exactly one pair.
        top: k, at least 1; more than there are means all.
        compare: compute the model's whole matrix as well, and keep its figures and its time.
        progress: show the cells computed; None shows them on a terminal only.

    Raises:
        InputError: `top` is too small, a similarity is NaN, or as `evaluate`.
    """
    if top < 1:
        raise InputError(f"top is {top}; expected at least 1 candidate a query")
    start = time.perf_counter()
    image_of_text = torch.from_numpy(pairs.image_of_text)
    every_image, every_text = np.arange(len(pairs.images)), np.arange(len(pairs.texts))
    blocks = _kept_if_small(proposer.similarity_blocks(pairs, every_image, every_text), pairs)
    image_ranks, text_ranks = ranks_from_blocks(lambda: blocks, image_of_text)  # first: it refuses NaN
    texts_of_image, images_of_text = propose(blocks, image_of_text, top)

    asking = torch.unique(image_of_text)  # an image without a text is no query; it stays a candidate
    for_images = Candidates.of_images(asking, texts_of_image[asking], image_of_text)
    for_texts = Candidates.of_texts(images_of_text, image_of_text)
    table = CellTable(len(pairs.texts), [for_images, for_texts])
    cells: Any = model.similarity_blocks(pairs, every_image, every_text)
    table.fill(cells, progress)
    final_image_ranks = image_ranks.clone()
    final_image_ranks[asking] = reranked(for_images, table, image_ranks[asking])
    final_text_ranks = reranked(for_texts, table, text_ranks)

    reached = recall_from_ranks(image_ranks, text_ranks, ks=(top,))
    result = TwoStage(
        figures=recall_from_ranks(final_image_ranks, final_text_ranks),
        top=top,
        proposer=recall_from_ranks(image_ranks, text_ranks),
        proposed={side: reached[f"{side}_r{top}"] for side in ("i2t", "t2i")},
        cells=len(table),
        share=len(table) / (len(every_image) * len(every_text)),
        seconds=time.perf_counter() - start,
    )
    return _compared(result, model, pairs, progress) if compare else result


@dataclass(frozen=True)
class Candidates:
    """The proposed cells of some queries, all tensors (queries, k): image, text, and whether they belong together."""

    images: Tensor
    texts: Tensor
    right: Tensor

    @classmethod
    def of_images(cls, images: Tensor, texts: Tensor, image_of_text: Tensor) -> Candidates:
        """Of images (queries,) that were proposed texts (queries, k)."""
        return cls(images[:, None].expand_as(texts), texts, image_of_text[texts] == images[:, None])

    @classmethod
    def of_texts(cls, images: Tensor, image_of_text: Tensor) -> Candidates:
        """Of all texts, which were proposed images (texts, k)."""
        texts = torch.arange(len(images))
        return cls(images, texts[:, None].expand_as(images), images == image_of_text[:, None])


class CellTable:
    """Similarities of the cells that several sets of candidates have, each computed once.

    Args:
        texts: number of texts (columns) of the whole matrix.
        candidates: whose cells are wanted.
    """

    def __init__(self, texts: int, candidates: Sequence[Candidates]) -> None:
        self.texts = texts
        # Image after image, as models compute single cells.
        self.numbers = torch.unique(torch.cat([self._number(part).flatten() for part in candidates]))
        self.similarity = torch.empty(0)

    def __len__(self) -> int:
        return len(self.numbers)

    def fill(self, scorer: ScoresCells, progress: bool | None) -> None:
        """Compute the cells.

        Raises:
            InputError: one is NaN.
        """
        images, texts = self.numbers // self.texts, self.numbers % self.texts
        pieces = counted(scorer.cells(images, texts), len(self), progress=progress, title="ranking the proposed")
        self.similarity = torch.cat(list(pieces))
        unknown = self.similarity.isnan().nonzero()
        if len(unknown):
            cell = int(unknown[0])
            raise InputError(
                f"the similarity of image {int(images[cell])} and text {int(texts[cell])} is NaN; NaN cannot be "
                "ranked: look for features that are not finite, or a model that has diverged"
            )

    def of(self, candidates: Candidates) -> Tensor:
        """Similarities (queries, k) of candidates the table was made for."""
        return self.similarity[torch.searchsorted(self.numbers, self._number(candidates))]

    def _number(self, candidates: Candidates) -> Tensor:
        return candidates.images * self.texts + candidates.texts


def reranked(candidates: Candidates, table: CellTable, ranks: Tensor) -> Tensor:
    """Rank (queries,) of each query's best right candidate among the wrong ones; its given rank where it has none."""
    similarity = table.of(candidates)
    best = similarity.masked_fill(~candidates.right, -torch.inf).amax(dim=1, keepdim=True)
    before = ((similarity >= best) & ~candidates.right).sum(dim=1)
    return torch.where(candidates.right.any(dim=1), before, ranks)


class ScoresCells(Protocol):
    """What the second stage needs of a model's similarity matrix."""

    def cells(self, image_index: Tensor, text_index: Tensor) -> Iterable[Tensor]:
        """Similarities of single cells in order, in 1-d pieces; cells are sorted by image, then text."""
        ...


def _kept_if_small(blocks: Iterable[Tensor], pairs: Pairs) -> Iterable[Tensor]:
    """The blocks, computed once and kept where they take little room, else computed again at every pass."""
    small = 4 * len(pairs.images) * len(pairs.texts) <= WHOLE_MATRIX_BYTES
    return list(blocks) if small else blocks


def _compared(result: TwoStage, model: ScoresPairs, pairs: Pairs, progress: bool | None) -> TwoStage:
    """The result with the figures of the whole matrix, which is computed once and held: its cells are expensive."""
    start = time.perf_counter()
    every_image, every_text = np.arange(len(pairs.images)), np.arange(len(pairs.texts))
    matrix = torch.empty(len(every_image), len(every_text))
    row = 0
    for block in Watched(model, progress).similarity_blocks(pairs, every_image, every_text):
        matrix[row : row + len(block)] = block
        row += len(block)
    full = recall(matrix, pairs.image_of_text)
    return replace(result, full=full, full_seconds=time.perf_counter() - start)
