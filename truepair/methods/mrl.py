"""MRL: learning cross-modal retrieval with noisy labels (CVPR 2021).

A clustering loss that pulls those pairs most which fit their label already, and a contrast of every item with all
others of both modalities that needs no label.
"""

from __future__ import annotations

from truepair.correspondence import CorrespondenceMemory
from truepair.losses.clustering import multimodal_contrast, robust_clustering
from truepair.methods.base import BatchLoss, EpochPosition, Forward
from truepair.methods.label_configs import MRLConfig
from truepair.methods.labels import LabelMethod


class MRL(LabelMethod):
    """β L_r + (1 − β) L_c (eq. 7)."""

    name = "mrl"

    def __init__(self, config: MRLConfig) -> None:
        self.config = config

    def batch_loss(self, forward: Forward, position: EpochPosition, memory: CorrespondenceMemory) -> BatchLoss:
        config, network, labels = self.config, forward.networks[0], self.given_labels(forward)
        logits = self.logits(forward)
        self.remember_prediction(logits, forward, memory)
        clustering = robust_clustering(logits[0], labels) + robust_clustering(logits[1], labels)
        contrast = multimodal_contrast(network.images, network.texts, temperature=config.temperature)
        loss = config.clustering_weight * clustering + (1 - config.clustering_weight) * contrast
        scalars = {
            "clustering_loss": float(clustering.detach().mean()),
            "contrast_loss": float(contrast.detach().mean()),
        }
        return BatchLoss(loss, scalars)
