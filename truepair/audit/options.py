"""The options of an audit; importable without torch, so that `--help` is instant."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from truepair.errors import InputError
from truepair.option import option

STEPS = 500
LEAST_EPOCHS, MOST_EPOCHS = 6, 40


@dataclass(frozen=True)
class CrossFitting:
    """How pairs without embeddings are scored: by models trained on the other folds."""

    folds: int = option(3, "folds; each pair is scored by the model of its own")
    method: str = option("crcl", "the robust method the models are trained by")
    epochs: int | None = option(None, f"epochs of each model; default: {STEPS} steps, 6 to 40 epochs")
    width: int = option(256, "width of the models' encodings")
    batch_size: int = option(128, "pairs of a training step")
    synthetic_share: float = option(0.03, "share of pairs mismatched on purpose that is added of each kind")
    device: str = option("auto", "device to train and score on")

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

    bank: int = option(2048, "pairs that each pair is compared with")
    rematch: int = option(5000, "flagged pairs, the most suspicious first, to find better partners for")
    keep: float = option(0.8, "least probability of the pairs that --export keeps; flagged ones never are")
    engine: Literal["local", "ray"] = option("local", "what scores embeddings: this process, or Ray's workers")
    workers: int | None = option(None, "threads, or tasks at a time on Ray; default: all cores")
    seed: int = option(0, "seed of everything that is drawn")

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
