"""MRL: learning cross-modal retrieval with noisy labels (CVPR 2021).

A clustering loss that pulls those pairs most which fit their label already, and a contrast of every item with all
others of both modalities that needs no label.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from truepair.methods.base import BatchLoss, EpochPosition, Forward
from truepair.methods.labels import LabelMethod
from truepair.methods.preset import LABEL_REASONS, LABEL_TRAINING, Preset, mrl_networks
from truepair.option import SHARE, Options, option

if TYPE_CHECKING:
    from truepair.correspondence import CorrespondenceMemory


@dataclass(frozen=True)
class MRLConfig(Options):
    """Options of MRL; the defaults are those of its released training."""

    learns_from_labels: ClassVar[bool] = True
    temperature: float = option(1.0, "temperature τ of both losses", above=0)
    clustering_weight: float = option(0.7, "weight β of the clustering, 1 − β of the contrast", **SHARE)


PRINTED = Preset(
    source="training of UOT-RCL, section V-B; β and τ as released with MRL, whose paper was not at hand",
    models=mrl_networks(),
    method={"temperature": 1.0, "clustering_weight": 0.7},
    training=LABEL_TRAINING,
    reasons=LABEL_REASONS,
)


class MRL(LabelMethod):
    """β L_r + (1 − β) L_c (eq. 7)."""

    name = "mrl"
    config: MRLConfig
    printed = PRINTED

    def batch_loss(self, forward: Forward, position: EpochPosition, memory: CorrespondenceMemory) -> BatchLoss:
        from truepair.losses.clustering import multimodal_contrast, robust_clustering

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
