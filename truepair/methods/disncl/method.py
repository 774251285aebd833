"""DisNCL: disentangled noisy correspondence learning.

What an image and its text share, and what only one of them has, are parted into subspaces by information terms, some
raised and some lowered against discriminators. Pairs are compared in the invariant subspace alone: what only one of
them has cannot mislead the similarity. There, the pairs of a batch that are each other's best are clean; they are
ranked with soft margins, and each direction learns soft targets from the other.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from truepair.correspondence import CorrespondenceMemory
from truepair.correspondence.division import Part
from truepair.correspondence.mutual_best import mutual_best
from truepair.errors import DivergedError
from truepair.losses import hardness, hinge_ranking, soft_alignment, soft_margin, trusted_ranking
from truepair.methods.base import BatchLoss, EpochPosition, Forward, Method
from truepair.methods.disncl.as_printed import PRINTED
from truepair.methods.disncl.auxiliary import AuxiliaryDisentangler
from truepair.methods.disncl.disentanglers import Term, select_parts
from truepair.methods.disncl.options import DisNCLConfig
from truepair.methods.warm_up import check_epochs


class DisNCL(Method):
    """Four heads, their disentangler, a clean set a batch.

    Per pair the memory holds `seen_probability` p̂ of the invariant parts, which is what the method believes, and
    `clean`: 1 where the pair was in the clean set when it was last trained on.
    """

    name = "disncl"
    config: DisNCLConfig
    printed = PRINTED

    def __init__(self, config: DisNCLConfig) -> None:
        super().__init__(config)
        self.auxiliary = AuxiliaryDisentangler(config)

    def prepare(self, memory: CorrespondenceMemory) -> None:
        super().prepare(memory)
        memory.register("clean", 1.0)

    def stages(self, epochs: int, decay_after: int | None) -> Any:
        check_epochs("DisNCL", epochs, self.config.warm_up_epochs, "to divide the pairs")
        return super().stages(epochs, decay_after)

    # III-D to III-F: the loss

    def batch_loss(self, forward: Forward, position: EpochPosition, memory: CorrespondenceMemory) -> BatchLoss:
        """(L_Dis + L_align + L_soft + L_reg)/B (eq. 8), of the clean set; to warm up L_align of all.

        L_align and L_soft are sums over the clean set, information and divergence expectations, as printed: one clean
        pair more adds to the former alone.
        """
        config, similarity, ids = self.config, forward.networks[0].similarity, forward.batch.ids
        clean = mutual_best(similarity.detach())
        self.remember_probability(forward, memory)
        memory.write("clean", ids, clean.float())
        scalars = {"clean_share": float(clean.float().mean())}
        if position.epoch <= config.warm_up_epochs:
            return BatchLoss(self.warm_up_loss(similarity, position), scalars)
        align = self.alignment_loss(similarity, clean)
        soft = clean * soft_alignment(
            similarity, temperature=config.temperature, given=config.given_weight, log_floor=config.log_floor
        )
        scalars |= {"align": float(align.detach().mean()), "soft": float(soft.detach().mean())}
        total = config.align_weight * align + config.soft_weight * soft
        for term in self.terms(forward, clean):
            scalars[term.name] = float(term.value.detach())
            total = total + term.loss / len(clean)
        return BatchLoss(total, scalars)

    def warm_up_loss(self, similarity: Tensor, position: EpochPosition) -> Tensor:
        """L_align of all pairs with a constant margin, (B,)."""
        step, total = (position.epoch - 1) * position.steps + position.step, self.config.warm_up_epochs * position.steps
        least = max(int(self.config.warm_up_least * position.batch_size), 1)
        negatives = {
            "falling": hardness(step, total, position.batch_size, least=least),
            "all": max(len(similarity) - 1, 1),
            "hardest": 1,
        }[self.config.warm_up_negatives]
        return hinge_ranking(similarity, margin=self.config.margin, negatives=negatives)

    def alignment_loss(self, similarity: Tensor, clean: Tensor) -> Tensor:
        """L_align, (B,), 0 outside the clean set: hardest negatives of the batch, soft margin of S_ii (eq. 3)."""
        trust = similarity.detach().diagonal().clamp(0, 1)
        margin = soft_margin(trust, self.config.margin, self.config.curve)
        return trusted_ranking(similarity, margin=margin, negatives=clean.long())

    def terms(self, forward: Forward, clean: Tensor) -> list[Term]:
        """The terms of the disentangler; none where fewer than two pairs are clean."""
        disentangler: Any = forward.auxiliary
        if disentangler is None or int(clean.sum()) < 2:
            return []
        image, text = (select_parts(side, clean) for side in forward.networks[0].parts)
        terms: list[Term] = disentangler.terms(image, text)
        return terms

    def finish_epoch(self, position: EpochPosition, memory: CorrespondenceMemory) -> dict[str, float]:
        """Raises DivergedError: after the warm-up hardly any pair is its own best any more."""
        share = float(memory.read("clean").mean())
        if position.epoch > self.config.warm_up_epochs and share < self.config.least_clean:
            raise DivergedError(
                f"DisNCL diverged: in epoch {position.overall} only {100 * share:.2f} % of the pairs were each other's "
                f"best in their batch (least_clean: {100 * self.config.least_clean:g} %), so there is nothing left to "
                "learn from. Lower the learning rate, or warm up longer"
            )
        return {}

    # II: what is believed

    def division(self, memory: CorrespondenceMemory) -> Tensor:
        """The pairs that were in the clean set of their batch, and the others."""
        return torch.where(memory.read("clean") > 0.5, int(Part.CLEAN), int(Part.NOISY))
