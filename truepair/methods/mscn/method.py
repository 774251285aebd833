"""MSCN: noisy correspondence learning with meta similarity correction (CVPR 2023).

The score of a pair comes from a small network, the similarity head, that learns to tell pairs known to match from wrong
ones. A pair's own score sets the margin of its triplet loss, and a mixture of all scores, begun from those of known and
of wrong pairs, says which pairs are trained on. Two networks divide the pairs for each other.
"""

from __future__ import annotations

import logging
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor, nn

from truepair.correspondence import CorrespondenceMemory, matching_probability
from truepair.correspondence.beta_mixture import fit_beta_mixture
from truepair.correspondence.division import Part
from truepair.engines.retrieval_model import evaluating
from truepair.losses import hinge_ranking
from truepair.losses.meta import meta_cross_entropy, score_margin
from truepair.methods.auxiliary import AuxiliaryNetworks, ParameterGroups
from truepair.methods.base import BatchLoss, EpochPosition, Forward, Method, NetworkForward, Stage, at_least_single
from truepair.methods.mscn.as_printed import PRINTED
from truepair.methods.mscn.options import MSCNConfig
from truepair.methods.mscn.trial import head_parameters, through_trial_step
from truepair.methods.pair_field import PairField
from truepair.methods.warm_up import check_epochs

logger = logging.getLogger(__name__)

RELEASED_STEPS, RELEASED_TOLERANCE = 10, 1e-2
PRINTED_RATE = 2e-4


class AuxiliaryHeads(AuxiliaryNetworks):
    """No further networks; the similarity heads have a rate of their own."""

    def __init__(self, rate: float) -> None:
        self.rate = rate

    def parameter_groups(self, engine: Any, networks: nn.Module | None) -> ParameterGroups:
        heads = head_parameters(engine)
        of_heads = {id(parameter) for parameter in heads}
        return [([p for p in engine.parameters() if id(p) not in of_heads], 1.0), (heads, self.rate)]


