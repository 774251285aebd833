"""Single cells of a similarity matrix, for those who need few of them."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

from truepair.models.retrieval_model import SimilarityBlocks, evaluating

TEXTS_AT_ONCE = 1024
"""Texts that are compared with one image in one call: what is copied of their encodings stays small."""


@torch.inference_mode()
def cell_pieces(blocks: SimilarityBlocks, image_index: Tensor, text_index: Tensor) -> Iterator[Tensor]:
    """The similarity of cell c, image `image_index[c]` and text `text_index[c]`, in order, as 1-d float32 pieces.

    A run of cells with the same image is one call of the engine (of at most `TEXTS_AT_ONCE` texts): sort by image. A
    call has its price, so few texts an image are dearer each: 20 cost some two times as much as in whole rows, 100
    some one and a half times.

    Args:
        blocks: the similarity matrix the cells are of.
        image_index, text_index: (cells,) int64 on the CPU, rows and columns of that matrix.

    Yields:
        Pieces on the CPU; their sizes depend on the cells alone, not on the model.
    """
    engine, images, _, texts = blocks._arguments
    rows, counts = torch.unique_consecutive(image_index, return_counts=True)
    with evaluating(engine):
        for row, columns in zip(torch.split(rows, 1), torch.split(text_index, counts.tolist()), strict=True):
            image = engine.select(images, row)
            for part in torch.split(columns, TEXTS_AT_ONCE):
                yield engine.similarity(image, engine.select(texts, part)).flatten().float().cpu()
