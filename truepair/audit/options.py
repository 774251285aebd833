"""The options of an audit; importable without torch, so that `--help` is instant."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from truepair.option import SHARE, Options, option

STEPS, WIDTH = 500, 256
FEW, STEPS_OF_FEW, WIDTH_OF_FEW = 4000, 320, 128
"""From fewer than 4,000 pairs a smaller model learns as much in half the time (docs/results/audit.md)."""
LEAST_EPOCHS, MOST_EPOCHS = 6, 40


@dataclass(frozen=True)
class CrossFitting(Options):
    """How pairs without embeddings are scored: by models trained on the other folds."""

    folds: int = option(3, "folds; each pair is scored by the model of its own", least=2)
    method: str = option("crcl", "the robust method the models are trained by")
    epochs: int | None = option(
        None,
        f"epochs of each model, of CRCL those of its last stage; default: {STEPS} steps, of fewer than {FEW:,} pairs "
        f"{STEPS_OF_FEW}, in {LEAST_EPOCHS} to {MOST_EPOCHS} epochs",
        least=1,
    )
    width: int | None = option(
        None, f"width of the models' encodings; default: {WIDTH}, of fewer than {FEW:,} pairs {WIDTH_OF_FEW}", least=8
    )
    batch_size: int = option(128, "pairs of a training step", least=2)
    synthetic_share: float = option(
        0.03, "share of pairs mismatched on purpose that is added of each kind", above=0, below=1
    )
    device: str = option("auto", "device to train and score on")

    def epochs_for(self, pairs: int) -> int:
        """Epochs on so many pairs: about as many steps as the option says, so that few pairs are seen often enough."""
        if self.epochs is not None:
            return self.epochs
        steps = STEPS_OF_FEW if pairs < FEW else STEPS
        epochs = math.ceil(steps / math.ceil(pairs / self.batch_size))
        return min(max(epochs, LEAST_EPOCHS), MOST_EPOCHS)

    def width_for(self, pairs: int) -> int:
        """Width of a model of so many pairs."""
        if self.width is not None:
            return self.width
        return WIDTH_OF_FEW if pairs < FEW else WIDTH


@dataclass(frozen=True)
class AuditOptions(Options):
    """What all audits share."""

    bank: int = option(2048, "pairs that each pair is compared with", least=2)
    rematch: int = option(
        5000, "number of flagged pairs, the most suspicious first, for which better partners are looked for", least=0
    )
    keep: float = option(0.8, "least probability of the pairs that --export keeps; flagged ones never are", **SHARE)
    engine: Literal["local", "ray"] = option("local", "what scores embeddings: this process, or Ray's workers")
    workers: int | None = option(None, "threads, or tasks at a time on Ray; default: all cores", least=1)
    seed: int = option(0, "seed of everything that is drawn", least=0)
