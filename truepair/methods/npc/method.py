"""NPC: negative pre-aware for noisy cross-modal matching (AAAI 2024), for models that know something already.

Every pair has two partners in a bank of pairs that are thought to match: the one of the nearest image, and the one of
the nearest text. Before a batch is learned from, the step it would take is tried and taken back. Where that makes a
pair's partners less probable, the pair weighs less. The partners are trained on as well.
"""

from __future__ import annotations

import logging

import torch
from torch import Tensor

from truepair.correspondence import CorrespondenceMemory
from truepair.correspondence.division import Part
from truepair.engines.retrieval_model import evaluating
from truepair.losses import info_nce
from truepair.methods.base import BatchLoss, EpochPosition, Forward, Method, Stage
from truepair.methods.loss_division.posteriors import clean_posterior
from truepair.methods.npc.as_printed import PRINTED
from truepair.methods.npc.impact import first_step, impact_weight
from truepair.methods.npc.options import NPCConfig
from truepair.methods.pair_field import PairField
from truepair.methods.tried_step import tried
from truepair.methods.warm_up import check_epochs

logger = logging.getLogger(__name__)

ROWS = 1024  # queries at a time


class NPC(Method):
    """w (−log p_ii − log pᵀ_ii)/2, and the same loss of the pair's two partners.

    Per pair the memory holds what the one survey found: `loss`, `posterior` of the group of small losses,
    `image_partner` and `text_partner`, the pairs of the bank with the nearest image and the nearest text; and `weight`
    w as last trained with.
    """

    name = "npc"
    config: NPCConfig
    printed = PRINTED
    needs_vectors = True
    reads_beside = True
    fields = Method.fields | {
        "loss": PairField("loss before training", r"\ell", unit=False, mixture=("loss", "mixture")),
        "posterior": PairField("posterior of being clean"),
        "image_partner": PairField("bank pair of the nearest image", unit=False, shown="never"),
        "text_partner": PairField("bank pair of the nearest text", unit=False, shown="never"),
        "weight": PairField("weight", "w"),
    }

    def __init__(self, config: NPCConfig) -> None:
        super().__init__(config)
        self.seen: dict[str, Tensor] = {}  # vectors of the pass over all pairs, until it is done

    @property
    def similarity_temperature(self) -> float:
        return self.config.temperature

    @property
    def trusts_the_start(self) -> bool:
        return self.config.warm_up_epochs == 0

    def prepare(self, memory: CorrespondenceMemory) -> None:
        super().prepare(memory)
        self.seen = {}
        memory.register("loss", 0.0)
        for field in ("posterior", "weight"):
            memory.register(field, 1.0)
        for field in ("image_partner", "text_partner"):
            memory.register(field, torch.arange(memory.count))

    def stages(self, epochs: int, decay_after: int | None) -> tuple[Stage, ...]:
        check_epochs("NPC", epochs, self.config.warm_up_epochs, "to weigh the pairs")
        return super().stages(epochs, decay_after)

    def surveys(self, position: EpochPosition) -> bool:
        return position.epoch == self.config.warm_up_epochs + 1

    def survey(self, forward: Forward, position: EpochPosition, memory: CorrespondenceMemory) -> None:
        """The loss and the vectors of every pair."""
        ids = forward.batch.ids
        memory.write("loss", ids, self.losses(forward))
        network = forward.networks[0]
        for name, vectors in (("image", network.image_vectors), ("text", network.text_vectors)):
            if name not in self.seen:
                self.seen[name] = torch.zeros(memory.count, vectors.shape[1], dtype=torch.float16)
            self.seen[name][ids.cpu()] = vectors.detach().cpu().half()

    def start_epoch(self, position: EpochPosition, memory: CorrespondenceMemory) -> dict[str, float]:
        """The bank of pairs that are thought to match, and the partners of every pair in it."""
        if not self.surveys(position):
            return {}
        found = clean_posterior(memory.read("loss"), self.config.mixture, position.overall, self.name)
        memory.write("posterior", None, found.weight)
        bank = (found.weight > self.config.clean).nonzero()[:, 0]
        if len(bank) == 0:
            logger.warning("NPC: no posterior exceeds %g, which leaves no bank; all pairs are in it", self.config.clean)
            bank = torch.arange(memory.count)
        self.look_up(bank, memory)
        return {**found.record, "bank_share": len(bank) / memory.count}

    def look_up(self, bank: Tensor, memory: CorrespondenceMemory) -> None:
        """The partners of all pairs: those of the bank whose image, or whose text, is nearest."""
        for name, vectors in self.seen.items():
            keys = vectors[bank].float()
            partner = torch.arange(memory.count)
            for some in torch.arange(memory.count).split(ROWS):  # type: ignore[no-untyped-call]
                partner[some] = bank[(vectors[some].float() @ keys.T).argmax(dim=1)]
            memory.write(f"{name}_partner", None, partner)
        self.seen = {}

    def losses(self, forward: Forward) -> Tensor:
        """ℓ of the pairs of a batch, (B,), with the τ that the model learns with, in either mode."""
        engine = forward.networks[0].engine
        factor = 1.0 if engine.training else engine.learning_factor
        return info_nce(factor * forward.similarity, temperature=self.config.temperature)

    def batch_loss(self, forward: Forward, position: EpochPosition, memory: CorrespondenceMemory) -> BatchLoss:
        self.remember_probability(forward, memory)
        losses = self.losses(forward)
        if position.epoch <= self.config.warm_up_epochs:
            return BatchLoss(losses, {})
        ids = forward.batch.ids
        partners = [forward.beside(memory.read(f"{side}_partner", ids).long()) for side in ("image", "text")]
        steps = first_step(forward.gradient(losses.mean()), self.config.trial_rate)
        with evaluating(forward.engine):
            with torch.set_grad_enabled(self.config.bank == "trained"):
                of_image, of_text = (self.losses(partner) for partner in partners)
            with torch.no_grad(), tried(steps):
                of_image_after, of_text_after = (
                    self.losses(Forward(forward.engine, partner.batch)) for partner in partners
                )
        weight = impact_weight((of_image, of_text), (of_image_after, of_text_after), self.config.weight)
        memory.write("weight", ids, weight)
        weighed = weight * (losses.mean() if self.config.averaged else losses)
        scalars = {"weight_mean": float(weight.mean()), "helped_share": float((weight == 1).float().mean())}
        return BatchLoss(weighed + of_image + of_text if self.config.bank == "trained" else weighed, scalars)

    def belief(self, memory: CorrespondenceMemory) -> Tensor:
        return memory.read("weight")

    def division(self, memory: CorrespondenceMemory) -> Tensor:
        """Clean are the pairs whose last step did their partners no harm."""
        return torch.where(self.belief(memory) >= 1, int(Part.CLEAN), int(Part.NOISY))
