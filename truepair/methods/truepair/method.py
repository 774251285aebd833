"""Our own method: untrusted pairs are taken apart, and their image and caption go on learning from a teacher.

Labels with a memory say how far each pair is believed (CRCL's). The loss learns from a pair as far as it is believed
and from its negatives always (CRCL's, too). New is who teaches the rest: several networks, each the moving average of
the weights of a stage before, say together, for every image and caption of a batch, whom they find alike among all
candidates, and a fresh network learns that of all pairs. `docs/truepair-method.md` has the equations, the reasons and
the ablation.
"""

from __future__ import annotations

import logging
from dataclasses import astuple, replace
from types import MappingProxyType

import torch
from torch import Tensor

from truepair.correspondence import CorrespondenceMemory, matching_probability, synthetic_probability
from truepair.correspondence.division import HALF, Part
from truepair.correspondence.mixture_proportion import Estimate, auroc_among
from truepair.errors import InputError, TooLargeError
from truepair.losses import active_complementary, batch_distillation
from truepair.methods.base import BatchLoss, EpochPosition, Forward, Method, Stage
from truepair.methods.pair_field import PairField
from truepair.methods.truepair.credits import by_groups, running_mean, uppermost, uppermost_of_each
from truepair.methods.truepair.first_labels import PairVectors, share_by_network
from truepair.methods.truepair.options import TEACHERS, TruePairConfig
from truepair.methods.truepair.partners import partner_loss, propose
from truepair.methods.truepair.teacher import AuxiliaryTeachers, Teachers, TeacherVectors, vectors_by, vectors_fit

logger = logging.getLogger(__name__)

SHARE = "first_share"  # note: π of the held-out first labels, where they are taken
ESTIMATE = "estimate"  # note: that of π by the linear models, whether their labels are taken or not; or by a network
SYNTHETIC = "synthetic_odds"  # note: (N,) mean log odds of synthetic mismatches, one of each image an epoch
LINEAR = "linear_odds"  # note: (N,) their odds, where they may still count
JUDGED = "judged"  # note: (N,) bool, which pairs they could judge, where their labels are taken or may still count
ANEW = "begun_anew"  # note: stage in which labels began anew
FIRST_AUROC = "first_auroc"  # note: AUROC of their odds, where they tell enough to replace those of a slow network

SLOW = 0.5
"""A network that tells given pairs from synthetic mismatches less than half as well as linear models (AUROC − ½) has
learned next to nothing in its first epochs. On the data of the tables it is 0.98 to 1.1 times as well, on drawings at
80 % 0.6 times; on 3,000 products at a learning rate of 0.0001 0.35 times, on pairs drawn by a computer 0.05 times."""

BEYOND = 0.05
"""Share of the pairs that may be disbelieved beyond the upper end of the interval of π. Without this limit it was 0.05
at most, of products and photographs at 20 to 60 % but for the first epochs, and of drawings, whose captions resemble
each other, 0.2 to 0.6 at 0 to 40 %."""

PIECE = 0.8
"""Epochs of each stage before the last one, in units of those of the last one."""