class MSCN(Method):
    """The hinge with the hardest negatives, its margin set by the pair's own score.

    Per pair and network the memory holds what the last survey found: `score` s and `wrong`, the score of its image with
    another pair's text, and `weight` w, the posterior of the upper group of scores. The second network's end in `_b`.
    """

    name = "mscn"
    config: MSCNConfig
    printed = PRINTED
    reads_beside = True
    least_trusted = 20
    fields = Method.fields | {
        "score": PairField("similarity score", "s"),
        "wrong": PairField("score with another's text"),
        "weight": PairField("posterior of being clean", "w"),
    }

    def __init__(self, config: MSCNConfig) -> None:
        super().__init__(config)
        self.networks = 2 if config.co_train else 1
        self.suffixes = ("", "_b")[: self.networks]
        self.head_width = config.head_width
        self.auxiliary = AuxiliaryHeads(config.head_rate)

    def prepare(self, memory: CorrespondenceMemory) -> None:
        super().prepare(memory)
        for suffix in self.suffixes:
            for field, initial in (("score", 0.5), ("wrong", 0.5), ("weight", 1.0)):
                memory.register(field + suffix, initial)

    def stages(self, epochs: int, decay_after: int | None) -> tuple[Stage, ...]:
        check_epochs(self.name, epochs, self.config.warm_up_epochs, "to divide the pairs")
        return super().stages(epochs, decay_after)

    def surveys(self, position: EpochPosition) -> bool:
        return position.epoch > self.config.warm_up_epochs

    def survey(self, forward: Forward, position: EpochPosition, memory: CorrespondenceMemory) -> None:
        """The scores of every pair and of one wrong pair of each, by each network."""
        ids = forward.batch.ids
        for network, suffix in zip(forward.networks, self.suffixes, strict=True):
            memory.write("score" + suffix, ids, network.similarity.diagonal())
            memory.write("wrong" + suffix, ids, network.similarity.roll(-1, dims=1).diagonal())

    def start_epoch(self, position: EpochPosition, memory: CorrespondenceMemory) -> dict[str, float]:
        """The division: w of every pair, by a mixture begun from the scores of known pairs and of wrong ones."""
        scalars: dict[str, float] = {}
        for suffix in self.suffixes if self.surveys(position) else ():
            weight, doubt = self.posterior(suffix, memory)
            if doubt:
                logger.warning(
                    "%s: scores before epoch %d show no two groups: %s; no pair is left out",
                    self.name,
                    position.overall,
                    doubt,
                )
            memory.write("weight" + suffix, None, torch.from_numpy(weight))
            trusted = memory.read("score" + suffix)[memory.trusted]
            scalars |= {
                "clean_share" + suffix: float((weight > self.config.threshold).mean()),
                "known_score" + suffix: float(trusted.mean()),
                "wrong_score" + suffix: float(memory.read("wrong" + suffix)[memory.trusted].mean()),
            }
        return scalars

    def posterior(self, suffix: str, memory: CorrespondenceMemory) -> tuple[np.ndarray[Any, Any], str | None]:
        """w of all pairs, (N,), and why they do not fall into two groups; None where they do."""
        scores, wrong = (memory.read(name + suffix).double().clamp(0, 1).numpy() for name in ("score", "wrong"))
        assert memory.trusted is not None
        known = memory.trusted.numpy()
        start = wrong[known], scores[known]
        if self.config.mixture == "released":
            few = fit_beta_mixture(scores, start=start, steps=RELEASED_STEPS, tolerance=RELEASED_TOLERANCE)
            return few.posterior(scores), None
        mixture = fit_beta_mixture(scores, start=start)
        return (np.ones(len(scores)) if mixture.doubt else mixture.posterior(scores)), mixture.doubt

    def batch_loss(self, forward: Forward, position: EpochPosition, memory: CorrespondenceMemory) -> BatchLoss:
        divided = self.surveys(position)
        similarities = [self.learned_scores(network) if divided else network.similarity for network in forward.networks]
        mean = torch.stack(similarities).mean(dim=0)
        probability = matching_probability(mean.detach(), temperature=self.probability_temperature)
        memory.write("seen_probability", forward.batch.ids, probability)
        if not divided:
            every = [hinge_ranking(s, margin=self.config.margin, negatives=len(s)) for s in similarities]
            return BatchLoss(torch.stack(every).sum(dim=0), {})
        hinges = self.hinges(similarities, forward.batch.ids, memory)
        meta = self.meta_loss(forward, memory)
        return BatchLoss(hinges + meta.to(hinges), {"meta_loss": float(meta.detach()) / self.networks})

    def hinges(self, similarities: list[Tensor], ids: Tensor, memory: CorrespondenceMemory) -> Tensor:
        """The hinges of every pair, (B,), of both networks: 0 where the other's division leaves the pair out."""
        losses = []
        for similarity, teacher in zip(similarities, reversed(self.suffixes), strict=True):
            margin = score_margin(similarity.diagonal(), self.config.margin)
            trained = memory.read("weight" + teacher, ids).to(similarity) > self.config.threshold
            hardest = max(1, round(self.config.negatives * (len(ids) - 1)))
            hinges = hinge_ranking(similarity, margin=margin, negatives=hardest)
            losses.append(torch.where(trained, hinges, 0 * hinges))
        return torch.stack(losses).sum(dim=0)

    def learned_scores(self, network: NetworkForward) -> Tensor:
        """S, (B, B), from which the encoders learn and the head does not."""
        engine = network.engine
        with engine.similarity_head.learning("encoders"):
            return engine.as_similarity(at_least_single(engine.scores(network.images, network.texts)))

    def meta_loss(self, forward: Forward, memory: CorrespondenceMemory) -> Tensor:
        """The cross entropy of some known pairs and of wrong ones made of them, 0-d; the heads alone learn from it."""
        assert memory.trusted is not None
        known = memory.trusted.nonzero()[:, 0]
        chosen = known[torch.randperm(len(known))[: self.config.meta_pairs]]
        if self.config.trial == "left_out":
            return self.known_loss(forward, chosen, "head")
        ids, given = forward.batch.ids, self.config.trial_rate
        return through_trial_step(
            forward,
            hinges=lambda similarities: self.hinges(similarities, ids, memory).sum(),
            known=lambda: self.known_loss(forward, chosen, "both"),
            rate=PRINTED_RATE if given is None else given,
        )

    def known_loss(self, forward: Forward, chosen: Tensor, learns: Literal["both", "head"]) -> Tensor:
        """The cross entropy of these known pairs and of wrong ones made of them, summed over the networks, 0-d."""
        losses = []
        with evaluating(forward.engine):
            for network in forward.beside(chosen).networks:
                with torch.set_grad_enabled(learns == "both"):
                    images, texts = network.images, network.texts
                with network.engine.similarity_head.learning(learns):
                    losses.append(meta_cross_entropy(at_least_single(network.engine.scores(images, texts))))
        return torch.stack(losses).sum()

    def belief(self, memory: CorrespondenceMemory) -> Tensor:
        """s; with two networks the mean of theirs."""
        return torch.stack([memory.read("score" + suffix) for suffix in self.suffixes]).mean(dim=0)

    def division(self, memory: CorrespondenceMemory) -> Tensor:
        """By the posteriors."""
        weight = torch.stack([memory.read("weight" + suffix) for suffix in self.suffixes]).mean(dim=0)
        return torch.where(weight > self.config.threshold, int(Part.CLEAN), int(Part.NOISY))
