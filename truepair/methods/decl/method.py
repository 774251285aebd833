"""DECL: deep evidential cross-modal learning and retrieval (ACM MM 2022).

Similarities are evidence for a Dirichlet distribution over the candidates. Before each epoch after the warm-up a pair
is called clean if of its batch the given partner has the most evidence, counted both ways. A clean pair is to draw all
evidence to its partner and ranks against its hardest negatives; a noisy pair is taught to give no evidence at all.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from truepair.correspondence import CorrespondenceMemory
from truepair.correspondence.division import Part
from truepair.correspondence.opinions import background_evidence, bidirectional, exponential_evidence
from truepair.losses import evidential, hinge_ranking
from truepair.losses.trusted import hardness
from truepair.methods.base import BatchLoss, EpochPosition, Forward, Method, NetworkForward, Stage
from truepair.methods.decl.as_printed import PRINTED
from truepair.methods.decl.options import DECLConfig
from truepair.methods.pair_field import PairField
from truepair.methods.warm_up import check_epochs

SLOPE = 0.025  # η of the paper, negatives a step


class DECL(Method):
    """L_e + λ1 L_h on labels of 0 or 1.

    Per pair the memory holds `label` l, and what the last survey (in the warm-up: the last batch) found: `share`, the
    part of the evidence that speaks for the given partner, and `uncertainty` u.
    """

    name = "decl"
    config: DECLConfig
    printed = PRINTED
    fields = Method.fields | {
        "label": PairField("label", "l"),
        "share": PairField("share of the evidence"),
        "uncertainty": PairField("uncertainty", "u", unit=False),
    }

    def prepare(self, memory: CorrespondenceMemory) -> None:
        super().prepare(memory)
        memory.register("label", 1.0)
        memory.register("share", 1.0)
        memory.register("uncertainty", 0.0)

    def stages(self, epochs: int, decay_after: int | None) -> tuple[Stage, ...]:
        check_epochs("DECL", epochs, self.config.warm_up_epochs, "to divide the pairs")
        return super().stages(epochs, decay_after)

    def evidence(self, network: NetworkForward) -> Tensor:
        """e of every image (row) for every text, (B, B) ≥ 0."""
        config, ranking = self.config, network.view_rankings[0]
        if config.evidence == "exp_tanh":
            return exponential_evidence(ranking, temperature=config.temperature)
        background = 0.25 if config.background is None else config.background
        return background_evidence(ranking, temperature=config.temperature, background=background)

    def surveys(self, position: EpochPosition) -> bool:
        return bool(position.epoch > self.config.warm_up_epochs)

    def survey(self, forward: Forward, position: EpochPosition, memory: CorrespondenceMemory) -> None:
        """l_i = 1 iff no candidate of the batch has more evidence than the given partner, both ways together."""
        both = self.remember_evidence(self.evidence(forward.networks[0]), forward.batch.ids, memory)
        memory.write("label", forward.batch.ids, (both.diagonal() >= both.amax(dim=1)).float())

    def remember_evidence(self, evidence: Tensor, ids: Tensor, memory: CorrespondenceMemory) -> Tensor:
        """Keep share and uncertainty of a batch; returns e_ij + e_ji, (B, B)."""
        both = bidirectional(evidence)
        total = both.sum(dim=1)
        memory.write("share", ids, both.diagonal() / total.clamp(min=torch.finfo(both.dtype).tiny))
        memory.write("uncertainty", ids, len(both) / (len(both) + total / 2))
        return both

    def start_epoch(self, position: EpochPosition, memory: CorrespondenceMemory) -> dict[str, float]:
        if not self.surveys(position):
            return {}
        return {
            "clean_share": float(memory.read("label").mean()),
            "uncertainty_mean": float(memory.read("uncertainty").mean()),
        }

    def batch_loss(self, forward: Forward, position: EpochPosition, memory: CorrespondenceMemory) -> BatchLoss:
        config, network, ids = self.config, forward.networks[0], forward.batch.ids
        self.remember_probability(forward, memory)
        evidence = self.evidence(network)
        if not self.surveys(position):
            self.remember_evidence(evidence.detach(), ids, memory)
        label = memory.read("label", ids).to(evidence)
        kl_weight = config.kl_weight / (len(label) if config.divergence == "mean" else 1)
        opinion = evidential(evidence + 1, label.diag(), kl_weight=kl_weight)
        opinion = opinion + evidential(evidence.T + 1, label.diag(), kl_weight=kl_weight)
        hinge = label * hinge_ranking(
            network.view_rankings[0], margin=config.margin, negatives=self.negatives(position, len(label))
        )
        scalars = {"evidential_loss": float(opinion.detach().mean()), "ranking_loss": float(hinge.detach().mean())}
        weight = config.hinge_weight * (len(label) if config.hinge_total == "sum" else 1)
        return BatchLoss(opinion + weight * hinge, scalars)

    def negatives(self, position: EpochPosition, batch: int) -> int:
        """How many of the hardest negatives count: max(⌊B − η step⌋, μ) as printed, at least 1."""
        config = self.config
        step = (position.epoch - 1) * position.steps + position.step
        if config.hardness == "warm_up":
            return hardness(step, config.warm_up_epochs * position.steps, batch, least=config.least_negatives)
        falling = max(math.floor(position.batch_size - SLOPE * (step + 1)), config.least_negatives)
        return max(min(falling, batch - 1), 1)

    def belief(self, memory: CorrespondenceMemory) -> Tensor:
        return memory.read("share")

    def division(self, memory: CorrespondenceMemory) -> Tensor:
        return torch.where(memory.read("label") > 0.5, int(Part.CLEAN), int(Part.NOISY))
