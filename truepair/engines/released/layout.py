"""What the layouts of released networks have in common: which of their parameters is which of ours, and of what size.

A full name there is the encoder and the name in its state dict: `img_enc.fc.weight`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from torch import Tensor

from truepair import phrases
from truepair.engines.config import GlobalConfig, SAFConfig, SGRConfig
from truepair.engines.regions_and_words import InputSizes
from truepair.engines.retrieval_model import Needs
from truepair.errors import InputError

PARTS = ("img_enc", "txt_enc", "sim_enc")


@dataclass(frozen=True)
class Architecture:
    """The engine that has the shapes of a released network.

    Attributes:
        kind: "sgr", "saf" or "global".
        config: widths and reasoning steps.
        sizes: feature width, regions and vocabulary size.
        needs: views of the images.
    """

    kind: Literal["sgr", "saf", "global"]
    config: SGRConfig | SAFConfig | GlobalConfig
    sizes: InputSizes
    needs: Needs

    def described(self) -> str:
        """The sizes in words."""
        config, sizes = self.config, self.sizes
        parts = [
            f"feature width {sizes.feature_width}",
            f"{sizes.regions} regions" if sizes.regions else "",
            f"{sizes.vocabulary_size} words of width {config.word_width}",
            f"embedding width {config.width}",
            "" if isinstance(config, GlobalConfig) else f"similarity width {config.similarity_width}",
            f"{config.reasoning_steps} reasoning steps" if isinstance(config, SGRConfig) else "",
            f"{self.needs.views} views" if self.needs.views > 1 else "",
        ]
        return ", ".join(part for part in parts if part)


class Layout(ABC):
    """The parameters of one family of networks.

    Attributes:
        networks: what messages call them, in the plural.
        modules: name there → name in our engine, of every module that has parameters.
        unused: modules there whose parameters change no similarity.
    """

    networks: ClassVar[str]
    modules: ClassVar[Mapping[str, str]]
    unused: ClassVar[frozenset[str]] = frozenset()

    @abstractmethod
    def measured(self, place: str, released: Mapping[str, Tensor], options: Mapping[str, Any]) -> Architecture:
        """The architecture, as the shapes of a few tensors say; the others must fit them.

        Args:
            place: what messages call the network.
            released: tensors by full name.
            options: those of training, as far as the file says.

        Raises:
            InputError: one of these few is missing or of another form.
        """

    @abstractmethod
    def network(self, architecture: Architecture) -> str:
        """What messages call one such network."""

    @abstractmethod
    def hint(self, names: list[str]) -> str:
        """What parameters too many or too few point at, as the end of a sentence that lists them."""

    def our_module(self, theirs: str) -> str | None:
        return self.modules.get(theirs)

    def their_module(self, ours: str) -> str:
        return next(theirs for theirs, name in self.modules.items() if name == ours)

    def our_name(self, theirs: str) -> str | None:
        """The name in our engine of a parameter; None where there is no such module."""
        module, _, parameter = theirs.rpartition(".")
        ours = self.our_module(module)
        return None if ours is None else f"{ours}.{parameter}"

    def their_name(self, ours: str) -> str:
        """The name there of a parameter of our engine."""
        module, _, parameter = ours.rpartition(".")
        return f"{self.their_module(module)}.{parameter}"

    def used(self, theirs: str) -> bool:
        """Whether a parameter has any effect on a similarity."""
        return theirs.rpartition(".")[0] not in self.unused


def shapes(place: str, released: Mapping[str, Tensor], expected: Mapping[str, int], network: str) -> list[list[int]]:
    """The shapes of some tensors, given how many sizes each has."""
    found = []
    for name, dimensions in expected.items():
        if name not in released:
            raise InputError(f"{place} lacks {name}; expected {network}")
        shape = list(released[name].shape)
        if len(shape) != dimensions or 0 in shape:
            raise InputError(f"{place}: {name} has shape {tuple(shape)}; expected {dimensions} sizes")
        found.append(shape)
    return found


def listed(names: Iterable[str]) -> str:
    """The first few of some names, and how many more there are."""
    return phrases.listed(list(names), 4)
