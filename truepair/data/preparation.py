"""`Preparation`: what an engine reads of an image and of a text, as batches that everybody else hands on unopened."""

from __future__ import annotations

from abc import ABC, abstractmethod
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    import numpy as np
    import torch

    from truepair.data.pairs import Images, IntArray, Pairs, Texts
    from truepair.data.text import Vocabulary
    from truepair.encoders.encoder import Picture


class Batch(Protocol):
    """Some images or some texts as an engine reads them; only the engine looks inside."""

    def __len__(self) -> int: ...

    def to(self, device: torch.device) -> Any:
        """The same batch on a device."""


class Preparation(ABC):
    """Made from the training pairs, saved with the model, and the same wherever the model is used.

    Attributes:
        sizes: what the engine is built for; only the engine's own configuration reads it.
        alters: whether it alters items at random, so that a batch is prepared as a whole.
    """

    sizes: Any
    alters: bool = True

    @property
    def embedded_words(self) -> Vocabulary | None:
        """The words that a word embedding of the engine has rows for; None where it has no such embedding."""
        return None

    @abstractmethod
    def images(self, images: Images, rows: IntArray, rng: np.random.Generator | None = None) -> Batch:
        """Some images in the order of `rows`; altered at random, where the preparation does that, if `rng` is given."""

    @abstractmethod
    def texts(self, texts: Texts, rows: IntArray, rng: np.random.Generator | None = None) -> Batch:
        """Some texts in the order of `rows`, as `images`."""

    @abstractmethod
    def check(self, pairs: Pairs) -> None:
        """Refuse pairs that it cannot prepare as it prepared the training pairs.

        Raises:
            InputError: what differs, and what to do.
        """

    @abstractmethod
    def record(self) -> dict[str, Any]:
        """What `config.json` says of it: all that determines its batches, as values that JSON knows."""

    @abstractmethod
    def described(self) -> dict[str, Any]:
        """What the model file says of it: enough to make it again, together with the files that `write` leaves."""

    def picture(self, picture: Picture) -> Images | None:
        """A picture from outside as the one image of some that `images` reads, where it reads pixels; None where it
        reads features, which an encoder makes. An InputError where it is no picture.
        """
        return None

    def write(self, folder: Path) -> None:  # noqa: B027
        """Write the files it needs into the folder of a run; none by default."""

    def keep(self, texts: Texts) -> None:  # noqa: B027
        """Get ready for many batches of these texts; nothing by default."""

    def keep_images(self, images: Images) -> None:  # noqa: B027
        """Get ready for many batches of these images; nothing by default."""
