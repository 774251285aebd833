"""Triplet: hinge ranking with hardest negatives (VSE++). No robustness: the floor."""

from __future__ import annotations

from truepair.correspondence import CorrespondenceMemory
from truepair.losses import hinge_ranking
from truepair.methods.base import BatchLoss, EpochPosition, Forward, Method
from truepair.methods.configs import TripletConfig


class Triplet(Method):
    """[α − S_ii + max_{j≠i} S_ij]₊ + [α − S_ii + max_{j≠i} S_ji]₊."""

    name = "triplet"

    def __init__(self, config: TripletConfig) -> None:
        self.config = config

    def batch_loss(self, forward: Forward, position: EpochPosition, memory: CorrespondenceMemory) -> BatchLoss:
        self.remember_probability(forward, memory)
        negatives = None if position.epoch <= self.config.warm_up_epochs else 1
        per_pair = hinge_ranking(forward.similarity, margin=self.config.margin, negatives=negatives)
        return BatchLoss(per_pair, {})
