"""The sizes of the engines; importable without torch, so that `--help` is instant."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, get_args

from truepair.errors import InputError

Pooling = Literal["gpo", "mean", "max"]


@dataclass(frozen=True)
class GlobalConfig:
    """Sizes of the global engine."""

    width: int = field(default=256, metadata={"help": "embedding width D (1024 in VSE∞)"})
    word_width: int = field(default=300, metadata={"help": "width of the word embedding (VSE∞)"})
    pooling: Pooling = field(
        default="max",
        metadata={
            "help": "how regions and words become one vector; gpo = generalized pooling (VSE∞), for long training"
        },
    )

    def __post_init__(self) -> None:
        if self.width < 2 or self.word_width < 1:
            raise InputError(f"width is {self.width} and word width {self.word_width}; expected at least 2 and 1")
        if self.pooling not in get_args(Pooling):
            raise InputError(f"pooling is {self.pooling!r}; expected one of {', '.join(get_args(Pooling))}")
