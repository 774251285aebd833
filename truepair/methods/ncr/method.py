"""NCR: learning with noisy correspondence for cross-modal matching (NeurIPS 2021).

Two networks divide the pairs for each other by the mixture of their losses. The label of a clean pair is its posterior,
filled up by what the network itself predicts; that of a noisy pair is what both predict. The label sets the margin of
the triplet loss.
"""

from __future__ import annotations

import torch
from torch import Tensor

from truepair.correspondence.slack import predicted_label
from truepair.methods.base import Forward
from truepair.methods.loss_division.soft_margin import SoftMarginDivision
from truepair.methods.ncr.as_printed import PRINTED
from truepair.methods.ncr.options import NCRConfig


class NCR(SoftMarginDivision):
    """The hinge with the hardest negatives, its margin set by the label of the pair."""

    name = "ncr"
    config: NCRConfig
    printed = PRINTED

    def labels(self, forward: Forward, weights: list[Tensor]) -> list[Tensor]:
        """y of the batch for each network, (B,) each in [0, 1].

        A clean pair has w + (1 − w) P by its own prediction, a noisy one the mean of all networks' predictions.
        """
        predictions = [
            predicted_label(self.pair_losses(network.similarity.detach()), self.config.margin)
            for network in forward.networks
        ]
        mean = torch.stack(predictions).mean(dim=0)
        return [
            torch.where(weight > self.config.threshold, weight + (1 - weight) * own, mean)
            for weight, own in zip(weights, predictions, strict=True)
        ]
