"""OSA: one-step anti-noise, weights from a pretrained model as it is (2024; later "debiased orthogonal boundary").

A model that was trained on far more pairs already knows which captions are odd. Its similarities before training,
measured from where unrelated pairs lie, weigh the pairs once and for all: no division, no memory, no second pass.
"""

from __future__ import annotations

import logging
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from truepair.engines.pretrained.config import PretrainedConfig
from truepair.errors import InputError
from truepair.methods.base import BatchLoss, EpochPosition, Forward, Method, Stage
from truepair.methods.pair_field import PairField
from truepair.methods.preset import COMMON, Preset
from truepair.methods.warm_up import check_epochs
from truepair.option import Options, option

if TYPE_CHECKING:
    from torch import Tensor

    from truepair.correspondence import CorrespondenceMemory

logger = logging.getLogger(__name__)

BEST = 0.99
"""The quantile of the excesses that counts as the best a pair can have."""


@dataclass(frozen=True)
class OSAConfig(Options):
    """Options of OSA."""

    threshold: float | None = option(
        None,
        "score θ of an unrelated pair, up to which a pair weighs nothing, where --pair-scores are given; default: 0",
    )
    temperature: float = option(0.05, "temperature τ of both softmaxes (a pretrained model has its own)", above=0)
    weight: Literal["quantile", "released"] = option(
        "quantile",
        "weight of a pair from its excess over unrelated pairs: x² up to 1, x in units of the 0.99 quantile of all; or "
        "x² (1 − x²), x in units of the best of the batch, as released, by which the best pair of a batch weighs 0",
    )
    warm_up_epochs: int = option(
        0,
        "first epochs without weights, after which the model as it then is weighs the pairs; for engines that start "
        "from weights drawn anew",
        least=0,
    )


PRINTED = Preset(
    source='OSA (2024; later "debiased orthogonal boundary"), settings of its README with ViT-B/32',
    models={"pretrained": PretrainedConfig(tune="full")},
    method={"temperature": 0.05, "weight": "released", "warm_up_epochs": 0},
    training={
        "epochs": 5,
        "batch_size": 256,
        "learning_rate": 1e-5,
        "schedule": "cosine",
        "optimizer": "adamw",
        "weight_decay": 0.2,
        "clip": 0.0,
    },
    reasons={
        **COMMON,
        "model": "a pretrained model is to be given (--model pretrained --encoder FOLDER)",
        "method.weight": "as released the best pair of a batch weighs nothing, and one of 0.7 of its excess most",
        "training.batch_size": "128 in four of the five papers",
        "training.schedule": "one schedule for all methods: a tenth, once",
        "training.clip": "one default for all methods, that of VSE++",
    },
    silent=(
        "τ: that of the pretrained model is trained on, as by default",
        "where unrelated pairs lie: there the mean score of random pixels and random word pieces, here of the wrong "
        "pairs of each batch, which any engine has; of scores from a file (--pair-scores) --osa-threshold says it",
        "in what order the batch enters the weight: the paper's scoring has no such term, the released code has",
    ),
    not_expressed=(
        "500 steps of a rising rate (--warm-up takes a share of the steps), and β of AdamW 0.9, 0.98",
        "weights in half precision",
        "CC120K has 10 epochs: give these",
        "its weights as the first labels of another method: other methods take no --pair-scores",
    ),
    equations={
        "scores, and where unrelated pairs lie": "methods.osa:OSA.survey",
        "weight": "methods.osa:OSA.batch_weight",
        "weighted loss": "methods.osa:OSA.batch_loss",
    },
)


