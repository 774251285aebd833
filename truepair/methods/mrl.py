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
    source="MRL (CVPR 2021), section 4.1, trained as by UOT-RCL, section V-B",
    models=mrl_networks(),
    method={"temperature": 1.0, "clustering_weight": 0.7},
    training=LABEL_TRAINING,
    reasons=LABEL_REASONS,
    silent=(
        "β: chosen on validation for each data set; 0.7 in the released command for Wikipedia",
        "how the learning rate falls: in the released code along half a cosine, with Adam's first moment at 0.5; "
        "UOT-RCL says nothing of either",
    ),
    not_expressed=(
        "batches of 50 (Wikipedia), 200 (INRIA-Websearch) and 500 (NUS-WIDE, XMediaNet): those here are UOT-RCL's, one "
        "for all methods that it compares",
        "eq. 6 compares an item with itself, too; not followed, nor by the released code",
    ),
    equations={
        "5: robust clustering": "losses.clustering:robust_clustering",
        "6, 7: multimodal contrast": "losses.clustering:multimodal_contrast",
        "8: the whole": "methods.mrl:MRL.batch_loss",
    },
)


class MRL(LabelMethod):
    """β L_r + (1 − β) L_c (eq. 8)."""

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
