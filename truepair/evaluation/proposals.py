"""The first k candidates of every query, both ways, exactly, from a similarity matrix that comes in blocks.

The order of a query's candidates is total: the more similar first; among equals the wrong before the right, as ties
count against the model; among those the lower number. So the candidates do not depend on how the matrix is cut.
"""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch import Tensor

QUERIES_AT_ONCE = 512
"""Queries whose candidates are sorted out together: bounds the working memory."""


@torch.no_grad()
def propose(blocks: Iterable[Tensor], image_of_text: Tensor, top: int) -> tuple[Tensor, Tensor]:
    """Texts of every image (images, min(top, texts)) and images of every text (texts, min(top, images)), ascending.

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
