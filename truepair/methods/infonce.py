"""InfoNCE: cross entropy of the given pairs among their batch. No robustness; also the oracle's loss."""

from __future__ import annotations

from truepair.correspondence import CorrespondenceMemory
from truepair.losses import info_nce
from truepair.methods.base import BatchLoss, EpochPosition, Forward, Method
from truepair.methods.configs import InfoNCEConfig


class InfoNCE(Method):
    """−(log p_ii + log pᵀ_ii)/2."""

    name = "infonce"

    def __init__(self, config: InfoNCEConfig) -> None:
        self.config = config

    def batch_loss(self, forward: Forward, position: EpochPosition, memory: CorrespondenceMemory) -> BatchLoss:
        self.remember_probability(forward, memory)
        return BatchLoss(info_nce(forward.similarity, temperature=self.config.temperature), {})
