"""Cross entropy with the labels as given: no robustness, the floor of supervised retrieval (UOT-RCL, eq. 2)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from truepair.methods.base import BatchLoss, EpochPosition, Forward
from truepair.methods.labels import LabelMethod
from truepair.methods.preset import LABEL_REASONS, LABEL_TRAINING, Preset, mrl_networks
from truepair.option import Options, option

if TYPE_CHECKING:
    from truepair.correspondence import CorrespondenceMemory


@dataclass(frozen=True)
class CEConfig(Options):
    """Options of cross entropy with prototypes."""

    learns_from_labels: ClassVar[bool] = True
    temperature: float = option(1.0, "temperature τ1 of the class probabilities (UOT-RCL: 1)", above=0)


PRINTED = Preset(
    source="UOT-RCL, eq. 2, in the training of its section V-B",
    models=mrl_networks(),
    method={"temperature": 1.0},
    training=LABEL_TRAINING,
    reasons=LABEL_REASONS,
)


class CrossEntropy(LabelMethod):
    """L_CE of both modalities."""

    name = "ce"
    config: CEConfig
    printed = PRINTED

    def batch_loss(self, forward: Forward, position: EpochPosition, memory: CorrespondenceMemory) -> BatchLoss:
        from truepair.losses.clustering import soft_cross_entropy

        logits = self.logits(forward)
        self.remember_prediction(logits, forward, memory)
        target = self.given.one_hot()[forward.batch.ids.cpu()].to(logits[0])
        return BatchLoss(soft_cross_entropy(logits[0], target) + soft_cross_entropy(logits[1], target), {})
