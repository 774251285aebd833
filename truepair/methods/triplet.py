"""Triplet: hinge ranking with hardest negatives (VSE++). No robustness: the floor."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from truepair.engines.config import GlobalConfig
from truepair.methods.base import BatchLoss, EpochPosition, Forward, Method
from truepair.methods.preset import COMMON, DECAY_ONCE, Preset
from truepair.option import Options, option

if TYPE_CHECKING:
    from truepair.correspondence import CorrespondenceMemory


@dataclass(frozen=True)
class TripletConfig(Options):
    """Options of the triplet baseline."""

    margin: float = option(0.2, "margin α of the hinge (VSE++)", least=0)
    warm_up_epochs: int = option(1, "first epochs on all negatives instead of the hardest one (VSE∞: 1)", least=0)


PRINTED = Preset(
    source="VSE++ (BMVC 2018), section 4, with the encoders of the global engine",
    models={"global": GlobalConfig(width=1024, word_width=300, pooling="mean")},
    method={"margin": 0.2, "warm_up_epochs": 0},
    training={
        "epochs": 30,
        "batch_size": 128,
        "learning_rate": 2e-4,
        "decay_after": 15,
        **DECAY_ONCE,
        "optimizer": "adam",
        "weight_decay": 0.0,
        "clip": 2.0,
    },
    reasons={**COMMON, "method.warm_up_epochs": "from scratch, the hardest negatives alone may teach nothing (VSE∞)"},
    not_expressed=("its encoders: one vector of a CNN an image, the last state of a one-way GRU a caption",),
)


class Triplet(Method):
    """[α − S_ii + max_{j≠i} S_ij]₊ + [α − S_ii + max_{j≠i} S_ji]₊."""

    name = "triplet"
    config: TripletConfig
    printed = PRINTED

    def batch_loss(self, forward: Forward, position: EpochPosition, memory: CorrespondenceMemory) -> BatchLoss:
        from truepair.losses import hinge_ranking

        self.remember_probability(forward, memory)
        negatives = None if position.epoch <= self.config.warm_up_epochs else 1
        per_pair = hinge_ranking(forward.similarity, margin=self.config.margin, negatives=negatives)
        return BatchLoss(per_pair, {})
