"""The options of an audit; importable without torch, so that `--help` is instant."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Literal

from truepair.errors import InputError

STEPS = 500
LEAST_EPOCHS, MOST_EPOCHS = 6, 40


@dataclass(frozen=True)
class CrossFitting:
    """How pairs without embeddings are scored: by models trained on the other folds."""

    folds: int = field(default=3, metadata={"help": "folds; each pair is scored by the model of its own"})
    method: str = field(default="crcl", metadata={"help": "the robust method the models are trained by"})
    epochs: int | None = field(
        default=None, metadata={"help": f"epochs of each model; default: {STEPS} steps, 6 to 40 epochs"}
    )
    width: int = field(default=256, metadata={"help": "width of the models' encodings"})
    batch_size: int = field(default=128, metadata={"help": "pairs of a training step"})
    synthetic_share: float = field(
        default=0.03, metadata={"help": "share of pairs mismatched on purpose that is added of each kind"}
    )
    device: str = field(default="auto", metadata={"help": "device to train and score on"})

    def __post_init__(self) -> None:
        for name, least in (("folds", 2), ("width", 8), ("batch_size", 2)):
            if getattr(self, name) < least:
                raise InputError(f"{name} is {getattr(self, name)}; expected at least {least}")
        if self.epochs is not None and self.epochs < 1:
            raise InputError(f"epochs is {self.epochs}; expected at least 1")
        if not 0 < self.synthetic_share < 1:
            raise InputError(f"synthetic_share is {self.synthetic_share}; expected a share above 0 and below 1")

    def epochs_for(self, pairs: int) -> int:
        """Epochs on so many pairs: about `STEPS` steps, so that few pairs are seen often enough."""
        if self.epochs is not None:
            return self.epochs
        steps = math.ceil(pairs / self.batch_size)
        return min(max(math.ceil(STEPS / steps), LEAST_EPOCHS), MOST_EPOCHS)


@dataclass(frozen=True)
class AuditOptions:
    """What all audits share."""

    bank: int = field(default=2048, metadata={"help": "pairs that each pair is compared with"})
    rematch: int = field(
        default=5000, metadata={"help": "flagged pairs, the most suspicious first, to find better partners for"}
    )
    keep: float = field(
        default=0.8, metadata={"help": "least probability of the pairs that --export keeps; flagged ones never are"}
    )
    engine: Literal["local", "ray"] = field(
        default="local", metadata={"help": "what scores embeddings: this process, or Ray's workers"}
    )
    workers: int | None = field(
        default=None, metadata={"help": "threads, or tasks at a time on Ray; default: all cores"}
    )
    seed: int = field(default=0, metadata={"help": "seed of everything that is drawn"})

    def __post_init__(self) -> None:
        for name, least in (("bank", 2), ("rematch", 0), ("seed", 0)):
            if getattr(self, name) < least:
                raise InputError(f"{name} is {getattr(self, name)}; expected at least {least}")
        if not 0 <= self.keep <= 1:
            raise InputError(f"keep is {self.keep}; expected a probability in [0, 1]")
        if self.workers is not None and self.workers < 1:
            raise InputError(f"workers is {self.workers}; expected at least 1")
        if self.engine not in ("local", "ray"):
            raise InputError(f"engine is {self.engine!r}; expected local or ray")
