"""What every encoder of pictures is: a preparation of pixels, and a tower that makes features of what was prepared.

A new one is a file here with an `Encoder`, and its line in `ENCODERS`; a family of models that lie in folders is a
`Family`, and its line in `FAMILIES` (`truepair.encoders`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float32]
Picture = Path | bytes | npt.NDArray[np.uint8]
"""A picture file, the bytes of one, or pixels (H, W, 3) in RGB."""


class Encoder(ABC):
    """An image encoder: pictures in, R vectors of width D each out.

    Its methods are called by several threads at once; torch computes on one thread in each. The features of a picture
    never depend on the pictures it is encoded with, but for the last bits of a sum.

    Attributes:
        name: what people ask for it by: a name in `ENCODERS`, or the path of a model folder.
        regions: R; 1 for one vector an image.
        width: D.
        batch: pictures to encode at once, where there is memory for it; the same pictures in the same batches give the
            same features bit by bit.
        batch_bytes: memory that encoding a batch takes at its peak, about.
    """

    name: str
    regions: int
    width: int
    batch: int = 32
    batch_bytes: int = 50_000_000

    @abstractmethod
    def identity(self) -> str:
        """A name and a digest of everything that determines the features, as one word that file names may hold.

        Features are kept and runs are recorded under it: two encoders of one identity give the same features.
        """

    @abstractmethod
    def prepare(self, picture: Picture) -> Any:
        """What `encode` takes of one picture: mostly an array of pixels.

        Raises:
            InputError: the file is no picture that can be read, or (`TooFewPixels`) too small.
        """

    @abstractmethod
    def encode(self, prepared: Sequence[Any]) -> Floats:
        """Features (B, R, D) float32 of B prepared pictures, as the tower gives them: not normalised."""


class ImageTextEncoder(Encoder):
    """An encoder with a tower for texts beside that for pictures, both into one space of width D."""

    @abstractmethod
    def encode_texts(self, captions: Sequence[str], moved: Callable[[int], None] = lambda done: None) -> Floats:
        """Vectors (B, D) float32 of B captions, to be compared by their cosines with those of images (R = 1).

        Captions longer than the tower reads are cut, with a warning that counts them.

        Args:
            moved: called with how many are done.
        """


class Family(ABC):
    """Models of one make that lie in folders, each folder one encoder.

    Attributes:
        understood: how such a folder is known, for messages ("a transformers model (config.json, …)").
    """

    understood: str

    @abstractmethod
    def recognises(self, folder: Path) -> bool:
        """Whether the folder holds such a model; nothing but names and small files is read for it."""

    @abstractmethod
    def open(self, folder: Path) -> Encoder:
        """The encoder in a folder that `recognises` knows.

        Raises:
            InputError: the model has no tower for images, or cannot be read; or an extra is missing.
        """

    def fetch(self, name: str) -> Path | None:
        """The folder of a model that is known by a name in a public place; None for a name that is none of its kind.

        Raises:
            InputError: it could not be fetched.
        """
        return None
