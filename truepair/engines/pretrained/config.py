"""The options of the pretrained engine; importable without torch: `--help` is instant."""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from truepair.data.config import Augmentation, DataConfig
from truepair.encoders import FIRST
from truepair.engines.config import EngineConfig
from truepair.errors import InputError
from truepair.option import option

if TYPE_CHECKING:
    from truepair.data.pairs import Pairs
    from truepair.data.preparation import Preparation
    from truepair.data.text import Vocabulary
    from truepair.engines.retrieval_model import RetrievalModel
    from truepair.engines.similarity import SingleViewEngine

DEFAULT_RATES = {"heads": 5e-4, "lora": 2e-4, "full": 1e-4}
DEFAULT_TOWER_RATES = {"heads": 1.0, "lora": 1.0, "full": 0.1}


@dataclass(frozen=True)
class PretrainedConfig(EngineConfig):
    """How a pretrained model of images and texts is trained."""

    name: ClassVar[str] = "pretrained"
    augments: ClassVar[bool] = False
    starts_trained: ClassVar[bool] = True

    encoder: str = field(default="")
    tune: Literal["heads", "lora", "full"] = option(
        "heads",
        "what is trained: heads = a linear layer on each frozen tower, whose vectors are computed once; lora = "
        "low-rank changes of the towers' linear layers and the last ones; full = everything",
    )
    tower_rate: float | None = option(
        None,
        "learning rate of the towers, in units of --learning-rate, which is that of the last layers; default: 0.1 for "
        "full, 1 for lora. From weights drawn anew: 1",
        above=0,
    )
    lora_rank: int = option(16, "rank of the changes (LoRA: 4 to 64)", least=1)
    lora_dropout: float = option(0.0, "dropout before them", least=0, below=1)
    checkpointing: bool = option(
        False, "gradient checkpointing: a third more time, and far less memory, with the same numbers"
    )
    temperature: Literal["own", "method"] = option(
        "own",
        "what similarities are divided by in training, where the method divides by something: what the model was "
        "trained with, or the method's τ. From weights drawn anew: method",
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        towers, low_rank = ("tower_rate", "checkpointing"), ("lora_rank", "lora_dropout")
        without_effect = {"heads": (*towers, *low_rank), "lora": (), "full": low_rank}[self.tune]
        for each in fields(self):
            if each.name in without_effect and getattr(self, each.name) != each.default:
                option = f"--{each.name}".replace("_", "-")
                raise InputError(f"{option} has no effect on --tune {self.tune}; leave it out, or tune more")
        if Path(self.encoder).is_dir() and self.encoder:
            object.__setattr__(self, "encoder", str(Path(self.encoder).resolve()))

    @cached_property
    def width(self) -> int:  # type: ignore[override]
        """D of the model's vectors."""
        return int(self.open().shape.width)

    @property
    def default_rate(self) -> float:
        return DEFAULT_RATES[self.tune]

    @property
    def relative_tower_rate(self) -> float:
        return DEFAULT_TOWER_RATES[self.tune] if self.tower_rate is None else self.tower_rate

    @classmethod
    def for_data(cls, options: dict[str, Any], data: DataConfig) -> tuple[PretrainedConfig, DataConfig]:
        """It trains the encoder that was asked for. Frozen towers describe the pictures themselves; what learns from
        pixels needs no features, and the cheapest ones are made.
        """
        from truepair.data.open import takes_encoder

        made = cls(**options, encoder=data.encoder or "")
        if not takes_encoder(data.source, data.reading):
            return made, replace(data, encoder=None)
        return made, replace(data, encoder=made.encoder if made.tune == "heads" else FIRST)

    def open(self) -> Any:
        """The model folder (`truepair.encoders.hf.model.Opened`).

        Raises:
            InputError: none is named, or it is none of a model of images and texts.
        """
        from truepair.encoders import encoder_of
        from truepair.encoders.hf.encoder import PretrainedEncoder

        if not self.encoder:
            raise InputError(
                "--model pretrained needs --encoder FOLDER, that of a transformers model of images and texts"
            )
        found = encoder_of(self.encoder)
        if not isinstance(found, PretrainedEncoder):
            raise InputError(
                f"--model pretrained trains a transformers model of images and texts; {self.encoder} is none. Give the "
                "folder of one"
            )
        return found.opened

    def preparation(
        self, pairs: Pairs, *, augmentation: Augmentation, vocabulary: Vocabulary | None, minimum_count: int
    ) -> Preparation:
        from truepair.engines.pretrained.preparation import PixelsAndTokens

        if vocabulary is not None:
            raise InputError("--vocabulary: a pretrained model reads captions by its own tokenizer; leave it out")
        made = PixelsAndTokens.of(self)
        made.check(pairs)
        return made

    def read_preparation(self, described: dict[str, Any], folder: Path) -> Preparation:
        from truepair.engines.pretrained.preparation import PixelsAndTokens

        return PixelsAndTokens.read(self, described, folder)

    def build(self, sizes: Any, *, compared_width: int | None = None) -> SingleViewEngine[Any]:
        from truepair.engines.pretrained.engine import PretrainedEngine

        return PretrainedEngine(self, sizes)

    def publish(self, model: RetrievalModel, folder: Path, facts: dict[str, Any]) -> None:
        from truepair.engines.pretrained.publish import publish

        publish(self, model, folder, facts)
