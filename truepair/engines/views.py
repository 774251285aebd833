"""`MultiViewEngine`: one network that looks at each image through several projections of its regions (UGNCL)."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from truepair.engines.similarity import ScoringEngine, SingleViewEngine

Views = tuple[Any, ...]


class MultiViewEngine(ScoringEngine[Views]):
    """W views of every image by W region encoders; texts and everything after the regions are shared.

    Encodings of images are tuples with one entry a view, those of texts have one entry. The similarity used for
    retrieval is the mean of the views'.

    Args:
        base: the engine; its region encoder is the first view's.
        views: W ≥ 2; the further region encoders are newly initialised.
    """

    def __init__(self, base: SingleViewEngine[Any], views: int) -> None:
        super().__init__()
        self.base = base
        self.costly = base.costly
        self.further_regions = nn.ModuleList(base.new_region_encoder() for _ in range(views - 1))

    def encode_images(self, images: Any) -> Views:
        every = (self.base.regions, *self.further_regions)
        return tuple(self.base.encode_images_through(regions, images) for regions in every)

    def encode_texts(self, texts: Any) -> Views:
        return (self.base.encode_texts(texts),)

    def view_scores(self, images: Views, texts: Views) -> list[Tensor]:
        return [self.base.scores(view, texts[0]) for view in images]

    def scores(self, images: Views, texts: Views) -> Tensor:
        return torch.stack(self.view_scores(images, texts)).mean(dim=0)

    def similarity(self, images: Views, texts: Views) -> Tensor:
        return torch.stack([self.as_similarity(scores) for scores in self.view_scores(images, texts)]).mean(dim=0)

    def image_scores(self, images: Views) -> Tensor:
        return torch.stack([self.base.image_scores(view) for view in images]).mean(dim=0)

    def text_scores(self, texts: Views) -> Tensor:
        return self.base.text_scores(texts[0])

    def as_similarity(self, scores: Tensor) -> Tensor:
        return self.base.as_similarity(scores)

    def as_ranking(self, scores: Tensor) -> Tensor:
        return self.base.as_ranking(scores)

    def concatenate(self, parts: list[Views]) -> Views:
        return tuple(self.base.concatenate([part[view] for part in parts]) for view in range(len(parts[0])))

    def select(self, encoded: Views, rows: slice | Tensor) -> Views:
        return tuple(self.base.select(part, rows) for part in encoded)

    def cell_bytes(self, images: Views, texts: Views) -> int:
        return max(self.base.cell_bytes(view, texts[0]) for view in images)