class TruePair(Method):
    """Stages, each from a fresh network: all but the last make labels and a teacher each, and the last learns of these.

    The label y of every pair lives in the memory as `label`. The model is the average of the weights. With partners the
    memory also holds the pair whose caption is proposed for a disbelieved pair's image, and its probability.
    """

    name = "truepair"
    config: TruePairConfig
    single_stage = MappingProxyType({"pieces": ()})
    fields = Method.fields | {
        "label": PairField("label", "y"),
        "odds": PairField("mean log odds", "z", unit=False, shown="never"),
        "credit": PairField("credit", r"\hat{y}"),
        "seen_similarity": PairField("similarity", "S_{ii}", unit=False),
        "synthetic": PairField("probability of a synthetic mismatch", shown="never"),
        "first_matching": PairField("held-out probability to match", shown="never"),
        "partner": PairField("pair of the proposed caption", unit=False, shown="never"),
        "partner_probability": PairField("probability of the proposed caption"),
    }

    def __init__(self, config: TruePairConfig) -> None:
        super().__init__(config)
        self.auxiliary = AuxiliaryTeachers(config)
        self.proposes = config.partners == "proposed"
        self.reads_beside = self.proposes or config.teacher_input == "unaltered"
        self.inputs: PairVectors | None = None  # of all pairs, until the first labels are made of them
        self.too_many = False  # pairs for linear models in the memory there is
        self.seen: TeacherVectors | None = None  # of disbelieved pairs, until partners are proposed
        self.taught: TeacherVectors | None = None  # of all pairs, in the last stage

    @property
    def similarity_temperature(self) -> float:
        return self.config.temperature

    def stages(self, epochs: int, decay_after: int | None) -> tuple[Stage, ...]:
        """Those before the last at a constant learning rate, then the last one with the decay."""
        pieces, freeze = self.config.pieces, self.config.freeze_epochs
        if pieces is None:
            pieces = TEACHERS * (max(freeze + 1, round(PIECE * epochs)),)
        if not pieces and epochs <= freeze and self.config.labels == "refined":
            raise InputError(
                f"without a stage before the last one more epochs are needed than the {freeze} with frozen labels, "
                f"found {epochs}; train longer or leave pieces out"
            )
        return (*(Stage(piece) for piece in pieces), Stage(epochs, decay_after))

    def prepare(self, memory: CorrespondenceMemory) -> None:
        super().prepare(memory)
        self.inputs, self.too_many, self.seen, self.taught = None, False, None, None
        memory.register("label", 1.0)  # every pair counts as matched at first
        memory.register("odds", 0.0)
        memory.register("credit", 1.0)
        memory.register("seen_similarity", 0.0)
        memory.register("synthetic", 0.0)
        memory.register("first_matching", 1.0)
        if self.proposes:
            memory.register("partner", torch.arange(memory.count))
            memory.register("partner_probability", 0.0)

    def may_keep(self, position: EpochPosition) -> bool:
        """Also what a stage leaves as a teacher: where learning is slow, the last stage may end below its teachers."""
        teaches = self.config.distillation > 0 and position.epoch == position.stages[position.stage].epochs
        return position.in_last_stage or teaches

    def surveys(self, position: EpochPosition) -> bool:
        """Before the first epoch for the first labels; and when all teachers are there, they see all pairs."""
        return self.begins(position) or self.asks_partners(position) or self.asks_vectors(position)

    def surveys_again(self, position: EpochPosition) -> bool:
        """The teachers' vectors of all pairs are in no checkpoint."""
        return self.asks_vectors(replace(position, epoch=1))

    def begins(self, position: EpochPosition) -> bool:
        return self.config.first_labels == "held-out" and position.overall == 1 and self.config.labels == "refined"

    def asks_partners(self, position: EpochPosition) -> bool:
        return self.proposes and position.in_last_stage and position.epoch == 1

    def asks_vectors(self, position: EpochPosition) -> bool:
        unaltered = self.config.teacher_input == "unaltered" and self.config.distillation > 0
        return unaltered and position.stage > 0 and position.in_last_stage and position.epoch == 1

    def survey(self, forward: Forward, position: EpochPosition, memory: CorrespondenceMemory) -> None:
        if self.begins(position):
            self.see_inputs(forward, memory)
            return
        assert isinstance(forward.auxiliary, Teachers)
        keeps = self.asks_vectors(position) and forward.engine.exact_vectors
        if not (keeps or self.asks_partners(position)):
            return
        images, texts = vectors_by(forward.auxiliary, forward)
        if keeps:
            self.keep_vectors(forward, images, texts, memory)
        if self.asks_partners(position):
            self.see_disbelieved(forward, images, texts, memory)

    def see_inputs(self, forward: Forward, memory: CorrespondenceMemory) -> None:
        """What the linear models are made of; where all pairs need more memory than there is, none are made."""
        if self.too_many:
            return
        self.inputs = self.inputs or PairVectors(memory.count, without="--truepair-first-labels given")
        try:
            self.inputs.add(forward)
        except TooLargeError as error:
            self.inputs, self.too_many = None, True
            logger.warning(
                "%s: trained without it, so that first labels are as given and any number of pairs may be noisy",
                error,
            )

    def keep_vectors(self, forward: Forward, images: Tensor, texts: Tensor, memory: CorrespondenceMemory) -> None:
        """Those of all pairs, if they fit."""
        if not vectors_fit(memory.count, images.shape[1] + texts.shape[1]):
            return
        self.taught = self.taught or TeacherVectors(memory.count)
        self.taught.add(forward.batch.ids.cpu(), images, texts)

    def see_disbelieved(self, forward: Forward, images: Tensor, texts: Tensor, memory: CorrespondenceMemory) -> None:
        """The vectors of the disbelieved pairs by the teachers, captions in the scale in which the network learns."""
        disbelieved = (memory.read("credit") == 0).cpu()
        ids = forward.batch.ids.cpu()
        wanted = disbelieved[ids]
        row = disbelieved.long().cumsum(dim=0) - 1
        self.seen = self.seen or TeacherVectors(int(disbelieved.sum()))
        factor = forward.networks[0].engine.learning_factor
        self.seen.add(row[ids[wanted]], images[wanted.to(images.device)], factor * texts[wanted.to(texts.device)])

    def start_epoch(self, position: EpochPosition, memory: CorrespondenceMemory) -> dict[str, float]:
        """Labels, once an epoch from p̂ as last seen, but for the first epochs of a stage; then the credit."""
        scalars = self.begin(position, memory) if self.begins(position) else {}
        if position.stage == position.epoch == 1 and memory.has_noted(SHARE) and not memory.has_noted(LINEAR):
            scalars |= self.ask_network(memory)
        if self.config.labels == "refined" and position.epoch > self.config.freeze_epochs:
            self.refine(position, memory)
            if position.stage == 0 and memory.has_noted(LINEAR) and not memory.has_noted(SHARE):
                scalars |= self.ask_linear_models(position, memory)
        label = memory.read("label")
        if self.asks_partners(position):
            scalars |= self.look_for_partners(memory)
        self.seen = None  # also what a repeated survey saw again
        if not memory.has_noted(SHARE) or self.config.credit == "label":
            credit, limited = self.limited_credit(label, memory)
            scalars |= limited
        elif position.stage == 0 and position.epoch <= self.config.freeze_epochs:
            matching = memory.read("first_matching")
            credit = matching.masked_fill(matching < HALF, 0.0)
        else:
            credit = uppermost_of_each(label, memory.noted(JUDGED), 1 - float(memory.noted(SHARE)))
        memory.write("credit", None, credit)
        return {"label_mean": float(label.mean()), "disbelieved": float((credit == 0).float().mean()), **scalars}

    def begin(self, position: EpochPosition, memory: CorrespondenceMemory) -> dict[str, float]:
        """First labels of linear models, where these find most pairs mismatched, and tell which."""
        if self.inputs is None:  # nothing was surveyed
            return {}
        found = self.inputs.first_labels(temperature=self.config.temperature, batch_size=position.batch_size)
        self.inputs = None
        if found is None or not found.tells:
            return {} if found is None else {"first_auroc": found.auroc}
        memory.write("first_matching", None, found.matching)
        memory.note(ESTIMATE, torch.tensor(astuple(found.estimate), dtype=torch.float64))
        memory.note(JUDGED, found.judges)
        if found.better:
            memory.note(SHARE, torch.tensor(found.estimate.share))
            memory.write("odds", None, found.odds)
            memory.write("label", None, torch.sigmoid(found.odds))
            memory.write("synthetic", None, torch.sigmoid(found.synthetic))
        elif found.narrow:
            memory.note(LINEAR, found.odds)
            if found.separates:
                memory.note(FIRST_AUROC, torch.tensor(found.auroc, dtype=torch.float64))
        estimate = found.estimate
        shares = {"first_share": estimate.share, "first_share_low": estimate.low, "first_share_high": estimate.high}
        return {**shares, "first_recall": found.recall, "first_auroc": found.auroc}

    def ask_linear_models(self, position: EpochPosition, memory: CorrespondenceMemory) -> dict[str, float]:
        """Their labels count as well, where the network tells far less at first, or more than can be told.

        Of mismatched pairs a network that has not learned them tells as little as of synthetic mismatches: its AUROC
        of all pairs against these is π/2 + (1 − π) A, at most 1 − π/2. The bound takes the lower end of the interval of
        π, so that an estimate that is too high is no sign of memorising (docs/truepair-method.md, section 4).
        """
        judged, means = memory.noted(JUDGED), self.config.label_memory == "mean"
        label = memory.read("odds") if means else memory.read("label")
        made = memory.noted(SYNTHETIC) if means else memory.read("synthetic")
        auroc = auroc_among(label[judged].numpy(), made[judged].numpy())
        first = position.epoch == self.config.freeze_epochs + 1 and memory.has_noted(FIRST_AUROC)
        slow = first and auroc - HALF < SLOW * (float(memory.noted(FIRST_AUROC)) - HALF)
        estimate = self.mismatch_share(memory)
        assert estimate is not None
        if slow or auroc > 1 - estimate.low / 2:
            memory.note(SHARE, torch.tensor(estimate.share))
            self.count_linear_models(position, memory)
        return {"network_auroc": auroc}

    def ask_network(self, memory: CorrespondenceMemory) -> dict[str, float]:
        """Labels begin anew, as given, where the first network finds surely fewer pairs mismatched than linear models.

        These take the matched pairs that they cannot see for mismatched ones. The network has believed none of these,
        so that what it tells of them is not known by heart.
        """
        linear, found = self.mismatch_share(memory), share_by_network(memory, memory.noted(JUDGED))
        assert linear is not None
        if found.high < linear.low:
            memory.note(ESTIMATE, torch.tensor(astuple(found), dtype=torch.float64))
            memory.forget(SHARE)
            memory.note(ANEW, torch.tensor(1))
            memory.write("label", None, torch.ones(memory.count))
            memory.write("odds", None, torch.zeros(memory.count))
        return {"network_share": found.share, "network_share_low": found.low, "network_share_high": found.high}

    def count_linear_models(self, position: EpochPosition, memory: CorrespondenceMemory) -> None:
        """Their odds in the mean of the labels, as often as the first stage refines these; or as the old labels."""
        linear = memory.noted(LINEAR)
        if self.config.label_memory == "mean":
            refined = self.refinements(position)
            times = refined[0] / (refined[0] + position.epoch - self.config.freeze_epochs)
            odds = torch.lerp(memory.read("odds"), linear, times)
            memory.write("odds", None, odds)
            memory.write("label", None, torch.sigmoid(odds))
        else:
            memory.write("label", None, torch.lerp(memory.read("label"), torch.sigmoid(linear), self.config.momentum))

    def mismatch_share(self, memory: CorrespondenceMemory) -> Estimate | None:
        return Estimate(*memory.noted(ESTIMATE).tolist()) if memory.has_noted(ESTIMATE) else None

    def share_estimated_by(self, memory: CorrespondenceMemory) -> str:
        return "the network of the first stage" if memory.has_noted(ANEW) else super().share_estimated_by(memory)

    def refine(self, position: EpochPosition, memory: CorrespondenceMemory) -> None:
        """y = σ(z), z the mean of logit p̂ over all updates so far; or y ← β y + (1 − β) p̂, and at first y ← p̂.

        Of synthetic mismatches the same mean is remembered, so that labels can be compared with them. Held-out first
        labels count as much as the network of a stage: as often as the first one refines its labels.
        """
        label, seen = memory.read("label"), memory.read("seen_probability")
        refined = self.refinements(position)
        begun = int(memory.noted(ANEW)) if memory.has_noted(ANEW) else 0
        updates = sum(refined[begun : position.stage]) + position.epoch - self.config.freeze_epochs
        updates += refined[0] if memory.has_noted(SHARE) else 0
        if self.config.label_memory == "mean":
            odds = running_mean(memory.read("odds"), seen, updates)
            memory.write("odds", None, odds)
            if not memory.has_noted(SHARE):  # else nobody asks
                made = memory.noted(SYNTHETIC) if memory.has_noted(SYNTHETIC) else torch.zeros(memory.count)
                memory.note(SYNTHETIC, running_mean(made, memory.read("synthetic"), updates))
            label = torch.sigmoid(odds)
        else:
            momentum = self.config.momentum if updates > 1 else 0.0
            label = momentum * label + (1 - momentum) * seen
        memory.write("label", None, label)

    def refinements(self, position: EpochPosition) -> list[int]:
        """How often labels are refined in each stage."""
        return [max(0, stage.epochs - self.config.freeze_epochs) for stage in position.stages]

    def look_for_partners(self, memory: CorrespondenceMemory) -> dict[str, float]:
        """The teachers' proposals for the pairs that they have seen disbelieved."""
        pool = (memory.read("credit") == 0).nonzero()[:, 0]
        assert self.seen is not None
        place, probability = propose(self.seen.images, self.seen.texts, temperature=self.config.temperature)
        memory.write("partner", None, torch.arange(memory.count).index_copy(0, pool, pool[place]))
        memory.write("partner_probability", None, torch.zeros(memory.count).index_copy(0, pool, probability))
        return {"partner_probability": float(probability.mean()) if len(pool) else 0.0}

    def limited_credit(self, label: Tensor, memory: CorrespondenceMemory) -> tuple[Tensor, dict[str, float]]:
        """ŷ by the labels, or 1 for the uppermost, as many as must match by the estimate of π, where that leaves fewer.

        With it, where it is limited, the share of the pairs that the labels alone disbelieve.
        """
        synthetic = torch.sigmoid(memory.noted(SYNTHETIC)) if memory.has_noted(SYNTHETIC) else memory.read("synthetic")
        credit = self.credit_of(label, synthetic)
        estimate = self.mismatch_share(memory)
        if estimate is None or self.config.credit == "label" or self.config.least_believed == "any":
            return credit, {}
        disbelieved, least = float((credit == 0).float().mean()), 1 - BEYOND - estimate.high
        if 1 - disbelieved >= least:
            return credit, {}
        return uppermost(label, least), {"disbelieved_by_labels": disbelieved}

    def credit_of(self, label: Tensor, synthetic: Tensor) -> Tensor:
        """ŷ of every pair, (N,) in [0, 1]: how far the loss learns from it as a pair; 0 for the disbelieved.

        Args:
            label: (N,).
            synthetic: (N,) what labels of synthetic mismatches would be.
        """
        believed = label.masked_fill(label < self.config.threshold, 0.0)
        return believed if self.config.credit == "label" else by_groups(label, synthetic, believed)

    def batch_loss(self, forward: Forward, position: EpochPosition, memory: CorrespondenceMemory) -> BatchLoss:
        """The active complementary loss on ŷ, and in the last stage δ times the distillation of the ones before."""
        config, similarity, ids = self.config, forward.similarity, forward.batch.ids
        seen = matching_probability(similarity.detach(), temperature=config.temperature)
        memory.write("seen_probability", ids, seen)
        memory.write("seen_similarity", ids, similarity.diagonal())
        made = synthetic_probability(similarity.detach(), temperature=config.temperature)
        memory.write("synthetic", ids, made)
        credit = memory.read("credit", ids).to(similarity.device)
        disbelieved = credit == 0
        loss = active_complementary(similarity, credit, temperature=config.temperature, scale=config.scale)
        if not position.stage or not position.in_last_stage:
            return BatchLoss(loss, {})
        if config.own_cell == "unused":
            loss = loss * ~disbelieved  # without its own cell the complementary part of such a pair is constant
        if self.proposes:
            partner, probability = (memory.read(name, ids) for name in ("partner", "partner_probability"))
            probability = probability.to(similarity) * disbelieved
            loss = loss + partner_loss(forward, partner.long(), probability, temperature=config.temperature)
        if not config.distillation:
            return BatchLoss(loss, {})
        taught = batch_distillation(
            similarity,
            self.target(forward),
            temperature=config.temperature,
            target_temperature=config.target_temperature,
            left_out=None if config.own_cell == "kept" else disbelieved,
        )
        if config.taught == "disbelieved":
            taught = taught * disbelieved
        return BatchLoss(loss + config.distillation * taught, {"distillation": float(taught.detach().mean())})

    @torch.no_grad()
    def target(self, forward: Forward) -> Tensor:
        """S of the batch by the teachers, their mean, (B, B), in the scale in which the network learns."""
        assert isinstance(forward.auxiliary, Teachers)
        factor = forward.networks[0].engine.learning_factor
        ids, device = forward.batch.ids, forward.similarity.device
        if self.taught is not None:
            return self.taught.similarity(ids.cpu(), device) * factor
        shown = forward.beside(ids) if self.config.teacher_input == "unaltered" else forward
        found = [shown.through(teacher).similarity for teacher in forward.auxiliary.teaching()]
        return torch.stack(found).mean(dim=0) * factor

    def belief(self, memory: CorrespondenceMemory) -> Tensor:
        return memory.read("label")

    def division(self, memory: CorrespondenceMemory) -> Tensor:
        """Clean where ŷ > 0: the pairs the loss still learns from as pairs."""
        return torch.where(memory.read("credit") > 0, int(Part.CLEAN), int(Part.NOISY))
