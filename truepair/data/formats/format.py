"""What every kind of source has in common. A new one is a file with a `Format`, and its line in `open.FORMATS`."""

from __future__ import annotations

from abc import ABC, abstractmethod
from pathlib import Path
from typing import TYPE_CHECKING

from truepair.data.config import Reading

if TYPE_CHECKING:
    from truepair.data.collection import Collection
    from truepair.data.description import SplitDescription


class Format(ABC):
    """One kind of source: how it is recognised, which splits it has, and what reads it.

    Attributes:
        holds: what it holds, for messages ("embeddings").
        understood: how to give one, for messages and help.
        options: the names of the options of `Reading` that it takes.
        vectors: whether its texts are vectors, not words.
        collection: what it opens sources as.
    """

    holds: str
    understood: str
    options: frozenset[str] = frozenset()
    vectors = False
    collection: type[Collection]

    @abstractmethod
    def recognises(self, source: str | Path, reading: Reading) -> bool:
        """Whether the source is of this kind; nothing but names and headers is read for it."""

    @abstractmethod
    def splits(self, source: str | Path, reading: Reading) -> tuple[str, ...]:
        """The names of its splits; () where it has none. Raises InputError where the source cannot be read."""

    @abstractmethod
    def open(self, source: str | Path, split: str | None, reading: Reading) -> Collection:
        """The usable pairs of a split that `splits` knows by any of its names. Without one: all, or those of "train".

        Raises:
            InputError: the source or the split cannot be read, or nothing in it can be used.
            TruepairError: the cache of features cannot be written to, or an object store fails.
        """

    def describe(self, source: str | Path, split: str | None, reading: Reading) -> SplitDescription:
        """What a split holds and what is wrong with it."""
        from truepair.data.statistics import describe_collection

        return describe_collection(self.open(source, split, reading))
