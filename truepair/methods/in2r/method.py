"""IN²R: intra-modal neighbours for noisy correspondence (ICML 2026).

Within a modality nothing is mismatched. The image of a noisy pair keeps learning: its nearest images among the surest
pairs have texts, and what these have in common stands for the text it lacks; so for its text. Two networks divide the
pairs for each other and look up neighbours in each other's bank of vectors.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from truepair.correspondence import CorrespondenceMemory, matching_probability
from truepair.losses import hinge_ranking
from truepair.losses.products import products
from truepair.losses.rematching import symmetric_cross_entropy
from truepair.methods.base import BatchLoss, EpochPosition, Forward, NetworkForward, at_least_single
from truepair.methods.in2r.as_printed import PRINTED
from truepair.methods.in2r.options import IN2RConfig
from truepair.methods.in2r.prototypes import AuxiliaryRefiners, nearest_partners
from truepair.methods.loss_division.method import LossDivision

ROUNDING = 1e-6


class IN2R(LossDivision):
    """Hinges for clean pairs, prototypes from a bank for noisy ones.

    With two networks an epoch has two turns, one for each, in orders of their own: from the same start and in the same
    order they would stay the same. The bank of each network lies in the memory as notes, made anew before each epoch.
    """

    name = "in2r"
    config: IN2RConfig
    printed = PRINTED
    needs_vectors = True
    kept = ("loss", "weight")

    def __init__(self, config: IN2RConfig) -> None:
        super().__init__(config)
        self.turns = self.networks
        self.reads_beside = config.second_pass == "taken"
        self.auxiliary = AuxiliaryRefiners()
        self.seen: dict[str, Tensor] = {}  # vectors of a pass over all pairs, until it is done

    def prepare(self, memory: CorrespondenceMemory) -> None:
        super().prepare(memory)
        self.seen = {}

    def survey(self, forward: Forward, position: EpochPosition, memory: CorrespondenceMemory) -> None:
        """ℓ and the vectors of every pair, by each network."""
        super().survey(forward, position, memory)
        ids = forward.batch.ids.cpu()
        for network, suffix in zip(forward.networks, self.suffixes, strict=True):
            for side, vectors in (("image", network.images), ("text", network.texts)):
                name = f"bank_{side}{suffix}"
                if name not in self.seen:
                    self.seen[name] = torch.zeros(memory.count, vectors.shape[1], dtype=torch.float16)
                self.seen[name][ids] = vectors.detach().cpu().half()

    def start_epoch(self, position: EpochPosition, memory: CorrespondenceMemory) -> dict[str, float]:
        scalars = super().start_epoch(position, memory)
        for suffix, teacher in zip(self.suffixes, reversed(self.suffixes), strict=True) if self.seen else ():
            scalars["bank_size" + suffix] = float(self.fill_bank(suffix, teacher, memory))
        self.seen = {}
        return scalars

    def fill_bank(self, suffix: str, teacher: str, memory: CorrespondenceMemory) -> int:
        """Note the vectors of a network of the pairs that its teacher's division is surest of; how many these are.

        Clean pairs whose posterior is no less than the mean of all clean ones, at most `bank` of them.
        """
        weight = memory.read("weight" + teacher)
        clean = weight > self.config.threshold
        least = weight[clean].mean() - ROUNDING if bool(clean.any()) else torch.inf
        chosen = (clean & (weight >= least)).nonzero()[:, 0]
        surest = weight[chosen].argsort(descending=True, stable=True)[: self.config.bank]
        chosen = chosen[surest].sort().values
        memory.note("bank_ids" + suffix, chosen)
        for side in ("image", "text"):
            memory.note(f"bank_{side}{suffix}", self.seen[f"bank_{side}{suffix}"][chosen])
        return len(chosen)

    def batch_loss(self, forward: Forward, position: EpochPosition, memory: CorrespondenceMemory) -> BatchLoss:
        """The loss of the network whose turn it is."""
        index, ids = position.turn, forward.batch.ids
        network = forward.networks[index]
        probability = matching_probability(network.similarity.detach(), temperature=self.probability_temperature)
        memory.write("seen_probability", ids, probability)
        within = self.within(network, forward, index)
        if not self.surveys(position):
            return BatchLoss(self.robust_loss(network, within), {})
        assert isinstance(forward.auxiliary, nn.ModuleList)
        weight = memory.read("weight" + self.suffixes[-1 - index], ids).to(network.similarity)
        loss = self.network_loss(network, within, weight)
        noisy = (weight <= self.config.threshold).nonzero()[:, 0]
        if len(noisy) < 2:  # one alone has no other to be told from
            return BatchLoss(loss, {})
        anew = self.rematched(network, ids.cpu()[noisy.cpu()], noisy, index, forward.auxiliary[index], memory)
        rematch_weight = 1 / len(weight) if self.config.rematch_weight is None else self.config.rematch_weight
        return BatchLoss(loss if anew is None else loss.index_add(0, noisy, rematch_weight * anew.to(loss)), {})

    def within(self, network: NetworkForward, forward: Forward, index: int) -> tuple[Tensor, Tensor]:
        """Similarities of images among themselves and of texts, (B, B) each.

        Rows are the items of this pass; columns the same ones or, of a second pass, the items as they are, unaltered.
        """
        if self.config.second_pass == "left_out":
            return network.image_similarity, network.text_similarity
        engine, second = network.engine, forward.beside(forward.batch.ids).networks[index]
        images, texts = engine.scores(network.images, second.images), engine.scores(network.texts, second.texts)
        return engine.as_similarity(at_least_single(images)), engine.as_similarity(at_least_single(texts))

    def robust_loss(self, network: NetworkForward, within: tuple[Tensor, Tensor]) -> Tensor:
        """R of images and texts, of images among themselves and of texts, (B,)."""
        matrices = (network.similarity, *within)
        each = [symmetric_cross_entropy(matrix, temperature=self.config.temperature) for matrix in matrices]
        return torch.stack(each).sum(dim=0)

    def network_loss(self, network: NetworkForward, within: tuple[Tensor, Tensor], weight: Tensor) -> Tensor:
        """Loss of every clean pair, (B,), hinges across and within the modalities; 0 of a noisy one."""
        hinges = hinge_ranking(network.similarity, margin=self.config.margin)
        for matrix in within:
            hinges = hinges + hinge_ranking(matrix, margin=self.config.intra_modal_margin)
        return torch.where(weight > self.config.threshold, hinges, 0 * hinges)

    def rematched(
        self,
        network: NetworkForward,
        ids: Tensor,
        places: Tensor,
        index: int,
        refiners: nn.Module,
        memory: CorrespondenceMemory,
    ) -> Tensor | None:
        """½ R of the noisy images with the prototypes of their texts, and ½ R the other way round, (n,).

        None where the other network's bank has too few pairs. A pair is never its own neighbour.
        """
        assert isinstance(refiners, nn.ModuleList)
        suffix = self.suffixes[-1 - index]
        images, texts = network.images[places], network.texts[places]
        bank_images, bank_texts = (memory.noted(f"bank_{side}{suffix}").to(images) for side in ("image", "text"))
        bank_ids = memory.noted("bank_ids" + suffix)
        itself = (ids[:, None] == bank_ids[None, :]).to(images.device)
        count = min(self.config.neighbours, len(bank_ids) - 1)
        if count < 1:
            return None
        text_refiner, image_refiner = refiners
        text_prototypes = text_refiner(nearest_partners(images, bank_images, bank_texts, itself, count))
        image_prototypes = image_refiner(nearest_partners(texts, bank_texts, bank_images, itself, count))
        temperature = self.config.temperature
        kept_image = symmetric_cross_entropy(products(images, text_prototypes), temperature=temperature)
        kept_text = symmetric_cross_entropy(products(image_prototypes, texts), temperature=temperature)
        return (kept_image + kept_text) / 2

    def divided_losses(self, forward: Forward, position: EpochPosition, memory: CorrespondenceMemory) -> list[Tensor]:
        """By turns: see `batch_loss`."""
        return [self.batch_loss(forward, position, memory).per_pair]
