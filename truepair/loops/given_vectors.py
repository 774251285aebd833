"""`GivenVectors`: an engine of vectors that somebody else's encoders have made."""

from __future__ import annotations

from torch import Tensor, nn

from truepair.engines.cosine_engine import CosineEngine, unit_vectors
from truepair.engines.features import Features


class GivenVectors(CosineEngine):
    """Encodings are the given vectors (n, D), L2-normalised; images are compared with texts by cosine times a factor.

    Args:
        factor: what cosines of an image and a text are multiplied by, for a scale of the model's own; a tensor gets its
            gradient. None: by nothing.
    """

    def __init__(self, factor: Tensor | float | None = None) -> None:
        super().__init__()
        self.regions = self.new_region_encoder()
        self.learning_factor = 1.0 if factor is None else factor
        self.own_scale = factor is not None

    def new_region_encoder(self) -> nn.Module:
        return nn.Identity()

    def image_features(self, images: Tensor, regions: nn.Module | None = None) -> Features:
        return Features(unit_vectors((regions or self.regions)(images)))

    def text_features(self, texts: Tensor) -> Features:
        return Features(unit_vectors(texts))

    def scores(self, images: Tensor, texts: Tensor) -> Tensor:
        return super().scores(images, texts) * self.learning_factor

    def image_scores(self, images: Tensor) -> Tensor:
        return super().scores(images, images)

    def text_scores(self, texts: Tensor) -> Tensor:
        return super().scores(texts, texts)
