"""UGNCL: uncertainty-guided noisy correspondence learning (SIGIR 2024).

Two views of every image give evidence for each text of a batch, and every text for each image. Fused by Dempster's
rule, the evidence says what a pair's partner is (belief) and how sure that is (uncertainty). Before each epoch after
the warm-up, all pairs are divided: determined ones are clean or noisy, the others hard, with a soft label. Clean pairs
rank against their hardest negative with the full margin, hard ones against several with a margin that label and
uncertainty set, noisy ones not at all.
"""

from __future__ import annotations

import logging

import torch
from torch import Tensor

from truepair.correspondence import CorrespondenceMemory, fuse_opinions
from truepair.correspondence.division import Part, divide_by_odds
from truepair.correspondence.opinions import (
    background_evidence,
    bidirectional,
    exponential_evidence,
    fuse_evidence,
    softplus_evidence,
)
from truepair.losses import evidential, hinge_ranking, soft_margin, trusted_margin, trusted_ranking
from truepair.losses.trusted import hardness, printed_hardness
from truepair.methods.base import BatchLoss, EpochPosition, Forward, Method, NetworkForward, Stage
from truepair.methods.pair_field import PairField
from truepair.methods.ugncl.as_printed import PRINTED
from truepair.methods.ugncl.options import UGNCLConfig
from truepair.methods.warm_up import check_epochs

logger = logging.getLogger(__name__)


