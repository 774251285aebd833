"""ELR-CMR: early-learning regularised contrastive learning for retrieval with noisy labels (ACM MM 2022).

Cross entropy would in time learn the wrong labels too. A regulariser holds on to what was predicted early, the mean of
earlier predictions; a contrast of both modalities needs no label; and the balance moves from labels to contrast.

Decided, since only the idea of each part is published in reach: the regulariser is that of ELR (Liu et al. 2020) on
both modalities with one running target a pair, the contrast is MRL's, the weight of the clustering falls linearly.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from truepair.methods.base import BatchLoss, EpochPosition, Forward
from truepair.methods.labels import LabelMethod
from truepair.methods.preset import LABEL_REASONS, LABEL_TRAINING, Preset, mrl_networks
from truepair.option import SHARE, Options, option

if TYPE_CHECKING:
    from torch import Tensor

    from truepair.correspondence import CorrespondenceMemory


@dataclass(frozen=True)
class ELRCMRConfig(Options):
    """Options of ELR-CMR."""

    learns_from_labels: ClassVar[bool] = True
    temperature: float = option(1.0, "temperature τ of all losses", above=0)
    regularizer_weight: float = option(3.0, "weight λ of the early-learning term (ELR: 3)", least=0)
    momentum: float = option(0.7, "momentum β of the early targets (ELR: 0.7)", **SHARE)
    first_weight: float = option(0.7, "weight of clustering against contrast, first epoch", **SHARE)
    last_weight: float = option(0.3, "the same in the last epoch", **SHARE)


PRINTED = Preset(
    source="training of UOT-RCL, section V-B; λ and β of ELR, since the paper of ELR-CMR was not at hand",
    models=mrl_networks(),
    method={"temperature": 1.0, "regularizer_weight": 3.0, "momentum": 0.7},
    training=LABEL_TRAINING,
    reasons=LABEL_REASONS,
    silent=("how the weight moves from clustering to contrast: linearly, 0.7 to 0.3",),
)


class ELRCMR(LabelMethod):
    """w (L_CE + λ L_ELR) + (1 − w) L_c; per pair the memory holds `early_targets` t (N, K)."""

    name = "elr-cmr"
    config: ELRCMRConfig
    printed = PRINTED

    def prepare(self, memory: CorrespondenceMemory) -> None:
        import torch

        super().prepare(memory)
        memory.register("early_targets", torch.zeros(memory.count, self.given.count))

    def batch_loss(self, forward: Forward, position: EpochPosition, memory: CorrespondenceMemory) -> BatchLoss:
        import torch

        from truepair.losses.clustering import early_learning, multimodal_contrast, soft_cross_entropy

        config, network, ids = self.config, forward.networks[0], forward.batch.ids
        logits = self.logits(forward)
        self.remember_prediction(logits, forward, memory)
        probabilities = [side.softmax(dim=1) for side in logits]
        early = self.update_targets(probabilities, ids, memory)
        given = self.given.one_hot()[ids.cpu()].to(early)
        clustering = torch.stack([soft_cross_entropy(side, given) for side in logits]).sum(dim=0)
        held = torch.stack([early_learning(side, early) for side in probabilities]).sum(dim=0)
        contrast = multimodal_contrast(network.images, network.texts, temperature=config.temperature)
        weight = self.clustering_weight(position)
        loss = weight * (clustering + config.regularizer_weight * held) + (1 - weight) * contrast
        scalars = {
            "clustering_loss": float(clustering.detach().mean()),
            "early_loss": float(held.detach().mean()),
            "contrast_loss": float(contrast.detach().mean()),
        }
        return BatchLoss(loss, scalars)

    def update_targets(self, probabilities: list[Tensor], ids: Tensor, memory: CorrespondenceMemory) -> Tensor:
        """t ← β t + (1 − β) p, with p the mean of both modalities (ELR, eq. 10); returns the new t, (B, K)."""
        import torch

        now = torch.stack([side.detach() for side in probabilities]).mean(dim=0)
        momentum = self.config.momentum
        early: Tensor = momentum * memory.read("early_targets", ids).to(now) + (1 - momentum) * now
        memory.write("early_targets", ids, early)
        return early

    def clustering_weight(self, position: EpochPosition) -> float:
        """w: from its first to its last value, epoch by epoch."""
        config, epochs = self.config, position.stages[position.stage].epochs
        share = (position.epoch - 1) / max(epochs - 1, 1)
        return float(config.first_weight + share * (config.last_weight - config.first_weight))
