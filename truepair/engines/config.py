"""The sizes of the engines; importable without torch, so that `--help` is instant."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal, get_args

from truepair.errors import InputError

Pooling = Literal["gpo", "mean", "max"]


@dataclass(frozen=True)
class GlobalConfig:
    """Sizes of the global engine."""

    width: int = field(default=256, metadata={"help": "embedding width D (1024 in the papers)"})
    word_width: int = field(default=300, metadata={"help": "width of the word embedding (300 in the papers)"})
    pooling: Pooling = field(
        default="max",
        metadata={
            "help": "how regions and words become one vector; gpo = generalized pooling (VSE∞), for long training"
        },
    )

    def __post_init__(self) -> None:
        check_widths(self.width, self.word_width)
        if self.pooling not in get_args(Pooling):
            raise InputError(f"pooling is {self.pooling!r}; expected one of {', '.join(get_args(Pooling))}")


@dataclass(frozen=True)
class SAFConfig:
    """Sizes of the SAF engine (region–word attention, attention filtration) of SGRAF."""

    width: int = field(default=256, metadata={"help": "embedding width D (1024 in the papers)"})
    word_width: int = field(default=300, metadata={"help": "width of the word embedding (300 in the papers)"})
    similarity_width: int = field(default=128, metadata={"help": "width of a similarity vector (256 in SGRAF)"})
    dropout: float = field(
        default=0.4, metadata={"help": "dropout of word embeddings and of the global vectors' attention (SGRAF)"}
    )

    def __post_init__(self) -> None:
        check_widths(self.width, self.word_width)
        if self.similarity_width < 1:
            raise InputError(f"similarity width is {self.similarity_width}; expected at least 1")
        if not 0 <= self.dropout < 1:
            raise InputError(f"dropout is {self.dropout}; expected a value in [0, 1)")


@dataclass(frozen=True)
class SGRConfig(SAFConfig):
    """Sizes of the SGR engine (region–word attention, similarity graph reasoning) of SGRAF."""

    reasoning_steps: int = field(default=3, metadata={"help": "steps of graph reasoning (SGRAF: 3)"})

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.reasoning_steps < 1:
            raise InputError(f"reasoning steps is {self.reasoning_steps}; expected at least 1")


@dataclass(frozen=True)
class MLPConfig:
    """Sizes of the MLP engine (three fully connected layers a side) of MRL and UOT-RCL."""

    width: int = field(default=512, metadata={"help": "embedding width D (512 in MRL and UOT-RCL)"})
    hidden_width: int = field(default=1024, metadata={"help": "width of the two hidden layers (4096 in MRL)"})
    regions: Literal["mean", "joined"] = field(
        default="mean",
        metadata={
            "help": "how regions become one vector: their mean, or one after the other, for a fixed grid; joined "
            "needs --region-share 0"
        },
    )

    def __post_init__(self) -> None:
        check_widths(self.width, self.hidden_width)
        if self.regions not in ("mean", "joined"):
            raise InputError(f"regions is {self.regions!r}; expected mean or joined")


ModelConfig = GlobalConfig | SGRConfig | SAFConfig | MLPConfig

MODELS: dict[str, type[Any]] = {"global": GlobalConfig, "sgr": SGRConfig, "saf": SAFConfig, "mlp": MLPConfig}


def model_name(config: ModelConfig) -> str:
    """The name of an engine on the command line and in a run's configuration."""
    return next(name for name, kind in MODELS.items() if type(config) is kind)


def check_widths(width: int, word_width: int) -> None:
    if width < 2 or word_width < 1:
        raise InputError(f"width is {width} and word width {word_width}; expected at least 2 and 1")