class UGNCL(Method):
    """Two views, their evidence, a division, trusted margins.

    Per pair the memory holds what the last survey found: `share` (of all evidence, the part that speaks for the given
    partner), `pair_belief` b_i, `plausibility` (evidence for the given partner over the most for any) and `uncertainty`
    u; and what the division made of it: `label` ỹ and `part`.

    The defaults deviate from the paper where training as printed was seen to fail (docs/results/products.md):
    evidence is measured in units of the background, the divergence is a mean over classes, a pair counts as its own
    best partner if it comes near the best, and hard pairs weigh as much as their label. `as_printed` has the paper's
    own.
    """

    name = "ugncl"
    views = 2
    config: UGNCLConfig
    printed = PRINTED
    fields = Method.fields | {
        "label": PairField("label", "y"),
        "share": PairField("share of the evidence"),
        "pair_belief": PairField("belief mass", "b", unit=False),
        "plausibility": PairField("plausibility"),
        "uncertainty": PairField("uncertainty", "u", unit=False, below_threshold=True),
        "part": PairField("part", shown="never"),
        "divided": PairField("divided", shown="never"),
    }

    def prepare(self, memory: CorrespondenceMemory) -> None:
        super().prepare(memory)
        for field in ("share", "pair_belief", "plausibility", "label"):
            memory.register(field, 1.0)
        memory.register("uncertainty", 0.0)
        memory.register("part", float(Part.CLEAN))
        memory.register("divided", 0.0)  # 1 once a division was believed
        memory.register("trusted_uncertainty", 0.0)  # u of the survey that the division was made of

    def stages(self, epochs: int, decay_after: int | None) -> tuple[Stage, ...]:
        check_epochs("UGNCL", epochs, self.config.warm_up_epochs, "to divide the pairs")
        return super().stages(epochs, decay_after)

    # 3.2.1 and 3.2.2: evidence, opinions, fusion

    def evidence(self, network: NetworkForward) -> list[Tensor]:
        """e of every view, each (B, B) ≥ 0 (eq. 3)."""
        config = self.config
        if config.evidence == "exp_softplus":
            return [softplus_evidence(r, temperature=config.temperature) for r in network.view_scores]
        if config.evidence == "exp_tanh":
            return [exponential_evidence(s, temperature=config.temperature) for s in network.view_rankings]
        return [
            background_evidence(s, temperature=config.temperature, background=config.background)
            for s in network.view_rankings
        ]

    def survey(self, forward: Forward, position: EpochPosition, memory: CorrespondenceMemory) -> None:
        """Fused opinion on every pair from the bidirectional evidence of its batch (eq. 4–7)."""
        self.remember_opinions(self.evidence(forward.networks[0]), forward.batch.ids, memory)

    def remember_opinions(self, evidence: list[Tensor], ids: Tensor, memory: CorrespondenceMemory) -> None:
        scale = 0.5 if self.config.directions == "mean" else 1.0
        belief, uncertainty = fuse_opinions(*(scale * bidirectional(view) for view in evidence))
        own, least = belief.diagonal(), torch.finfo(belief.dtype).tiny
        memory.write("pair_belief", ids, own)
        memory.write("uncertainty", ids, uncertainty)
        memory.write("share", ids, own / belief.sum(dim=1).clamp(min=least))
        memory.write("plausibility", ids, own / belief.amax(dim=1).clamp(min=least))

    # 3.2.2, end: the division (eq. 8–11)

    def surveys(self, position: EpochPosition) -> bool:
        return bool(position.epoch > self.config.warm_up_epochs)

    def start_epoch(self, position: EpochPosition, memory: CorrespondenceMemory) -> dict[str, float]:
        if not self.surveys(position):
            return {}
        label, part = divide(memory, self.config)
        clean_share = float((part == Part.CLEAN).float().mean())
        sound = clean_share >= self.config.least_clean
        if sound:
            memory.write("label", None, label)
            memory.write("part", None, part.float())
            memory.write("trusted_uncertainty", None, memory.read("uncertainty"))
            memory.write("divided", None, torch.ones_like(label))
        else:
            logger.warning(
                "UGNCL: the division before epoch %d finds only %.1f %% of the pairs clean (least_clean: %.1f %%); %s",
                position.overall,
                100 * clean_share,
                100 * self.config.least_clean,
                "the last one is kept" if self.divided(memory) else "the warm-up goes on",
            )
        uncertainty = memory.read("uncertainty")
        return {
            "uncertainty_mean": float(uncertainty.mean()),
            "uncertainty_least": float(uncertainty.min()),
            "hard_clean": float(((part == Part.HARD) & (label > self.config.label_threshold)).sum()),
            "division_sound": float(sound),
        }

    def divided(self, memory: CorrespondenceMemory) -> bool:
        return bool(memory.read("divided")[0])

    # 3.2.3 and 3.3: the two losses

    def batch_loss(self, forward: Forward, position: EpochPosition, memory: CorrespondenceMemory) -> BatchLoss:
        """L_e + ξ2 L_t (eq. 18), with identity labels until a division is believed."""
        network, ids = forward.networks[0], forward.batch.ids
        evidence = self.evidence(network)
        self.remember_probability(forward, memory)
        divided = self.divided(memory)
        if not divided:
            self.remember_opinions([view.detach() for view in evidence], ids, memory)
        device = evidence[0].device
        part, label, uncertainty = (
            memory.read(name, ids).to(device) for name in ("part", "label", "trusted_uncertainty")
        )
        opinion = self.opinion_loss(evidence, label) + self.opinion_loss([view.T for view in evidence], label)
        if divided:
            ranking = self.ranking_loss(network, position, part, label, uncertainty)
        else:
            ranking = self.warm_up_ranking_loss(network, position)
        scalars = {"evidential_loss": float(opinion.detach().mean()), "ranking_loss": float(ranking.detach().mean())}
        weight = self.config.ranking_weight * (len(ids) if self.config.ranking_total == "sum" else 1)
        return BatchLoss(opinion + weight * ranking, scalars)

    def opinion_loss(self, evidence: list[Tensor], label: Tensor) -> Tensor:
        """One direction of L_e on the fused opinion, (B,) (eq. 12–14)."""
        kl_weight = self.config.kl_weight / (len(label) if self.config.divergence == "mean" else 1)
        return evidential(fuse_evidence(*evidence) + 1, label.diag(), kl_weight=kl_weight)

    def ranking_loss(
        self, network: NetworkForward, position: EpochPosition, part: Tensor, label: Tensor, uncertainty: Tensor
    ) -> Tensor:
        """L_t, mean over the views, (B,) (eq. 16, 17); or with soft margins L_S (eq. 2)."""
        config = self.config
        hard = part == Part.HARD
        if config.margins == "soft":
            margins, least = soft_margin(label, config.margin, config.curve), 1
        else:
            least = self.negatives(position)
            margins = trusted_margin(
                label,
                uncertainty,
                margin=config.margin,
                curve=config.curve,
                sharpness=config.sharpness,
                threshold=config.label_threshold,
            )
        margin = torch.where(hard, margins, config.margin)
        negatives = torch.where(part == Part.CLEAN, 1, torch.where(hard, least, 0))
        views = [trusted_ranking(view, margin=margin, negatives=negatives) for view in network.view_rankings]
        ranking: Tensor = torch.stack(views).mean(dim=0)
        if config.hard_weight == "label":
            ranking = torch.where(hard, label, 1.0) * ranking
        return ranking

    def warm_up_ranking_loss(self, network: NetworkForward, position: EpochPosition) -> Tensor:
        """L_t before a division is believed: every pair counts as matched, with λ negatives and the full margin."""
        views = [
            hinge_ranking(view, margin=self.config.margin, negatives=self.negatives(position))
            for view in network.view_rankings
        ]
        return torch.stack(views).mean(dim=0)

    def negatives(self, position: EpochPosition) -> int:
        """λ: how many of the hardest negatives count."""
        config = self.config
        if config.hardness == "printed":
            return printed_hardness(position.epoch, position.batch_size, least=config.least_negatives)
        step = (position.epoch - 1) * position.steps + position.step
        total = config.warm_up_epochs * position.steps
        return hardness(step, total, position.batch_size, least=config.least_negatives)

    def belief(self, memory: CorrespondenceMemory) -> Tensor:
        """The share of a pair's evidence that speaks for the given partner."""
        return memory.read("share")

    def division(self, memory: CorrespondenceMemory) -> Tensor:
        if not self.divided(memory):
            return divide_by_odds(self.belief(memory))
        return memory.read("part").long()

    def taken_as_matched(self, memory: CorrespondenceMemory) -> Tensor:
        """The clean and the hard-clean pairs (eq. 11)."""
        division = self.division(memory)
        hard_clean = (division == Part.HARD) & (memory.read("label") > self.config.label_threshold)
        taken: Tensor = (division == Part.CLEAN) | hard_clean
        return taken


