"""`MultiViewEngine`: one network that looks at each image through several projections of its regions (UGNCL)."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import softplus

from truepair.engines.similarity import ScoringEngine, SingleViewEngine

Views = tuple[Any, ...]


class MultiViewEngine(ScoringEngine[Views]):
    """W views of every image by W region encoders; texts and everything after the regions are shared.

    Encodings of images are tuples with one entry a view, those of texts have one entry. The similarity used for
    retrieval is the mean of the views', or that of their `common_score`.

    Args:
        base: the engine; its region encoder is the first view's.
        views: W ≥ 2; the further region encoders are newly initialised.
        temperature: τ of the evidence whose mean over the views is scored; 0 for the mean of their similarities.
    """

    def __init__(self, base: SingleViewEngine[Any], views: int, temperature: float = 0.0) -> None:
        super().__init__()
        self.base, self.temperature = base, temperature
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
        every = self.view_scores(images, texts)
        if self.temperature:
            return self.as_similarity(common_score(torch.stack(every), self.temperature))
        return torch.stack([self.as_similarity(scores) for scores in every]).mean(dim=0)

    def image_scores(self, images: Views) -> Tensor:
        return torch.stack([self.base.image_scores(view) for view in images]).mean(dim=0)

    def text_scores(self, texts: Views) -> Tensor:
        return self.base.text_scores(texts[0])

    def as_similarity(self, scores: Tensor) -> Tensor:
        return self.base.as_similarity(scores)

    def as_ranking(self, scores: Tensor) -> Tensor:
        return self.base.as_ranking(scores)

    @property
    def exact_vectors(self) -> bool:
        return self.base.exact_vectors and not self.temperature

    def image_vectors(self, images: Views) -> Tensor:
        """Those of all views one after the other, scaled: inner products are the means of the views'."""
        return scaled(torch.cat([self.base.image_vectors(view) for view in images], dim=1), len(images))

    def text_vectors(self, texts: Views) -> Tensor:
        views = len(self.further_regions) + 1
        return scaled(self.base.text_vectors(texts[0]).repeat(1, views), views)

    def concatenate(self, parts: list[Views]) -> Views:
        return tuple(self.base.concatenate([part[view] for part in parts]) for view in range(len(parts[0])))

    def select(self, encoded: Views, rows: slice | Tensor) -> Views:
        return tuple(self.base.select(part, rows) for part in encoded)

    def cell_bytes(self, images: Views, texts: Views) -> int:
        return max(self.base.cell_bytes(view, texts[0]) for view in images)


def scaled(joined: Tensor, parts: int) -> Tensor:
    """Unit vectors, one after the other, as one unit vector."""
    return joined.mul(parts**-0.5)


def common_score(scores: Tensor, temperature: float) -> Tensor:
    """The score r whose evidence exp(softplus(r) / τ) is the mean of the views' evidence: (W, n, m) → (n, m).

    It ranks exactly as that mean does, by which UGNCL's released code retrieves, where the evidence itself would be too
    large for float32 (r > 8.9 at τ = 0.1). Since softplus(r) = −log(1 − σ(r)), σ of it lies between the views' σ.
    """
    each = softplus(scores)
    largest = each.amax(dim=0)
    common = largest + temperature * torch.log1p(torch.expm1((each - largest) / temperature).mean(dim=0))
    return common + torch.log(-torch.expm1(-common))
