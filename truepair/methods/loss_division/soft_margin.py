"""Methods that divide the pairs by their loss and set the margin of the hinge by a label: NCR, BiCro."""

from __future__ import annotations

from abc import abstractmethod

import torch
from torch import Tensor

from truepair.correspondence import CorrespondenceMemory
from truepair.losses import hinge_ranking, soft_margin
from truepair.methods.base import EpochPosition, Forward
from truepair.methods.loss_division.method import LossDivision


class SoftMarginDivision(LossDivision):
    """A `LossDivision` whose options also have `curve` and `noisy_from`.

    After the warm-up it learns by the hinge with the hardest negative, each pair's margin set by its label; noisy
    pairs join late.
    """

    def divided_losses(self, forward: Forward, position: EpochPosition, memory: CorrespondenceMemory) -> list[Tensor]:
        config, losses = self.config, []
        weights = self.weights(forward, memory)
        labels = self.labels(forward, weights)
        for network, suffix, weight, label in zip(forward.networks, self.suffixes, weights, labels, strict=True):
            memory.write("label" + suffix, forward.batch.ids, label)
            margin = soft_margin(label, config.margin, config.curve)
            per_pair = hinge_ranking(network.similarity, margin=margin)
            trained = (weight > config.threshold) | self.trains_noisy(position)
            losses.append(torch.where(trained, per_pair, 0 * per_pair))
        return losses

    @abstractmethod
    def labels(self, forward: Forward, weights: list[Tensor]) -> list[Tensor]:
        """y of the batch for each network, (B,) each in [0, 1], from the division w of its teacher; no gradient."""
