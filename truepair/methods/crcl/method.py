"""CRCL: cross-modal active complementary learning with self-refining correspondence (NeurIPS 2023).

Two ideas. The active complementary loss (ACL) learns from a pair as far as its label ŷ believes it, and from its
negatives always, in a form that tolerates noise where ŷ is small. Self-refining correspondence correction (SCC) makes
the labels: a moving average of how probable the model found each pair, over several pieces of training, each of which
starts from a fresh network but keeps the labels.
"""

from __future__ import annotations

from types import MappingProxyType

import torch
from torch import Tensor

from truepair.correspondence import CorrespondenceMemory, matching_probability
from truepair.correspondence.division import Part
from truepair.errors import InputError
from truepair.losses import active_complementary, complementary_contrastive
from truepair.methods.base import BatchLoss, EpochPosition, Forward, Method, Stage
from truepair.methods.crcl.as_printed import PRINTED
from truepair.methods.crcl.options import CRCLConfig
from truepair.methods.pair_field import PairField


class CRCL(Method):
    """ACL on labels made by SCC. The label y of every pair lives in the memory as `label`."""

    name = "crcl"
    config: CRCLConfig
    printed = PRINTED
    single_stage = MappingProxyType({"pieces": ()})
    fields = Method.fields | {
        "label": PairField("label", "y"),
        "seen_similarity": PairField("similarity", "S_{ii}", unit=False),
    }

    @property
    def similarity_temperature(self) -> float:
        return self.config.temperature

    def stages(self, epochs: int, decay_after: int | None) -> tuple[Stage, ...]:
        """Self-refining pieces at a constant learning rate, then the last piece with the decay (Algorithm 1)."""
        if self.config.labels != "refined":
            return (Stage(epochs, decay_after),)
        pieces = self.config.pieces
        if pieces is None:
            pieces = default_pieces(epochs, self.config.freeze_epochs)
        if not pieces and epochs <= self.config.freeze_epochs:
            raise InputError(
                f"CRCL without a refining piece needs more epochs than the {self.config.freeze_epochs} with frozen "
                f"labels, found {epochs}; train longer or give it a piece"
            )
        return (*(Stage(piece) for piece in pieces), Stage(epochs, decay_after))

    def prepare(self, memory: CorrespondenceMemory) -> None:
        super().prepare(memory)
        memory.register("label", 1.0)  # every pair counts as matched at first
        memory.register("seen_similarity", 0.0)

    def start_epoch(self, position: EpochPosition, memory: CorrespondenceMemory) -> dict[str, float]:
        """Label update of eq. 11 (SCC), once an epoch from p̂ as last seen in the epoch before."""
        label, probability = memory.read("label"), memory.read("seen_probability")
        if self.config.labels == "refined" and position.epoch > self.config.freeze_epochs:
            if position.stage == 0 and position.epoch == self.config.freeze_epochs + 1:
                label = probability
            else:
                label = self.config.momentum * label + (1 - self.config.momentum) * probability
            memory.write("label", None, label)
        return {
            "label_mean": float(label.mean()),
            "label_below_threshold": float((label < self.config.threshold).float().mean()),
        }

    def batch_loss(self, forward: Forward, position: EpochPosition, memory: CorrespondenceMemory) -> BatchLoss:
        config, similarity, ids = self.config, forward.similarity, forward.batch.ids
        probability = matching_probability(similarity.detach(), temperature=config.temperature)
        memory.write("seen_probability", ids, probability)
        memory.write("seen_similarity", ids, similarity.diagonal())
        if config.labels == "current":
            memory.write("label", ids, probability)
        label = memory.read("label", ids).to(similarity.device)
        label = self.corrected(label) if config.labels == "refined" else label
        if config.complementary == "tan":
            per_pair = active_complementary(
                similarity,
                label,
                temperature=config.temperature,
                scale=config.scale,
                active_weight=config.active_weight,
                exponent=config.exponent,
            )
        else:
            negatives = complementary_contrastive(similarity, temperature=config.temperature, form=config.complementary)
            active = active_complementary(similarity, label, temperature=config.temperature, scale=0.0)
            per_pair = config.active_weight * active + config.scale * negatives
        return BatchLoss(per_pair, {})

    def corrected(self, label: Tensor) -> Tensor:
        """ŷ: labels below ε count as 0 (eq. 12). The stored label keeps its value, so that a pair can come back."""
        return torch.where(label < self.config.threshold, torch.zeros_like(label), label)

    def belief(self, memory: CorrespondenceMemory) -> Tensor:
        return memory.read("label")

    def division(self, memory: CorrespondenceMemory) -> Tensor:
        """Clean where ŷ > 0: the pairs the loss still learns from as pairs."""
        return torch.where(memory.read("label") >= self.config.threshold, int(Part.CLEAN), int(Part.NOISY))


TABLE_5 = {22: (4, 4, 4), 32: (7, 7, 7), 42: (7, 7, 7)}
"""Epochs of the last piece, and of those before it: MS-COCO, Flickr30K, and CC152K with SAF and SGR."""

SHORTEST_OF_THREE = 7
"""Epochs of the paper's pieces on Flickr30K. Shorter ones may refine little (docs/results/products.md)."""


def default_pieces(epochs: int, freeze_epochs: int) -> tuple[int, ...]:
    """Those of Table 5; else three in the proportion of 7 to 32, or where these were short, one of four fifths."""
    if epochs in TABLE_5 and freeze_epochs < min(TABLE_5[epochs]):
        return TABLE_5[epochs]
    piece = round(epochs * 7 / 32)
    return (piece,) * 3 if piece >= SHORTEST_OF_THREE else (max(freeze_epochs + 1, round(epochs * 4 / 5)),)
