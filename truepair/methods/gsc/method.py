"""GSC: mitigating noisy correspondence by geometrical structure consistency (CVPR 2024).

A matched pair agrees in two ways: across the modalities, its image is closer to its text than to other texts; within
them, the image stands to the other images as the text stands to the other texts. Both agreements are learned with the
labels and, in turn, indicate the labels: the lower of the two, smoothed over epochs, is what a pair is believed.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import replace

import torch
from torch import Tensor

from truepair.correspondence import CorrespondenceMemory, matching_probability
from truepair.correspondence.division import divide_by_odds
from truepair.correspondence.mixture import fit_mixture, released_posterior
from truepair.correspondence.structure import intra_modal_similarity
from truepair.losses.consistency import cross_modal_consistency, intra_modal_consistency
from truepair.methods.base import BatchLoss, EpochPosition, Forward, Method, Stage
from truepair.methods.gsc.as_printed import PRINTED
from truepair.methods.gsc.options import GSCConfig
from truepair.methods.pair_field import PairField
from truepair.methods.warm_up import check_epochs

logger = logging.getLogger(__name__)


class GSC(Method):
    """One network on its own labels, or two that teach each other (`co_train`).

    Per pair and network the memory holds `label` y, the indicators `cross_modal` y_CM and `intra_modal` y_IM it is made
    of, and what the last epoch saw: `seen_probability` p̂, `seen_similarity` S_ii and `seen_structure` S_IM. The second
    network's fields end in `_b`.
    """

    name = "gsc"
    printed = PRINTED
    fields = Method.fields | {
        "label": PairField("label", "y"),
        "cross_modal": PairField("cross-modal indicator", r"y_\mathrm{CM}"),
        "intra_modal": PairField("intra-modal indicator", r"y_\mathrm{IM}"),
        "seen_similarity": PairField("similarity", "S_{ii}", unit=False),
        "seen_structure": PairField(
            "intra-modal similarity", r"S_\mathrm{IM}", unit=False, mixture=("structure", "mixture")
        ),
    }

    def __init__(self, config: GSCConfig) -> None:
        self.config = config
        self.networks = 2 if config.co_train else 1
        self.turns = 2 if config.co_train and config.exchange == "in_turn" else 1
        self.suffixes = ("", "_b")[: self.networks]

    @property
    def similarity_temperature(self) -> float:
        return float(self.config.cross_modal_temperature)

    def stages(self, epochs: int, decay_after: int | None) -> tuple[Stage, ...]:
        check_epochs("GSC", epochs, self.config.warm_up_epochs, "to refine labels")
        return super().stages(epochs, decay_after)

    def prepare(self, memory: CorrespondenceMemory) -> None:
        for suffix in self.suffixes:
            for field in (
                "seen_probability",
                "seen_similarity",
                "seen_structure",
                "cross_modal",
                "intra_modal",
                "label",
            ):
                memory.register(field + suffix, 1.0)

    def learning(self, position: EpochPosition) -> tuple[int, ...]:
        """The networks that learn at a step: all, or that whose turn it is."""
        return (position.turn,) if self.turns > 1 else tuple(range(self.networks))

    def batch_loss(self, forward: Forward, position: EpochPosition, memory: CorrespondenceMemory) -> BatchLoss:
        """L = L_CM + γ L_IM (eq. 9), for each network on the labels of its teacher: itself, or the other one."""
        config, ids = self.config, forward.batch.ids
        losses = []
        for index in self.learning(position):
            network, suffix, teacher = forward.networks[index], self.suffixes[index], self.suffixes[-1 - index]
            similarity = network.similarity
            label = memory.read("label" + teacher, ids).to(similarity.device)
            images, texts = network.image_similarity, network.text_similarity
            across = cross_modal_consistency(similarity, label, temperature=config.cross_modal_temperature)
            within = intra_modal_consistency(
                images,
                texts,
                label,
                temperature=config.intra_modal_temperature,
                believed=config.intra_modal_pairs == "believed",
            )
            losses.append(across + config.intra_modal_weight * within)
            probability = matching_probability(similarity.detach(), temperature=config.cross_modal_temperature)
            memory.write("seen_probability" + suffix, ids, probability)
            memory.write("seen_similarity" + suffix, ids, similarity.diagonal())
            memory.write("seen_structure" + suffix, ids, intra_modal_similarity(images.detach(), texts.detach(), label))
        return BatchLoss(torch.stack(losses).sum(dim=0), {})  # no parameter is shared: each learns as if alone

    def finish_turn(self, position: EpochPosition, memory: CorrespondenceMemory) -> dict[str, float]:
        """The first network's labels, which the second learns from in the same epoch (Algorithm 1)."""
        return {} if self.warms_up(position) else self.relabel(self.learning(position), position, memory)

    def finish_epoch(self, position: EpochPosition, memory: CorrespondenceMemory) -> dict[str, float]:
        """New labels of the networks that learned last; of all where the warm-up, in which none has new ones, ends."""
        last = replace(position, step=self.turns * position.steps - 1)
        learned = range(self.networks) if self.warms_up(position) else self.learning(last)
        return self.relabel(learned, position, memory)

    def warms_up(self, position: EpochPosition) -> bool:
        return bool(position.epoch <= self.config.warm_up_epochs)

    def relabel(
        self, learned: Sequence[int], position: EpochPosition, memory: CorrespondenceMemory
    ) -> dict[str, float]:
        """Labels from what the epoch saw: y = min(y_CM, y_IM) (eq. 5), both smoothed over epochs (eq. 10)."""
        scalars: dict[str, float] = {}
        for suffix in (self.suffixes[index] for index in learned):
            posterior, record = self.structural_posterior(memory.read("seen_structure" + suffix), position)
            if position.epoch >= self.config.warm_up_epochs:
                indicators = {"cross_modal": memory.read("seen_probability" + suffix), "intra_modal": posterior}
                self.smooth(indicators, suffix, memory)
            label = torch.minimum(memory.read("cross_modal" + suffix), memory.read("intra_modal" + suffix))
            memory.write("label" + suffix, None, label)
            scalars |= {name + suffix: value for name, value in record.items()}
            scalars["label_mean" + suffix] = float(label.mean())
        return scalars

    def smooth(self, indicators: dict[str, Tensor], suffix: str, memory: CorrespondenceMemory) -> None:
        """Temporal ensembling (eq. 10)."""
        momenta = {"cross_modal": self.config.cross_modal_momentum, "intra_modal": self.config.intra_modal_momentum}
        for field, new in indicators.items():
            smoothed = momenta[field] * new + (1 - momenta[field]) * memory.read(field + suffix)
            memory.write(field + suffix, None, smoothed)

    def structural_posterior(self, structure: Tensor, position: EpochPosition) -> tuple[Tensor, dict[str, float]]:
        """How probably each pair belongs to the part with the larger S_IM (eq. 4), (N,) in [0, 1]; and the fit.

        Where one normal distribution explains the values as well as two, they tell nothing: every pair gets 1; not so
        with the plain and the released fit.
        """
        low, high = structure.min(), structure.max()
        scaled = (structure - low) / (high - low) if high > low else torch.ones_like(structure)
        if self.config.mixture == "released":
            return torch.from_numpy(released_posterior(scaled.double().numpy())).float(), {}
        mixture = fit_mixture(scaled.double().numpy())
        record = {f"structure_{name}": float(value) for name, value in (("low", low), ("high", high))}
        asked = self.config.mixture == "likelihood"
        record["mixture_two_components"] = float(mixture.two_components or not asked)
        for part, name in enumerate(("noisy", "clean")):
            record[f"mixture_{name}_mean"] = float(mixture.means[part])
            record[f"mixture_{name}_deviation"] = float(mixture.variances[part]) ** 0.5
            record[f"mixture_{name}_weight"] = float(mixture.weights[part])
        if asked and not mixture.two_components:
            logger.warning(
                "GSC: intra-modal similarities of epoch %d show no two groups: %s; the cross-modal indicator decides",
                position.overall,
                mixture.doubt,
            )
            return torch.ones_like(structure), record
        if not mixture.converged:
            logger.warning(
                "GSC: the mixture of epoch %d did not converge within %d steps; its last state is used",
                position.overall,
                mixture.iterations,
            )
        return torch.from_numpy(mixture.posterior(scaled.double().numpy(), monotone=asked)).float(), record

    def belief(self, memory: CorrespondenceMemory) -> Tensor:
        """The label; with two networks the mean of theirs."""
        return torch.stack([memory.read("label" + suffix) for suffix in self.suffixes]).mean(dim=0)

    def division(self, memory: CorrespondenceMemory) -> Tensor:
        """By the two groups of the labels: a label is a share among look-alikes and has no threshold of its own."""
        return divide_by_odds(self.belief(memory))
