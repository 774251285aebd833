"""`DisentangledEngine`: disentangled subspaces of what both modalities share and of what only one has (DisNCL).

Four heads stand between the encoders and the comparison. The invariant parts V_S and T_S are compared, by whatever the
base engine compares with; the exclusive parts V_X and T_X serve the losses and the analysis. For region–word engines
the heads act on every region and every word, and an item's part is the mean over its own.

Decided: the parts are L2-normalised, as all encodings here are, so that no term can be had by scale alone.

Shape letters: n items, D width of the features, S width of a subspace.
Source: "Disentangled Noisy Correspondence Learning" (DisNCL), section III-C and VI-A3.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from torch import Tensor, nn

from truepair.engines.features import Features
from truepair.engines.similarity import ScoringEngine, SingleViewEngine

SLOPE = 0.2  # of LeakyReLU, in heads and discriminators alike


@dataclass(frozen=True)
class Parts:
    """One modality of a batch: features F (n, D), their invariant part (n, S) and their exclusive part (n, S)."""

    features: Tensor
    invariant: Tensor
    exclusive: Tensor


@dataclass(frozen=True)
class SubspaceSizes:
    """Width S of each subspace and of the hidden layers of the heads, and whether invariant heads are three layers."""

    width: int
    hidden: int
    plain_heads: bool = False


def three_layers(inputs: int, hidden: int, outputs: int) -> nn.Sequential:
    """The MLP of DisNCL's heads and discriminators: two hidden layers, LeakyReLU 0.2.

    Biases start at zero: the inputs are unit vectors, whose single values are small, and torch's own biases would make
    all outputs nearly the same.
    """
    layers = [nn.Linear(inputs, hidden), nn.Linear(hidden, hidden), nn.Linear(hidden, outputs)]
    for layer in layers:
        nn.init.kaiming_normal_(layer.weight, a=SLOPE)
        nn.init.zeros_(layer.bias)
    first, second, last = layers
    return nn.Sequential(first, nn.LeakyReLU(SLOPE), second, nn.LeakyReLU(SLOPE), last)


class InvariantHead(nn.Module):
    """W F + MLP(F), with W an isometry and the MLP zero at first: what is compared begins as the features themselves.

    Decided: the three layers alone (`SubspaceSizes.plain_heads`, the paper) take about twice the epochs where the
    features are trained from scratch too.
    """

    def __init__(self, inputs: int, hidden: int, outputs: int) -> None:
        super().__init__()
        self.straight = nn.Linear(inputs, outputs, bias=False)
        nn.init.orthogonal_(self.straight.weight)
        self.curved = three_layers(inputs, hidden, outputs)
        last = self.curved[-1]
        assert isinstance(last, nn.Linear)
        nn.init.zeros_(last.weight)

    def forward(self, features: Tensor) -> Tensor:
        straight: Tensor = self.straight(features)
        curved: Tensor = self.curved(features)
        return straight + curved


class DisentangledEngine(ScoringEngine[Any]):
    """Encodings, scores and similarity are those of the base engine on the invariant parts.

    Args:
        base: the engine; it compares vectors of width S.
        feature_width: D of its encoders.
        sizes: S, and what the heads are.
    """

    def __init__(self, base: SingleViewEngine[Any], feature_width: int, sizes: SubspaceSizes) -> None:
        super().__init__()
        self.base = base
        self.costly = base.costly
        self.feature_width, self.sizes = feature_width, sizes
        shape = (feature_width, sizes.hidden, sizes.width)
        invariant: Callable[..., nn.Module] = three_layers if sizes.plain_heads else InvariantHead
        self.image_invariant, self.text_invariant = invariant(*shape), invariant(*shape)
        self.image_exclusive, self.text_exclusive = three_layers(*shape), three_layers(*shape)

    def encode_images(self, images: Any) -> Any:
        return self.base.represent_images(self.base.image_features(images).mapped(self.image_invariant))

    def encode_texts(self, texts: Any) -> Any:
        return self.base.represent_texts(self.base.text_features(texts).mapped(self.text_invariant))

    def split_images(self, images: Any) -> tuple[Any, Parts]:
        """Encodings of B images, and the parts that they come from."""
        features = self.base.image_features(images)
        invariant = features.mapped(self.image_invariant)
        return self.base.represent_images(invariant), parts(features, invariant, self.image_exclusive)

    def split_texts(self, texts: Any) -> tuple[Any, Parts]:
        """Encodings of B texts, and the parts that they come from."""
        features = self.base.text_features(texts)
        invariant = features.mapped(self.text_invariant)
        return self.base.represent_texts(invariant), parts(features, invariant, self.text_exclusive)

    def scores(self, images: Any, texts: Any) -> Tensor:
        return self.base.scores(images, texts)

    def image_scores(self, images: Any) -> Tensor:
        return self.base.image_scores(images)

    def text_scores(self, texts: Any) -> Tensor:
        return self.base.text_scores(texts)

    def as_similarity(self, scores: Tensor) -> Tensor:
        return self.base.as_similarity(scores)

    def as_ranking(self, scores: Tensor) -> Tensor:
        return self.base.as_ranking(scores)

    @property
    def exact_vectors(self) -> bool:
        return self.base.exact_vectors

    def image_vectors(self, images: Any) -> Tensor:
        return self.base.image_vectors(images)

    def text_vectors(self, texts: Any) -> Tensor:
        return self.base.text_vectors(texts)

    def concatenate(self, parts: list[Any]) -> Any:
        return self.base.concatenate(parts)

    def select(self, encoded: Any, rows: slice | Tensor) -> Any:
        return self.base.select(encoded, rows)

    def cell_bytes(self, images: Any, texts: Any) -> int:
        return self.base.cell_bytes(images, texts)


def parts(features: Features, invariant: Features, exclusive: nn.Module) -> Parts:
    return Parts(features.pooled(), invariant.pooled(), features.mapped(exclusive).pooled())