def divide(memory: CorrespondenceMemory, config: UGNCLConfig) -> tuple[Tensor, Tensor]:
    """Labels ỹ in [0, 1] and parts of all pairs, both (N,) (eq. 8–11).

    Pairs of little uncertainty are determined: clean if the given partner is the best one, up to the tolerance, else
    noisy. The others are hard, with a soft label: their belief (the paper), their share of the evidence, or the odds of
    the given partner against the least that the tolerance would call the best. Divided by probability alone, foremost
    pairs are clean and all others hard.
    """
    uncertainty, plausibility = memory.read("uncertainty"), memory.read("plausibility")
    foremost = plausibility >= config.tolerance
    compared = ranked(uncertainty) if config.uncertainty == "rank" else uncertainty
    determined = foremost if config.division == "probability" else compared < config.threshold
    soft = {
        "odds": plausibility / (plausibility + config.tolerance),
        "share": memory.read("share"),
        "belief": memory.read("pair_belief"),
    }[config.soft_label]
    part = torch.where(determined, torch.where(foremost, int(Part.CLEAN), int(Part.NOISY)), int(Part.HARD))
    return torch.where(determined, foremost.float(), soft.clamp(0, 1)), part


def ranked(values: Tensor) -> Tensor:
    """The place of each value among all, (N,) in [0, 1): the share of the others that are not larger."""
    ascending = values.sort().values
    return (torch.searchsorted(ascending, values, right=True).float() - 1) / max(len(values), 1)
