"""UOT-RCL: a unified optimal transport framework for cross-modal retrieval with noisy labels (2024).

Before each epoch the labels are corrected: what a pair's neighbours in either modality are taken to be makes some
classes cheap for it and others dear, and a partial transport hands out the cheapest labels first, more of them every
epoch. In each batch, a second transport matches images with texts that stand alike to a small confident set, so that
pairs of one class are drawn together and not only a pair's two sides.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from truepair.correspondence import CorrespondenceMemory
from truepair.correspondence.class_costs import corrected_labels, label_cost, running_targets
from truepair.correspondence.class_noise import ClassNoise
from truepair.correspondence.confident import confident_pairs
from truepair.losses.clustering import soft_cross_entropy
from truepair.losses.relation import relation_alignment, relation_cost, relations
from truepair.methods.base import BatchLoss, EpochPosition, Forward, LabelBeliefs, Stage, WrongShare
from truepair.methods.input_vectors import InputVectors
from truepair.methods.labels import LabelMethod
from truepair.methods.uot_rcl.as_printed import PRINTED
from truepair.methods.uot_rcl.options import UOTRCLConfig
from truepair.methods.warm_up import check_epochs
from truepair.seeding import generator
from truepair.transport import sinkhorn

NEIGHBOUR_SHARE = 0.005  # of all pairs (section V-B)
WRONG = "wrong_labels"  # note: what the held-out models say, their share and its standard error
UNSEEN = "few_wrong_labels"  # note: the share that they find where it is too small to say anything of single labels
HELD_OUT = "held_out_distribution"


@dataclass(frozen=True)
class FeatureBank:
    """Encodings z^v and z^t of all pairs, (N, D) each, and their class probabilities p^v and p^t, (N, K) each."""

    images: Tensor
    texts: Tensor
    image_probability: Tensor
    text_probability: Tensor
    predicted: Tensor  # argmax_k μ_kᵀ (z^v + z^t), (N,) int64

    @classmethod
    def empty(cls, count: int, width: int, classes: int, device: torch.device) -> FeatureBank:
        images, texts = (torch.zeros(count, width, device=device) for _ in range(2))
        of_images, of_texts = (torch.zeros(count, classes, device=device) for _ in range(2))
        return cls(images, texts, of_images, of_texts, torch.zeros(count, dtype=torch.int64, device=device))


class UOTRCL(LabelMethod):
    """L_PLC + λ L_BHG (eq. 19), after a warm-up of cross entropy.

    Per pair the memory holds `targets` y (N, K), the running targets, `label_distribution` N Ŷ (N, K), the corrected
    labels, whose rows sum to the confidence of the correction, and `confident`, 1 for the confident set.

    The defaults deviate from the paper where it was seen to pay (docs/results/labels.md): votes of both modalities
    count the same, class sizes are those that the warm-up predicts, given pairs count as matched in L_BHG, and its
    transport is sharper. How much is corrected follows how much noise the warm-up left to see (`doubt`). Linear models
    that have not learned the labels say most of what is said of these (`label_distribution`), fill up what is learned
    of a label that is not wholly transported (`learned_labels`), and leave L_BHG out where they find less than most
    labels wrong (`relation_weight`). `as_printed` has the paper's own.
    """

    name = "uot-rcl"
    config: UOTRCLConfig
    printed = PRINTED

    def prepare(self, memory: CorrespondenceMemory) -> None:
        super().prepare(memory)
        memory.register("targets", self.given.one_hot())
        memory.register("confident", 0.0)
        self.bank: FeatureBank | None = None
        self.inputs: InputVectors | None = None  # of all pairs, until the linear models are made of them
        if self.config.held_out_weight:
            memory.register(HELD_OUT, self.given.one_hot())

    def stages(self, epochs: int, decay_after: int | None) -> tuple[Stage, ...]:
        check_epochs("UOT-RCL", epochs, self.config.warm_up_epochs, "to correct labels")
        return super().stages(epochs, decay_after)

    # Before the first epoch: linear models that have not learned the labels

    def begins(self, position: EpochPosition) -> bool:
        return self.config.held_out_weight > 0 and position.overall == 1

    def ask_linear_models(self, memory: CorrespondenceMemory) -> dict[str, float]:
        """What they say of the labels, and how many are wrong; nothing where too little can be told."""
        if self.inputs is None:  # nothing was surveyed
            return {}
        inputs, self.inputs = self.inputs, None
        labels, classes = self.given.labels.numpy(), self.given.count
        groups = inputs.groups(inputs.captions())
        found = ClassNoise.of(inputs.sides, groups, labels, classes, copies=inputs.copies(groups), seed=0)
        if found is None:
            return {}
        if not found.seen:
            memory.note(UNSEEN, torch.tensor(found.share, dtype=torch.float64))
            return {}
        memory.write(HELD_OUT, None, torch.from_numpy(found.posterior))
        wrong = found.wrong
        memory.note(WRONG, torch.tensor(wrong, dtype=torch.float64))
        return dict(zip(("wrong_labels", "wrong_labels_error"), wrong, strict=True))

    # Before an epoch: all pairs are encoded, then their labels corrected (section IV-A and B)

    def surveys(self, position: EpochPosition) -> bool:
        return self.begins(position) or self.corrects(position)

    def corrects(self, position: EpochPosition) -> bool:
        return bool(position.epoch > self.config.warm_up_epochs)

    def survey(self, forward: Forward, position: EpochPosition, memory: CorrespondenceMemory) -> None:
        if self.begins(position):
            self.inputs = self.inputs or InputVectors(memory.count, without="--uot-rcl-held-out-weight 0")
            self.inputs.add(forward)
        if self.corrects(position):
            self.encode(forward, memory)

    def encode(self, forward: Forward, memory: CorrespondenceMemory) -> None:
        """Keep encodings and class probabilities of a batch."""
        network, ids = forward.networks[0], forward.batch.ids
        if self.bank is None:
            width = network.images.shape[1]
            self.bank = FeatureBank.empty(memory.count, width, self.given.count, network.images.device)
        logits = self.logits(forward)
        where = ids.to(network.images.device)
        self.bank.images[where], self.bank.texts[where] = network.images.float(), network.texts.float()
        self.bank.image_probability[where] = logits[0].float().softmax(dim=1)
        self.bank.text_probability[where] = logits[1].float().softmax(dim=1)
        self.bank.predicted[where] = (logits[0] + logits[1]).argmax(dim=1)

    def start_epoch(self, position: EpochPosition, memory: CorrespondenceMemory) -> dict[str, float]:
        scalars = self.ask_linear_models(memory) if self.begins(position) else {}
        return scalars | self.correct(position, memory) if self.corrects(position) else scalars

    def correct(self, position: EpochPosition, memory: CorrespondenceMemory) -> dict[str, float]:
        """The corrected labels of this epoch, from what all pairs are encoded as."""
        assert self.bank is not None
        config, bank, self.bank = self.config, self.bank, None
        device = bank.images.device
        targets = running_targets(memory.read("targets").to(device), bank.predicted, momentum=config.momentum)
        memory.write("targets", None, targets)
        predictions_changed = (bank.predicted != self.given.labels.to(device)).float().mean()
        if not memory.has_noted("predictions_changed"):
            memory.note("predictions_changed", predictions_changed)
        confident = self.confident_set(bank, position)
        memory.write("confident", None, torch.zeros(memory.count).index_fill(0, confident.cpu(), 1.0))
        memory.note("confident_images", bank.images[confident])
        memory.note("confident_texts", bank.texts[confident])
        neighbours = config.neighbours or max(2, int(NEIGHBOUR_SHARE * memory.count))
        cost = label_cost(
            bank.images,
            bank.texts,
            targets,
            confident if config.consistency == "printed" else None,
            neighbours=neighbours,
        )
        mass = self.mass(position, memory)
        plan = corrected_labels(
            cost,
            self.class_mass(bank, targets, memory),
            mass=mass,
            epsilon=config.epsilon,
            surplus_cost=torch.inf if config.mass_constraint == "exact" else 0.0,
        )
        memory.write("label_distribution", None, plan)
        given = self.given.labels.to(device)
        return {
            "transported_mass": float(plan.sum() / len(plan)),
            "confident_pairs": float(len(confident)),
            "labels_changed": float((plan.argmax(dim=1) != given).float().mean()),
            "predictions_changed": float(predictions_changed),
            "doubt": self.doubt(memory),
        }

    def confident_set(self, bank: FeatureBank, position: EpochPosition) -> Tensor:
        """G: where both modalities say the same (eq. 4, 5), or as many pairs at random; ids, int64."""
        config = self.config
        if config.confident == "consistent":
            return confident_pairs(bank.image_probability, bank.text_probability, per_class=config.per_class)
        count = min(config.per_class * self.given.count, len(bank.images))
        drawn = generator(position.seed, "random confident set", position.overall).permutation(len(bank.images))[:count]
        return torch.from_numpy(drawn).sort().values.to(bank.images.device)

    def confirmed(self, memory: CorrespondenceMemory) -> float:
        """The share of the given labels that the warm-up's network predicts too; 1 before the first correction."""
        noted = memory.has_noted("predictions_changed")
        return 1 - float(memory.noted("predictions_changed")) if noted else 1.0

    def doubt(self, memory: CorrespondenceMemory) -> float:
        """How far the given labels are mistrusted, in [0, 1], by the share that the warm-up's network contradicts.

        Where nearly all labels are right, regularising against the rest costs more than it saves: without doubt there
        is no L_BHG, and every label is transported by the end.
        """
        first, full = self.config.doubt_from, self.config.doubt_to
        contradicted = 1 - self.confirmed(memory)
        if contradicted >= full:
            return 1.0
        return 0.0 if contradicted <= first else (contradicted - first) / (full - first)

    def mass(self, position: EpochPosition, memory: CorrespondenceMemory) -> float:
        """s: grows linearly from the first epoch after the warm-up to the last one (section IV-B2)."""
        config, epochs = self.config, position.stages[position.stage].epochs
        share = (position.epoch - config.warm_up_epochs - 1) / max(epochs - config.warm_up_epochs - 1, 1)
        last = 1 - (1 - config.last_mass) * self.doubt(memory)
        return float(config.first_mass + share * (last - config.first_mass))

    def class_mass(self, bank: FeatureBank, targets: Tensor, memory: CorrespondenceMemory) -> Tensor:
        """r, (K,) up to scale (eq. 12).

        Predicted ones are those of the first correction: taken anew each epoch, large classes grow and small ones die
        out, since the network learns the labels that these sizes hand out.
        """
        if self.config.class_prior == "uniform":
            return torch.ones_like(targets[0])
        if self.config.class_prior == "given":
            return self.given.one_hot().mean(dim=0).to(targets)
        if not memory.has_noted("class_sizes"):
            predicted = torch.bincount(bank.predicted, minlength=self.given.count) / len(targets)
            memory.note("class_sizes", (predicted + targets.mean(dim=0)) / 2)  # every class that some label names
        return memory.noted("class_sizes").to(targets)

    # The two losses (eq. 15 and 18)

    def batch_loss(self, forward: Forward, position: EpochPosition, memory: CorrespondenceMemory) -> BatchLoss:
        logits, ids = self.logits(forward), forward.batch.ids
        corrects = self.corrects(position)
        if not corrects:
            self.remember_prediction(logits, forward, memory)
        given = not corrects or self.config.keep_labels
        target = self.given.one_hot()[ids.cpu()] if given else self.learned_labels(memory, ids)
        target = target.to(logits[0])
        label_loss = soft_cross_entropy(logits[0], target) + soft_cross_entropy(logits[1], target)
        scalars = {"label_loss": float(label_loss.detach().mean())}
        weight = self.relation_weight(memory) if corrects else 0.0
        if not weight:
            return BatchLoss(label_loss, scalars)
        relation_loss = self.relation_loss(forward, memory)
        scalars["relation_loss"] = float(relation_loss.detach().mean())
        return BatchLoss(label_loss + weight * relation_loss, scalars)

    def relation_weight(self, memory: CorrespondenceMemory) -> float:
        """λ as far as there is doubt; 0 where linear models find a smaller share of labels drawn anew, ρ, than it pays
        with. What is noted is the share that is wrong of them, ρ (1 − 1/K).
        """
        if memory.has_noted(WRONG):
            least = self.config.relation_from * (1 - 1 / self.given.count)
            if float(memory.noted(WRONG)[0]) < least:
                return 0.0
        return self.config.relation_weight * self.doubt(memory)

    def learned_labels(self, memory: CorrespondenceMemory, ids: Tensor) -> Tensor:
        """The corrected labels of some pairs, (n, K), and in the place of the part that is not transported what the
        held-out models say. Where they see no label that is wrong at random, that is the given one, as far as there is
        no doubt about such labels; where they can tell nothing it is nothing.
        """
        plan = memory.read("label_distribution", ids)
        if self.config.remainder == "none" or not (memory.has_noted(WRONG) or memory.has_noted(UNSEEN)):
            return plan
        left = (1 - plan.sum(dim=1, keepdim=True)).clamp(min=0)
        rest = memory.read(HELD_OUT, ids)
        return plan + left * (rest if memory.has_noted(WRONG) else (1 - self.doubt(memory)) * rest)

    def relation_loss(self, forward: Forward, memory: CorrespondenceMemory) -> Tensor:
        """L_BHG, (B,): images and texts that stand alike to the confident set match (eq. 16–18), and given pairs do."""
        config, network = self.config, forward.networks[0]
        with torch.no_grad():
            plan = self.match(network.images.detach(), network.texts.detach(), memory)
            pairs = torch.eye(len(plan), device=plan.device, dtype=plan.dtype) / len(plan)
            plan = torch.lerp(plan, pairs, config.pair_weight)
        return relation_alignment(network.similarity, plan, temperature=config.match_temperature)

    def match(self, images: Tensor, texts: Tensor, memory: CorrespondenceMemory) -> Tensor:
        """M, (B, B): the transport of images onto texts by their relations (eq. 17)."""
        sides = ((images, "confident_images"), (texts, "confident_texts"))
        image_relation, text_relation = (
            relations(side, memory.noted(name).to(side), temperature=self.config.relation_temperature)
            for side, name in sides
        )
        cost = relation_cost(image_relation, text_relation)
        spread = float(cost.max() - cost.min())
        share = torch.full((len(cost),), 1 / len(cost), device=cost.device, dtype=cost.dtype)
        least = torch.finfo(cost.dtype).eps  # all relations alike: every match is as good
        return sinkhorn(cost, share, share, epsilon=max(self.config.relation_epsilon * spread, least))

    # What is believed

    def label_distribution(self, memory: CorrespondenceMemory) -> Tensor:
        """What the held-out models say, where they tell, and the corrected labels for the rest of the weight."""
        own = self.transported_distribution(memory)
        weight = self.config.held_out_weight
        return torch.lerp(own, memory.read(HELD_OUT), weight) if memory.has_noted(WRONG) else own

    def label_beliefs(self, memory: CorrespondenceMemory) -> LabelBeliefs:
        found = super().label_beliefs(memory)
        if not memory.has_noted(WRONG):
            return found
        return replace(found, wrong=WrongShare(*memory.noted(WRONG).tolist()))

    def transported_distribution(self, memory: CorrespondenceMemory) -> Tensor:
        """The corrected labels, (N, K), rows sum to one.

        What was not transported is the given label as far as the warm-up confirms such labels. The rest of it goes
        where the transported part of the pair went.
        """
        plan = memory.read("label_distribution")
        moved = plan.sum(dim=1, keepdim=True)
        given = self.given.one_hot()
        went = torch.where(moved > 0, plan / moved.clamp(min=torch.finfo(plan.dtype).tiny), given)
        return plan + (1 - moved).clamp(min=0) * torch.lerp(went, given, self.confirmed(memory))

    def confidence(self, memory: CorrespondenceMemory) -> Tensor:
        """How sure the most probable class is; without held-out models the share of the label that was transported,
        (N,) in [0, 1].
        """
        if memory.has_noted(WRONG):
            return super().confidence(memory)
        return memory.read("label_distribution").sum(dim=1).clamp(0, 1)
