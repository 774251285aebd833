"""BiCro: noisy correspondence rectification via bidirectional cross-modal similarity consistency (CVPR 2023).

A pair is believed as far as it stands to a clean pair alike on both sides: the clean pair with the nearest image should
have a text that is as near, and the one with the nearest text an image that is. Two networks make these labels for each
other from the division of their losses; the label sets the margin of the triplet loss.
"""

from __future__ import annotations

import torch
from torch import Tensor

from truepair.correspondence import CorrespondenceMemory
from truepair.correspondence.consistency import bidirectional_consistency
from truepair.correspondence.division import Part
from truepair.correspondence.slack import foremost
from truepair.methods.base import Forward, NetworkForward
from truepair.methods.bicro.as_printed import PRINTED
from truepair.methods.bicro.options import BiCroConfig
from truepair.methods.loss_division.soft_margin import SoftMarginDivision


class BiCro(SoftMarginDivision):
    """The hinge with the hardest negatives, its margin set by the label that the other network gives the pair."""

    name = "bicro"
    config: BiCroConfig
    printed = PRINTED

    def warm_up_loss(self, similarity: Tensor) -> Tensor:
        """ℓ of the pairs with the smallest ones, 0 for all others, (B,)."""
        losses = self.pair_losses(similarity)
        kept = losses.detach().argsort(stable=True)[: max(1, int(self.config.warm_up_share * len(losses)))]
        chosen = torch.zeros_like(losses)
        chosen[kept] = 1
        return losses * chosen

    def labels(self, forward: Forward, weights: list[Tensor]) -> list[Tensor]:
        """Those that the other network gives, with one network its own."""
        teachers = reversed(forward.networks)
        return [self.labels_by(teacher, weight) for teacher, weight in zip(teachers, weights, strict=True)]

    def labels_by(self, teacher: NetworkForward, weight: Tensor) -> Tensor:
        """y, (B,) in [0, 1], by the encodings and the division w of the teacher.

        Anchors, the clean pairs that rank first by most, have 1; other clean pairs ½ + c/2; noisy ones c, but 0 up to
        the least label.
        """
        clean = weight > self.config.threshold
        places = clean.nonzero()[:, 0]
        losses = self.pair_losses(teacher.similarity.detach())
        # That with the smallest loss has the largest slack, but beyond the margin, where all have none.
        anchors = places[foremost(-losses[places])] if len(places) else places
        consistency = bidirectional_consistency(teacher.image_vectors, teacher.text_vectors, anchors).to(weight)
        doubted = torch.where(consistency > self.config.least_label, consistency, 0.0)
        label = torch.where(clean, 0.5 + consistency / 2, doubted)
        label[anchors] = 1
        return label

    def belief(self, memory: CorrespondenceMemory) -> Tensor:
        """The label; with two networks the mean of theirs."""
        return torch.stack([memory.read("label" + suffix) for suffix in self.suffixes]).mean(dim=0)

    def division(self, memory: CorrespondenceMemory) -> Tensor:
        """By the labels, which are above ½ or 0."""
        return torch.where(self.belief(memory) >= 0.5, int(Part.CLEAN), int(Part.NOISY))
