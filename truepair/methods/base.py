"""What a method is: the loss of a batch, what it remembers about each pair, and when it starts afresh.

A method never touches files, devices, loaders or the construction of optimizers; the training loop never asks which
method it runs.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

from torch import Tensor

from truepair.correspondence import CorrespondenceMemory, matching_probability
from truepair.data.batch import PairBatch
from truepair.models.similarity import SimilarityEngine


@dataclass(frozen=True)
class Stage:
    """A stretch of training that starts from a newly initialised network and optimizer.

    Attributes:
        epochs: its length.
        decay_after: the learning rate is multiplied by 0.1 after this many of its epochs; None keeps it constant.
    """

    epochs: int
    decay_after: int | None = None


@dataclass(frozen=True)
class EpochPosition:
    """Where training stands: `epoch` counts from 1 within the stage, `stage` from 0."""

    stage: int
    epoch: int
    stages: tuple[Stage, ...]

    @property
    def in_last_stage(self) -> bool:
        return self.stage == len(self.stages) - 1

    @property
    def overall(self) -> int:
        """Epochs of all stages up to and including this one, from 1."""
        return sum(stage.epochs for stage in self.stages[: self.stage]) + self.epoch


class Forward:
    """The views of one batch that a method can ask for; each is computed once, when first asked for."""

    def __init__(self, engine: SimilarityEngine[Any], batch: PairBatch) -> None:
        self.engine = engine
        self.batch = batch

    @cached_property
    def images(self) -> Any:
        """Encodings of the B images."""
        return self.engine.encode_images(self.batch.images)

    @cached_property
    def texts(self) -> Any:
        """Encodings of the B texts."""
        return self.engine.encode_texts(self.batch.texts)

    @cached_property
    def similarity(self) -> Tensor:
        """S, (B, B) float32: row = image, column = text, given pairs on the diagonal."""
        return self.engine.similarity(self.images, self.texts).float()


@dataclass(frozen=True)
class BatchLoss:
    """Loss of every pair of a batch, (B,), and named scalars to log; the loop takes the mean."""

    per_pair: Tensor
    scalars: dict[str, float]


class Method(ABC):
    """What one paper changes. Subclasses hold a small frozen config dataclass of their own.

    Every method keeps the field `seen_probability` p̂: how probable the model found the pair when it last trained on
    it. It is what a method without labels of its own believes about a pair.
    """

    name: ClassVar[str]
    config: Any  # the method's own frozen dataclass
    probability_temperature: ClassVar[float] = 0.05

    def stages(self, epochs: int, decay_after: int | None) -> tuple[Stage, ...]:
        """The stretches of training; the result of the last one, of `epochs` epochs, is the model."""
        return (Stage(epochs, decay_after),)

    def prepare(self, memory: CorrespondenceMemory) -> None:
        """Register the per-pair fields the method keeps."""
        memory.register("seen_probability", 1.0)

    def start_epoch(self, position: EpochPosition, memory: CorrespondenceMemory) -> dict[str, float]:
        """Before the first batch of an epoch; returns named scalars to log."""
        return {}

    @abstractmethod
    def batch_loss(self, forward: Forward, position: EpochPosition, memory: CorrespondenceMemory) -> BatchLoss:
        """Loss of one batch, and what is remembered from it."""

    def belief(self, memory: CorrespondenceMemory) -> Tensor:
        """How much each pair is believed to match, (N,) in [0, 1]."""
        return memory.read("seen_probability")

    def taken_as_matched(self, memory: CorrespondenceMemory) -> Tensor:
        """The method's division of the pairs, (N,) bool."""
        return self.belief(memory) >= 0.5

    def remember_probability(self, forward: Forward, memory: CorrespondenceMemory) -> None:
        """Keep p̂ of the batch (see the class)."""
        probability = matching_probability(forward.similarity.detach(), temperature=self.probability_temperature)
        memory.write("seen_probability", forward.batch.ids, probability)
