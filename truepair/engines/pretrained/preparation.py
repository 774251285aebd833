"""The preparation of a pretrained engine: pixels and token ids, or the vectors of frozen towers, computed once."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from truepair.data.pairs import Array, Images, IntArray, Pairs, Texts
from truepair.data.pictures.frozen_vectors import image_vectors, text_vectors
from truepair.data.preparation import Preparation
from truepair.encoders.decode import pixels_of
from truepair.encoders.encoder import Picture
from truepair.encoders.hf.encoder import PretrainedEncoder
from truepair.encoders.hf.folder import SMALL
from truepair.encoders.hf.model import Opened, Shape, collated
from truepair.errors import InputError

if TYPE_CHECKING:
    from truepair.engines.pretrained.config import PretrainedConfig

ENCODER = "encoder"
"""Folder in that of a run: configuration, tokenizer and image processor of the model it began with."""
_MOST_KNOWN = 6
_SHORTEST = 512
"""Pixels of the shorter side of a picture from outside, which no image processor enlarges to."""
_MOST_KEPT_BYTES = 1 << 30


@dataclass(frozen=True)
class Inputs:
    """Tensors by the names that a tower has for them, one row an item; or `vectors` (B, D) of frozen towers."""

    held: dict[str, Tensor]

    def __len__(self) -> int:
        return len(next(iter(self.held.values())))

    def to(self, device: torch.device) -> Inputs:
        return Inputs({name: tensor.to(device, non_blocking=True) for name, tensor in self.held.items()})

    def piece(self, rows: slice) -> Inputs:
        return Inputs({name: tensor[rows] for name, tensor in self.held.items()})


@dataclass(frozen=True)
class Base:
    """What a pretrained engine is built of.

    Attributes:
        opened: configuration, tokenizer, image processor.
        shape: widths and heads of the model.
        weights: whether `opened` has the weights that training begins with.
    """

    opened: Opened
    shape: Shape
    weights: bool = True


class PixelsAndTokens(Preparation):
    """Batches are `Inputs`.

    Args:
        base: the model that training begins with.
        frozen: the towers stay as they are: batches hold their vectors, in place of pixels and ids.
        identity: of the model: type and digest.
    """

    sizes: Base
    alters = False

    def __init__(self, base: Base, *, frozen: bool, identity: str) -> None:
        self.sizes, self.frozen, self.identity = base, frozen, identity
        self._known: dict[int, tuple[Any, Any]] = {}

    @classmethod
    def of(cls, config: PretrainedConfig) -> PixelsAndTokens:
        """That of training: the model must be there with its weights."""
        opened = config.open()
        return cls(Base(opened, opened.shape), frozen=config.tune == "heads", identity=opened.identity)

    @classmethod
    def read(cls, config: PretrainedConfig, described: dict[str, Any], folder: Path) -> PixelsAndTokens:
        """That of a saved model. Where everything was trained its weights are in the run; else the model that training
        began with is needed as it was.

        Raises:
            InputError: it is gone, or another one.
        """
        identity, frozen = described["identity"], config.tune == "heads"
        if config.tune == "full":
            base = Base(Opened(folder / ENCODER, weights=False), Shape(**described["shape"]), weights=False)
            return cls(base, frozen=frozen, identity=identity)
        opened = config.open()
        if opened.identity != identity:
            raise InputError(
                f"{folder}: its run trained parts of {identity}, and {config.encoder} now holds {opened.identity}; put "
                "back the model as it was. What the run became of it lies whole in its folder pretrained/"
            )
        return cls(Base(opened, opened.shape), frozen=frozen, identity=identity)

    @cached_property
    def encoder(self) -> PretrainedEncoder:
        return PretrainedEncoder(self.sizes.opened, self.sizes.shape.width)

    def images(self, images: Images, rows: IntArray, rng: np.random.Generator | None = None) -> Inputs:
        if self.frozen:
            return Inputs(
                {"vectors": torch.from_numpy(self._computed(images, self._encode_images)[rows].astype(np.float32))}
            )
        kept: dict[int, dict[str, Array]] = self._computed(images, lambda _: {})
        return Inputs(collated([self._prepared(images, row, kept) for row in rows.tolist()]))

    def texts(self, texts: Texts, rows: IntArray, rng: np.random.Generator | None = None) -> Inputs:
        if self.frozen:
            return Inputs(
                {"vectors": torch.from_numpy(self._computed(texts, self._encode_texts)[rows].astype(np.float32))}
            )
        ids = self._computed(texts, self._encode_ids)
        return Inputs(self.sizes.opened.tokens.padded([ids[row] for row in rows]))

    def picture(self, picture: Picture) -> Images:
        pixels = pixels_of(picture, shortest=_SHORTEST)[None]
        return Images(np.zeros((1, 1, 1), np.float16), ("picture",), pictures=pixels)

    def keep(self, texts: Texts) -> None:
        """Read all captions once; those that are too long are counted and told."""
        self._computed(texts, self._encode_texts if self.frozen else self._encode_ids)

    def keep_images(self, images: Images) -> None:
        if self.frozen:
            self._computed(images, self._encode_images)

    def _computed(self, items: Any, compute: Callable[[Any], Any]) -> Any:
        """Once for the same items; the latest few are remembered (train, dev and test)."""
        known = self._known.get(id(items))
        if known is None or known[0] is not items:
            while len(self._known) >= _MOST_KNOWN:
                del self._known[next(iter(self._known))]
            known = self._known[id(items)] = items, compute(items)
        return known[1]

    def _encode_images(self, images: Images) -> Array:
        return image_vectors(images, self.encoder)

    def _encode_texts(self, texts: Texts) -> Array:
        return text_vectors(texts, self.encoder)

    def _prepared(self, images: Images, row: int, kept: dict[int, dict[str, Array]]) -> dict[str, Array]:
        """A picture as the tower takes it; remembered while so many of them fit the memory."""
        if row not in kept:
            made: dict[str, Array] = images.prepared(row, self.encoder)
            if sum(part.nbytes for part in made.values()) * len(images) > _MOST_KEPT_BYTES:
                return made
            kept[row] = made
        return dict(kept[row])

    def _encode_ids(self, texts: Texts) -> list[list[int]]:
        return self.sizes.opened.tokens.encode(texts.captions)

    def check(self, pairs: Pairs) -> None:
        if pairs.texts.features is not None:
            raise InputError(f"{pairs.name}: its texts are vectors, a pretrained model reads words; use --model mlp")
        if not (pairs.images.have_pixels or (self.frozen and pairs.images.encoder == self.identity)):
            raise InputError(
                f"{pairs.name}: its images have features and no pixels, which a pretrained model reads; take a source "
                "of pictures"
            )

    def record(self) -> dict[str, Any]:
        return {"preparation": {"identity": self.identity}}

    def described(self) -> dict[str, Any]:
        return {"identity": self.identity, "shape": asdict(self.sizes.shape)}

    def write(self, folder: Path) -> None:
        """Configuration, tokenizer and image processor go into the folder of the run."""
        into = folder / ENCODER
        into.mkdir(exist_ok=True)
        for path in self.sizes.opened.folder.iterdir():
            if path.name in SMALL:
                shutil.copyfile(path, into / path.name)
