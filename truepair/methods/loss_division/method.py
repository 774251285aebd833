"""What methods share that divide the pairs by their ranking loss: survey, mixture, exchange between two networks.

Networks learn clean pairs first, so that the losses of mismatched pairs stay larger. Before every epoch after the
warm-up the loss ℓ of all pairs is taken, a mixture of two groups is fitted to it, and a pair is clean if its posterior
w of the lower group exceeds a threshold. Two networks use each other's w, so that neither confirms its own mistakes.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, ClassVar

import torch
from torch import Tensor

from truepair.correspondence import CorrespondenceMemory
from truepair.correspondence.division import Part
from truepair.losses import hinge_ranking
from truepair.methods.base import BatchLoss, EpochPosition, Forward, Method, Stage
from truepair.methods.loss_division.posteriors import clean_posterior
from truepair.methods.pair_field import PairField, PairFields
from truepair.methods.warm_up import check_epochs

SHARED_FIELDS: Mapping[str, PairField] = MappingProxyType(
    {
        "loss": PairField("ranking loss", r"\ell", unit=False, mixture=("loss", "mixture")),
        "weight": PairField("posterior of being clean", "w"),
        "label": PairField("label", "y"),
    }
)


class LossDivision(Method):
    """A method whose options have `margin`, `warm_up_epochs`, `threshold`, `mixture`, and maybe `co_train`.

    Per pair and network the memory holds `loss` ℓ and `weight` w of the last survey, and the `label` last trained on.
    The second network's fields end in `_b`.
    """

    kept: ClassVar[tuple[str, ...]] = ("loss", "weight", "label")
    fields: ClassVar[PairFields] = Method.fields | dict(SHARED_FIELDS)

    def __init__(self, config: Any) -> None:
        super().__init__(config)
        self.networks = 2 if getattr(config, "co_train", False) else 1
        self.suffixes = ("", "_b")[: self.networks]

    def prepare(self, memory: CorrespondenceMemory) -> None:
        super().prepare(memory)
        for suffix in self.suffixes:
            for field in self.kept:
                memory.register(field + suffix, 0.0 if field == "loss" else 1.0)

    def stages(self, epochs: int, decay_after: int | None) -> tuple[Stage, ...]:
        check_epochs(self.name, epochs, self.warm_up_epochs, "to divide the pairs")
        return super().stages(epochs, decay_after)

    def pair_losses(self, similarity: Tensor) -> Tensor:
        """ℓ, (B,): the mean hinge over all negatives, both directions added."""
        return hinge_ranking(similarity, margin=self.config.margin, negatives=len(similarity))

    @property
    def warm_up_epochs(self) -> int:
        """First epochs without a division."""
        return int(self.config.warm_up_epochs)

    def divides(self, position: EpochPosition) -> bool:
        """Whether there is a division in an epoch."""
        return position.epoch > self.warm_up_epochs

    def surveys(self, position: EpochPosition) -> bool:
        return self.divides(position)

    def survey(self, forward: Forward, position: EpochPosition, memory: CorrespondenceMemory) -> None:
        """ℓ of every pair, by each network."""
        for network, suffix in zip(forward.networks, self.suffixes, strict=True):
            memory.write("loss" + suffix, forward.batch.ids, self.pair_losses(network.similarity))

    def start_epoch(self, position: EpochPosition, memory: CorrespondenceMemory) -> dict[str, float]:
        """The division: w of every pair."""
        scalars: dict[str, float] = {}
        for suffix in self.suffixes if self.divides(position) else ():
            found = clean_posterior(memory.read("loss" + suffix), self.config.mixture, position.overall, self.name)
            memory.write("weight" + suffix, None, found.weight)
            scalars |= {name + suffix: value for name, value in found.record.items()}
            scalars["clean_share" + suffix] = float((found.weight > self.config.threshold).float().mean())
        return scalars

    def batch_loss(self, forward: Forward, position: EpochPosition, memory: CorrespondenceMemory) -> BatchLoss:
        self.remember_probability(forward, memory)
        if self.divides(position):
            losses = self.divided_losses(forward, position, memory)
        else:
            losses = [self.warm_up_loss(network.similarity) for network in forward.networks]
        return BatchLoss(torch.stack(losses).sum(dim=0), {})  # no parameter is shared: each learns as if alone

    def warm_up_loss(self, similarity: Tensor) -> Tensor:
        """Loss of every pair before the first division, (B,)."""
        return self.pair_losses(similarity)

    @abstractmethod
    def divided_losses(self, forward: Forward, position: EpochPosition, memory: CorrespondenceMemory) -> list[Tensor]:
        """Loss of every pair by each network, (B,) each, after the division."""

    def weights(self, forward: Forward, memory: CorrespondenceMemory) -> list[Tensor]:
        """w of the batch for each network, (B,) each: from the division of its teacher, the other network or itself."""
        ids = forward.batch.ids
        return [
            memory.read("weight" + teacher, ids).to(network.similarity)
            for network, teacher in zip(forward.networks, reversed(self.suffixes), strict=True)
        ]

    def trains_noisy(self, position: EpochPosition) -> bool:
        """Whether noisy pairs are trained on: from the share `noisy_from` of the epochs after the warm-up on."""
        warm_up = self.warm_up_epochs
        after = position.stages[position.stage].epochs - warm_up
        return bool(position.epoch - warm_up > self.config.noisy_from * after)

    def belief(self, memory: CorrespondenceMemory) -> Tensor:
        """w; with two networks the mean of theirs."""
        return torch.stack([memory.read("weight" + suffix) for suffix in self.suffixes]).mean(dim=0)

    def division(self, memory: CorrespondenceMemory) -> Tensor:
        return torch.where(self.belief(memory) > self.config.threshold, int(Part.CLEAN), int(Part.NOISY))
