"""Cross entropy with the labels as given: no robustness, the floor of supervised retrieval (UOT-RCL, eq. 2)."""

from __future__ import annotations

from truepair.correspondence import CorrespondenceMemory
from truepair.losses.clustering import soft_cross_entropy
from truepair.methods.base import BatchLoss, EpochPosition, Forward
from truepair.methods.label_configs import CEConfig
from truepair.methods.labels import LabelMethod


class CrossEntropy(LabelMethod):
    """L_CE of both modalities."""

    name = "ce"

    def __init__(self, config: CEConfig) -> None:
        self.config = config

    def batch_loss(self, forward: Forward, position: EpochPosition, memory: CorrespondenceMemory) -> BatchLoss:
        logits = self.logits(forward)
        self.remember_prediction(logits, forward, memory)
        target = self.given.one_hot()[forward.batch.ids.cpu()].to(logits[0])
        return BatchLoss(soft_cross_entropy(logits[0], target) + soft_cross_entropy(logits[1], target), {})