class OSA(Method):
    """w (−log p_ii − log pᵀ_ii)/2.

    Per pair the memory holds what the one survey found: `prior` s, its similarity, `background`, the mean of its two
    items' similarities to the others of the batch; and `excess` of s over the mean background, and `weight` w. Where
    scores are given (`Pairs.scores`) these are s, `threshold` is the background, and nothing is surveyed.
    """

    name = "osa"
    reads_scores = True
    config: OSAConfig
    printed = PRINTED
    fields = Method.fields | {
        "prior": PairField("similarity before training", "s", unit=False),
        "background": PairField("similarity of unrelated pairs", r"\theta", unit=False),
        "excess": PairField("excess", unit=False),
        "weight": PairField("weight", "w"),
    }

    def __init__(self, config: OSAConfig) -> None:
        super().__init__(config)
        self.given = False  # scores by somebody else's model

    @property
    def similarity_temperature(self) -> float:
        return self.config.temperature

    @property
    def trusts_the_start(self) -> bool:
        return self.config.warm_up_epochs == 0

    def prepare(self, memory: CorrespondenceMemory) -> None:
        super().prepare(memory)
        self.given = memory.scores is not None
        if self.config.threshold is not None and not self.given:
            raise InputError(
                f"threshold is {self.config.threshold}, and without given scores it is that of the wrong pairs of each "
                "batch; leave it out, or give --pair-scores"
            )
        memory.register("prior", 0.0 if memory.scores is None else memory.scores)
        memory.register("background", self.config.threshold or 0.0)
        memory.register("excess", 0.0)
        memory.register("weight", 1.0)

    def stages(self, epochs: int, decay_after: int | None) -> tuple[Stage, ...]:
        check_epochs("OSA", epochs, self.config.warm_up_epochs, "to weigh the pairs")
        return super().stages(epochs, decay_after)

    def weighs(self, position: EpochPosition) -> bool:
        return position.epoch == self.config.warm_up_epochs + 1

    def surveys(self, position: EpochPosition) -> bool:
        return self.weighs(position) and not self.given

    def survey(self, forward: Forward, position: EpochPosition, memory: CorrespondenceMemory) -> None:
        """s of every pair, and how similar its items are to those of the other pairs of the batch, on the mean."""
        similarity, ids = forward.similarity, forward.batch.ids
        own, others = similarity.diagonal(), 2 * max(len(similarity) - 1, 1)
        memory.write("prior", ids, own)
        memory.write("background", ids, (similarity.sum(dim=0) + similarity.sum(dim=1) - 2 * own) / others)

    def start_epoch(self, position: EpochPosition, memory: CorrespondenceMemory) -> dict[str, float]:
        """The excess of every pair over the mean background θ, and its weight."""
        import torch

        if not self.weighs(position):
            return {}
        threshold = memory.read("background").mean()
        excess = (memory.read("prior") - threshold).clamp(min=0)
        memory.write("excess", None, excess)
        best = excess.kthvalue(math.ceil(BEST * len(excess))).values
        if best > 0:
            weight = (excess / best).clamp(max=1).square()
        else:
            logger.warning("OSA: no pair is more similar than unrelated ones (%.3f); all weigh the same", threshold)
            weight = torch.ones_like(excess)
            memory.write("excess", None, weight)
        memory.write("weight", None, weight)
        return {"background": float(threshold), "weight_mean": float(weight.mean())}

    def batch_loss(self, forward: Forward, position: EpochPosition, memory: CorrespondenceMemory) -> BatchLoss:
        from truepair.losses import info_nce

        self.remember_probability(forward, memory)
        loss = info_nce(forward.similarity, temperature=self.config.temperature)
        if position.epoch <= self.config.warm_up_epochs:
            return BatchLoss(loss, {})
        return BatchLoss(self.batch_weight(forward.batch.ids, memory).to(loss) * loss, {})

    def batch_weight(self, ids: Tensor, memory: CorrespondenceMemory) -> Tensor:
        """w of the pairs of a batch, (B,) in [0, 1]."""
        if self.config.weight == "quantile":
            return memory.read("weight", ids)
        excess = memory.read("excess", ids)
        square = (excess / excess.max()).square() if excess.max() > 0 else excess
        return square * (1 - square)

    def belief(self, memory: CorrespondenceMemory) -> Tensor:
        return memory.read("weight")

    def division(self, memory: CorrespondenceMemory) -> Tensor:
        """By the two groups of the weights: a square of a share has no threshold of its own."""
        from truepair.correspondence.division import divide_by_odds

        return divide_by_odds(self.belief(memory))
