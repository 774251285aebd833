"""An engine outside the package: it reads the pixels of a picture and the bytes of a caption."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor, nn

from truepair.data.preparation import Preparation
from truepair.engines.config import EngineConfig
from truepair.engines.cosine_engine import CosineEngine, unit_vectors
from truepair.engines.features import Features
from truepair.errors import InputError
from truepair.option import option


@dataclass(frozen=True)
class PixelConfig(EngineConfig):
    """Width of the vectors, and how often a picture is mirrored in training."""

    name: ClassVar[str] = "pixels"
    width: int = option(16, "width of the vectors")
    mirrored: float = option(0.5, "share of the pictures that training mirrors")

    def preparation(self, pairs: Any, **_: Any) -> Preparation:
        if pairs.images.pictures is None:
            raise InputError(f"{pairs.name}: its images have no pixels")
        return PixelsAndBytes(pairs.images.pictures.shape[1:3], self.mirrored)

    def read_preparation(self, described: dict[str, Any], folder: Path) -> Preparation:
        return PixelsAndBytes(tuple(described["size"]), self.mirrored)

    def build(self, sizes: Any, *, compared_width: int | None = None) -> CosineEngine:
        return PixelEngine(self.width)


@dataclass(frozen=True)
class Rows:
    """Tensors with one row an item; only `PixelEngine` knows what they hold."""

    held: tuple[Tensor, ...]

    def __len__(self) -> int:
        return len(self.held[0])

    def to(self, device: torch.device) -> "Rows":
        return Rows(tuple(tensor.to(device) for tensor in self.held))


class PixelsAndBytes(Preparation):
    """Every fourth pixel, mirrored at random in training; and the bytes of a caption."""

    def __init__(self, size: tuple[int, int], mirrored: float) -> None:
        self.sizes, self.mirrored = tuple(map(int, size)), mirrored

    def images(self, images: Any, rows: Any, rng: Any = None) -> Rows:
        pixels = 1 - np.asarray(images.pictures[rows])[:, ::4, ::4].astype(np.float32) / 255
        if rng is not None:
            turned = rng.random(len(rows)) < self.mirrored
            pixels[turned] = pixels[turned, :, ::-1]
        return Rows((torch.from_numpy(pixels),))

    def texts(self, texts: Any, rows: Any, rng: Any = None) -> Rows:
        captions = [texts.captions[row].encode() for row in rows]
        padded = np.zeros((len(rows), max(map(len, captions))), dtype=np.int64)
        for row, caption in enumerate(captions):
            padded[row, : len(caption)] = np.frombuffer(caption, dtype=np.uint8)
        return Rows((torch.from_numpy(padded),))

    def check(self, pairs: Any) -> None:
        if pairs.images.pictures is None or pairs.images.pictures.shape[1:3] != self.sizes:
            raise InputError(f"{pairs.name}: expected pictures of {self.sizes}")

    def record(self) -> dict[str, Any]:
        return {"preparation": {"mirrored": self.mirrored}}

    def described(self) -> dict[str, Any]:
        return {"size": list(self.sizes)}


class PixelEngine(CosineEngine):
    """The colours of a picture, and the pairs of letters of a caption."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.vector_width = width
        self.regions = self.new_region_encoder()
        self.letters = nn.Embedding(1 << 12, width)

    def new_region_encoder(self) -> nn.Module:
        return nn.Sequential(nn.Linear(3, 64), nn.ReLU(), nn.Linear(64, self.vector_width))

    def image_features(self, images: Any, regions: nn.Module | None = None) -> Features:
        return Features(unit_vectors((regions or self.regions)(images.held[0]).mean(dim=(1, 2))))

    def text_features(self, texts: Any) -> Features:
        letters = texts.held[0]
        present = (letters[:, 1:] > 0).float()
        hashed = (letters[:, :-1] * 31 + letters[:, 1:]) % (1 << 12)
        vectors = self.letters(hashed) * present[..., None]
        return Features(unit_vectors(vectors.sum(dim=1)))
