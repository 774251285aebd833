"""`SimilarityEngine`: features → similarity; what every engine offers, and how a large matrix is computed in pieces."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import torch
from torch import Tensor, nn
from torch.nn.functional import normalize

from truepair.engines.features import Features
from truepair.errors import InputError

if TYPE_CHECKING:
    from truepair.engines.similarity_head import SimilarityHead
    from truepair.engines.subspaces import Parts

Encoded = TypeVar("Encoded")


class SimilarityEngine(nn.Module, ABC, Generic[Encoded]):
    """Encodes each side once, then compares any image with any text.

    What it reads are the batches of its own preparation (`truepair.data.preparation`); only it looks into them.
    A global engine encodes to one vector an item, a local one to padded vectors and lengths; `Encoded` is whatever the
    engine's own `similarity` takes.
    """

    @abstractmethod
    def encode_images(self, images: Any) -> Encoded:
        """Encodings of B images."""

    @abstractmethod
    def encode_texts(self, texts: Any) -> Encoded:
        """Encodings of B texts."""

    @abstractmethod
    def similarity(self, images: Encoded, texts: Encoded) -> Tensor:
        """Similarity of every image to every text, (n, m), in the range the engine documents: what retrieval uses."""

    @abstractmethod
    def concatenate(self, parts: list[Encoded]) -> Encoded:
        """Encodings of several batches as one."""

    @abstractmethod
    def select(self, encoded: Encoded, rows: slice | Tensor) -> Encoded:
        """The encodings of some items: a slice, or their indices (int64, on the CPU)."""

    @abstractmethod
    def cell_bytes(self, images: Encoded, texts: Encoded) -> int:
        """Peak bytes that one image row of the similarity matrix costs while it is computed."""

    @abstractmethod
    def networks(self) -> list[ScoringEngine[Any]]:
        """The networks inside that share no parameter; one for all but ensembles."""

    @property
    def exact_vectors(self) -> bool:
        """Whether the inner products of `image_vectors` and `text_vectors` are the similarities."""
        return False

    @abstractmethod
    def image_vectors(self, images: Encoded) -> Tensor:
        """(n, D) unit vectors of images, for an index: see `exact_vectors`; else they stand in for the similarities."""

    @abstractmethod
    def text_vectors(self, texts: Encoded) -> Tensor:
        """(n, D) unit vectors of texts, as `image_vectors`."""

    def rate_scales(self) -> dict[nn.Parameter, float]:
        """Parameters with a learning rate of their own, in units of the given one; all others have 1, or are frozen."""
        return {}

    def use_temperature(self, temperature: float | None) -> None:
        """Learn what the method divides similarities by; None: it compares them as they are."""


class ScoringEngine(SimilarityEngine[Encoded]):
    """One network. It gives raw scores r, from which losses and retrieval take the form they need.

    A score is a cosine (global engines) or a free logit (SGR, SAF).
    """

    costly: bool = False  # a cell costs far more time than the memory it takes
    learning_factor: Tensor | float = 1.0  # what scores are multiplied by while the network learns
    own_scale: bool = False  # whether that is a scale of the model's own, in place of the 1/τ of the method

    @abstractmethod
    def scores(self, images: Encoded, texts: Encoded) -> Tensor:
        """r of every image (row) and every text (column), (n, m) float32."""

    @abstractmethod
    def image_scores(self, images: Encoded) -> Tensor:
        """r of every image and every image, (n, n) float32 (GSC's ⟨I_i, I_j⟩ before σ)."""

    @abstractmethod
    def text_scores(self, texts: Encoded) -> Tensor:
        """r of every text and every text, (n, n) float32 (GSC's ⟨T_i, T_j⟩ before σ)."""

    def view_scores(self, images: Encoded, texts: Encoded) -> list[Tensor]:
        """r of every view of the images, each (n, m); one view but for `MultiViewEngine`."""
        return [self.scores(images, texts)]

    def split_images(self, images: Any) -> tuple[Encoded, Parts | None]:
        """Encodings of B images, and the parts they come from where the network has subspaces."""
        return self.encode_images(images), None

    def split_texts(self, texts: Any) -> tuple[Encoded, Parts | None]:
        """Encodings of B texts, and the parts they come from where the network has subspaces."""
        return self.encode_texts(texts), None

    def vectors(self, encoded: Encoded) -> Tensor:
        """One vector an item of either side, (n, D): its encoding, or the mean of its fragments.

        Raises:
            InputError: the network has several views or parts of an item.
        """
        raise InputError(f"{type(self).__name__} has no single vector an item: train one network with one view")

    def similarity(self, images: Encoded, texts: Encoded) -> Tensor:
        return self.as_similarity(self.scores(images, texts))

    def as_similarity(self, scores: Tensor) -> Tensor:
        """What retrieval and contrastive losses see: the cosine itself; σ(r) of a logit."""
        return scores

    def as_ranking(self, scores: Tensor) -> Tensor:
        """What the ranking losses of DECL and UGNCL see, in [−1, 1]: the cosine itself; tanh(r) of a logit."""
        return scores

    def image_vectors(self, images: Encoded) -> Tensor:
        return normalize(self.vectors(images).float(), dim=1)

    def text_vectors(self, texts: Encoded) -> Tensor:
        return normalize(self.vectors(texts).float(), dim=1)

    def networks(self) -> list[ScoringEngine[Any]]:
        return [self]

    def use_head(self, width: int) -> None:
        """Give scores by a small network of what is compared (`SimilarityHead`) rather than in the engine's own way.

        Raises:
            InputError: the engine has no place for one.
        """
        raise InputError(
            f"{type(self).__name__} has no similarity head; use --model global, sgr, saf, mlp or pretrained"
        )

    @property
    def similarity_head(self) -> SimilarityHead:
        """The network that `use_head` made."""
        raise InputError(f"{type(self).__name__} has no similarity head")

    def input_vectors(self, images: Any, texts: Any) -> tuple[list[Tensor], list[Tensor]] | None:
        """What B images and B texts are before anything is learned of them: blocks (B, ·) of either side. None where
        the network starts trained, so that its own encodings tell more.
        """
        return None

    def vary(self) -> None:
        """Become a network other than one made alike; for engines that do not start from weights drawn anew."""


class SingleViewEngine(ScoringEngine[Encoded]):
    """A network with one region encoder, of which `MultiViewEngine` can make several views of the images."""

    regions: nn.Module

    @abstractmethod
    def new_region_encoder(self) -> nn.Module:
        """Another region encoder like `regions`, newly initialised."""

    @abstractmethod
    def image_features(self, images: Any, regions: nn.Module | None = None) -> Features:
        """What B images are encoded from, through the given region encoder or its own."""

    @abstractmethod
    def text_features(self, texts: Any) -> Features:
        """What B texts are encoded from."""

    @abstractmethod
    def represent_images(self, features: Features) -> Encoded:
        """Encodings of the images with these features."""

    @abstractmethod
    def represent_texts(self, features: Features) -> Encoded:
        """Encodings of the texts with these features."""

    def encode_images_through(self, regions: nn.Module, images: Any) -> Encoded:
        """Encodings of B images through the given region encoder."""
        return self.represent_images(self.image_features(images, regions))

    def encode_images(self, images: Any) -> Encoded:
        return self.represent_images(self.image_features(images))

    def encode_texts(self, texts: Any) -> Encoded:
        return self.represent_texts(self.text_features(texts))


@torch.inference_mode()
def similarity_blocks(
    engine: SimilarityEngine[Encoded], images: Encoded, count: int, texts: Encoded, *, memory_bytes: int = 256 << 20
) -> Iterator[Tensor]:
    """The (count, texts) similarity matrix in blocks of whole rows, one after the other.

    Args:
        engine: in evaluation mode.
        images, texts: encodings; `count` is the number of images.
        memory_bytes: budget of one block, working memory included; at least one row is computed at a time.
    """
    rows = max(1, memory_bytes // max(1, engine.cell_bytes(images, texts)))
    for start in range(0, count, rows):
        yield engine.similarity(engine.select(images, slice(start, min(start + rows, count))), texts)
