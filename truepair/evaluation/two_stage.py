"""Retrieval in two stages: a fast model proposes k candidates of every query, a slow one ranks only these.

A local engine (SGR, SAF) compares every word with every region, which on 5,000 images and 25,000 texts takes hours on
a CPU; a global one compares two vectors. With k of some dozens, a few per cent of the cells remain.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from truepair.data.pairs import Pairs
from truepair.errors import InputError
from truepair.evaluation.evaluate import WHOLE_MATRIX_BYTES, ScoresPairs, Watched, counted
from truepair.evaluation.ranks import ranks_from_blocks
from truepair.evaluation.retrieval import recall, recall_from_ranks

QUERIES_AT_ONCE = 512
"""Queries whose candidates are sorted out together: bounds the working memory."""


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
    blocks: Iterable[Tensor] = proposer.similarity_blocks(pairs, every_image, every_text)
    if 4 * len(every_image) * len(every_text) <= WHOLE_MATRIX_BYTES:
        blocks = list(blocks)  # else they are computed again at every pass
    image_ranks, text_ranks = ranks_from_blocks(lambda: blocks, image_of_text)  # first: it refuses NaN
    texts_of_image, images_of_text = propose(blocks, image_of_text, top)

    asking = torch.unique(image_of_text)  # an image without a text is no query; it stays a candidate
    for_images = texts_of_image[asking]
    sides = [
        (asking[:, None].expand_as(for_images), for_images),
        (images_of_text, torch.arange(len(images_of_text))[:, None].expand_as(images_of_text)),
    ]
    # Each cell is computed once, image after image.
    cells = torch.unique(torch.cat([(images * len(every_text) + texts).flatten() for images, texts in sides]))
    matrix = model.similarity_blocks(pairs, every_image, every_text)
    similarity = similarity_of(matrix, cells // len(every_text), cells % len(every_text), progress)
    found = [
        reranked(
            similarity[torch.searchsorted(cells, images * len(every_text) + texts)],
            image_of_text[texts] == images,
            before,
        )
        for (images, texts), before in zip(sides, (image_ranks[asking], text_ranks), strict=True)
    ]
    final_image_ranks = image_ranks.index_copy(0, asking, found[0])

    reached = recall_from_ranks(image_ranks, text_ranks, ks=(top,))
    result = TwoStage(
        figures=recall_from_ranks(final_image_ranks, found[1]),
        top=top,
        proposer=recall_from_ranks(image_ranks, text_ranks),
        proposed={side: reached[f"{side}_r{top}"] for side in ("i2t", "t2i")},
        cells=len(cells),
        share=len(cells) / (len(every_image) * len(every_text)),
        seconds=time.perf_counter() - start,
    )
    if not compare:
        return result
    start = time.perf_counter()
    whole = torch.cat(list(Watched(model, progress).similarity_blocks(pairs, every_image, every_text)))
    full = recall(whole, pairs.image_of_text)
    return replace(result, full=full, full_seconds=time.perf_counter() - start)


def similarity_of(matrix: Any, images: Tensor, texts: Tensor, progress: bool | None) -> Tensor:
    """Similarities of single cells, (cells,), sorted by image, then text; raises InputError: one is NaN."""
    pieces = counted(matrix.cells(images, texts), len(images), progress=progress, title="ranking the proposed")
    similarity = torch.cat(list(pieces))
    unknown = similarity.isnan().nonzero()
    if len(unknown):
        cell = int(unknown[0])
        raise InputError(
            f"the similarity of image {int(images[cell])} and text {int(texts[cell])} is NaN; NaN cannot be "
            "ranked: look for features that are not finite, or a model that has diverged"
        )
    return similarity


def reranked(similarity: Tensor, right: Tensor, ranks: Tensor) -> Tensor:
    """Rank (queries,) of each query's best right candidate among the wrong ones; its given rank where it has none.

    Args:
        similarity, right: (queries, k) of the proposed, and whether they belong to the query.
        ranks: (queries,).
    """
    best = similarity.masked_fill(~right, -torch.inf).amax(dim=1, keepdim=True)
    before = ((similarity >= best) & ~right).sum(dim=1)
    return torch.where(right.any(dim=1), before, ranks)


@torch.no_grad()
def propose(blocks: Iterable[Tensor], image_of_text: Tensor, top: int) -> tuple[Tensor, Tensor]:
    """Texts of every image (images, min(top, texts)) and images of every text (texts, min(top, images)), ascending.

    The order of a query's candidates is total: the more similar first; among equals the wrong before the right, as ties
    count against the model; among those the lower number. So the candidates do not depend on how the matrix is cut.
    A right item is among them exactly if its rank, as `ranks` counts it, is below `top` (of several texts of an image:
    the best one's).

    Args:
        blocks: rows of the similarity matrix from the first image to the last, without NaN.
        image_of_text: (texts,) int64, the image each text belongs to.
        top: k ≥ 1.
    """
    texts_of_image: list[Tensor] = []
    image_of_texts = torch.split(image_of_text, QUERIES_AT_ONCE)
    best = [_Best(part, top) for part in image_of_texts]
    start = 0
    for block in blocks:
        for rows in torch.split(block, QUERIES_AT_ONCE):
            images = torch.arange(start, start + len(rows))
            texts_of_image.append(first(rows, image_of_text == images[:, None], top))
            for kept, columns in zip(best, torch.split(rows, QUERIES_AT_ONCE, dim=1), strict=True):
                kept.see(columns.T, images)
            start += len(rows)
    return torch.cat(texts_of_image), torch.cat([kept.images for kept in best])


class _Best:
    """The first k of the images seen so far, for some texts."""

    def __init__(self, image_of_text: Tensor, top: int) -> None:
        self.image_of_text, self.top = image_of_text, top
        self.images = image_of_text.new_empty(len(image_of_text), 0)
        self.similarity: Tensor | None = None

    def see(self, similarity: Tensor, images: Tensor) -> None:
        """Take further images into account: `similarity` (texts, images), with higher numbers than all before."""
        numbers = torch.cat([self.images, images.expand(len(similarity), -1)], dim=1)
        if self.similarity is not None:
            similarity = torch.cat([self.similarity, similarity], dim=1)
        place = first(similarity, numbers == self.image_of_text[:, None], self.top)
        self.images, self.similarity = numbers.gather(1, place), similarity.gather(1, place)


def first(similarity: Tensor, own: Tensor, top: int) -> Tensor:
    """Columns of the first candidates of every row, (queries, min(top, candidates)), ascending.

    Args:
        similarity: (queries, candidates).
        own: the same shape, True where the candidate is right.
    """
    candidates = similarity.shape[1]
    if top >= candidates:
        return torch.arange(candidates).expand(len(similarity), -1)
    values, found = similarity.topk(top, dim=1)
    # topk takes any of those that tie for the last places; the few rows where some were left out are sorted in full.
    crowded = ((similarity >= values[:, -1:]).sum(dim=1) > top).nonzero().squeeze(1)
    if len(crowded):
        wrong_first = own[crowded].sort(dim=1, stable=True).indices
        order = similarity[crowded].gather(1, wrong_first).sort(dim=1, descending=True, stable=True).indices
        found[crowded] = wrong_first.gather(1, order[:, :top])
    return found.sort(dim=1).values
