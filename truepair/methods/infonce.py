"""InfoNCE: cross entropy of the given pairs among their batch. No robustness; also the oracle's loss."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from truepair.data.config import Augmentation
from truepair.methods.base import BatchLoss, EpochPosition, Forward, Method
from truepair.methods.preset import CLIPPING, COMMON, DECAY_ONCE, Preset, sgraf
from truepair.option import Options, option

if TYPE_CHECKING:
    from truepair.correspondence import CorrespondenceMemory


@dataclass(frozen=True)
class InfoNCEConfig(Options):
    """Options of the InfoNCE baseline."""

    temperature: float = option(0.05, "temperature τ of both softmaxes (as in CRCL)", above=0)


PRINTED = Preset(
    source="no paper of its own: eq. 3 of CRCL as a loss, in the training that CRCL prints in Table 5",
    models=sgraf(),
    method={"temperature": 0.05},
    training={"epochs": 32, "batch_size": 128, "learning_rate": 5e-4, "decay_after": 15, **DECAY_ONCE},
    augmentation=Augmentation(word_share=0.2, region_share=0.2),
    reasons=COMMON,
    silent=(CLIPPING,),
)


class InfoNCE(Method):
    """−(log p_ii + log pᵀ_ii)/2."""

    name = "infonce"
    config: InfoNCEConfig
    printed = PRINTED

    @property
    def similarity_temperature(self) -> float:
        return self.config.temperature

    def batch_loss(self, forward: Forward, position: EpochPosition, memory: CorrespondenceMemory) -> BatchLoss:
        from truepair.losses import info_nce

        self.remember_probability(forward, memory)
        return BatchLoss(info_nce(forward.similarity, temperature=self.config.temperature), {})
