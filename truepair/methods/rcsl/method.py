"""RCSL: robust cross-modal semi-paired learning (AAAI 2026), with known pairs, or a division in place of them.

Paired items rank and align; all items spread out. An unpaired image is matched with the nearest caption of the whole
training set, an unpaired caption with the nearest image, by a loss that tolerates that many of these are wrong.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from truepair.correspondence import CorrespondenceMemory
from truepair.errors import InputError
from truepair.losses import hinge_ranking
from truepair.losses.semi_paired import alignment, mined_matching, uniformity
from truepair.methods.base import EpochPosition, Forward, Stage
from truepair.methods.loss_division.method import LossDivision
from truepair.methods.pair_field import PairField
from truepair.methods.rcsl.as_printed import PRINTED
from truepair.methods.rcsl.options import RCSLConfig

ROWS = 1024  # queries at a time
LEAST_KNOWN = 2  # the hinge of a paired one needs another


class RCSL(LossDivision):
    """Ranking and alignment of paired items, uniformity of all, matching with looked-up partners.

    Per pair the memory holds beside the division `image_partner` and `text_partner`, the pairs whose text (image) is
    nearest to its image (text); its own where it is paired. Vectors of remembered partners lie there as notes.
    """

    name = "rcsl"
    config: RCSLConfig
    printed = PRINTED
    needs_vectors = True
    kept = ("loss", "weight")
    fields = LossDivision.fields | {
        "image_partner": PairField("pair of the nearest text", unit=False, shown="never"),
        "text_partner": PairField("pair of the nearest image", unit=False, shown="never"),
    }

    def __init__(self, config: RCSLConfig) -> None:
        super().__init__(config)
        self.seen: dict[str, Tensor] = {}  # vectors of a pass over all pairs, until it is done
        self.knows = config.paired == "known"
        self.least_trusted = LEAST_KNOWN if self.knows else 0
        self.reads_beside = config.partners == "encoded"

    def prepare(self, memory: CorrespondenceMemory) -> None:
        super().prepare(memory)
        self.seen = {}
        for field in ("image_partner", "text_partner"):
            memory.register(field, torch.arange(memory.count))
        if self.knows and memory.trusted is not None:
            memory.write("weight", None, memory.trusted.float())

    @property
    def warm_up_epochs(self) -> int:
        return 0 if self.knows else super().warm_up_epochs

    def stages(self, epochs: int, decay_after: int | None) -> tuple[Stage, ...]:
        """With `restart` two, the second from the first look-up on; the rate falls after each multiple of its decay.

        Raises:
            InputError: no epoch is left for the second.
        """
        (whole,) = super().stages(epochs, decay_after)
        if not self.config.restart:
            return (whole,)
        first = self.unmined(epochs)
        if first >= epochs:
            raise InputError(
                f"restart is on, but of {epochs} epochs none is left after the first look-up of partners (mining_from "
                f"{self.config.mining_from:g}, a warm-up of {self.warm_up_epochs}); train longer, or look up earlier"
            )
        if first == 0:
            return (whole,)
        later = None if decay_after is None else (first // decay_after + 1) * decay_after - first
        return Stage(first, decay_after), Stage(epochs - first, later, goes_on=True)

    def unmined(self, epochs: int) -> int:
        """How many of all epochs come before the first look-up."""
        return max(math.floor(self.config.mining_from * epochs), self.warm_up_epochs)

    def divides(self, position: EpochPosition) -> bool:
        return position.overall > self.warm_up_epochs

    def looked_up(self, position: EpochPosition) -> int:
        """Which epoch it is from the first look-up on, that one being 1; less before it."""
        return position.overall - self.unmined(sum(stage.epochs for stage in position.stages))

    def mines(self, position: EpochPosition) -> bool:
        """Whether partners are used in an epoch."""
        return self.config.mining_weight > 0 and self.looked_up(position) >= 1

    def looks_up(self, position: EpochPosition) -> bool:
        """Whether partners are looked up before an epoch."""
        return self.mines(position) and (not self.config.mine_once or self.looked_up(position) == 1)

    def reads_all(self, position: EpochPosition) -> bool:
        """Whether an epoch needs the vectors of all pairs: to look partners up, or as those of remembered ones."""
        return self.mines(position) if self.config.partners == "remembered" else self.looks_up(position)

    def surveys(self, position: EpochPosition) -> bool:
        """For the division; where pairs are known, for the vectors alone."""
        return self.reads_all(position) if self.knows else super().surveys(position)

    def survey(self, forward: Forward, position: EpochPosition, memory: CorrespondenceMemory) -> None:
        super().survey(forward, position, memory)
        if not self.reads_all(position):
            return
        ids, network = forward.batch.ids.cpu(), forward.networks[0]
        for name, vectors in (("bank_image", network.images), ("bank_text", network.texts)):
            if name not in self.seen:
                self.seen[name] = torch.zeros(memory.count, vectors.shape[1], dtype=torch.float16)
            self.seen[name][ids] = vectors.detach().cpu().half()

    def start_epoch(self, position: EpochPosition, memory: CorrespondenceMemory) -> dict[str, float]:
        scalars = {} if self.knows else super().start_epoch(position, memory)
        if self.looks_up(position):
            scalars["partners_kept"] = self.look_up(memory)
        if self.config.partners == "remembered":
            for name, vectors in self.seen.items():
                memory.note(name, vectors)
        self.seen = {}
        return scalars

    def look_up(self, memory: CorrespondenceMemory) -> float:
        """Partners of all pairs; the share of the unpaired ones that found the given one."""
        unpaired = (memory.read("weight") <= self.config.threshold).nonzero()[:, 0]
        images, texts = (self.seen[name].float() for name in ("bank_image", "bank_text"))
        kept = []
        for field, queries, keys in (("image_partner", images, texts), ("text_partner", texts, images)):
            partner = torch.arange(memory.count)
            for some in unpaired.split(ROWS):  # type: ignore[no-untyped-call]
                partner[some] = (queries[some] @ keys.T).argmax(dim=1)
            memory.write(field, None, partner)
            kept.append((partner[unpaired] == unpaired).float().mean() if len(unpaired) else torch.tensor(1.0))
        return float(torch.stack(kept).mean())

    def divided_losses(self, forward: Forward, position: EpochPosition, memory: CorrespondenceMemory) -> list[Tensor]:
        config, network = self.config, forward.networks[0]
        (weight,) = self.weights(forward, memory)
        paired = weight > config.threshold
        loss = self.paired_loss(network.similarity, network.images, network.texts, paired.nonzero()[:, 0])
        uniform_weight = 1 / len(weight) if config.uniform_weight is None else config.uniform_weight
        loss = loss + uniform_weight * (uniformity(network.images) + uniformity(network.texts)) / 2
        if self.mines(position):
            partners = self.partner_vectors(forward, paired, memory)
            mined = mined_matching(network.images, network.texts, *partners, temperature=config.temperature)
            loss = loss + config.mining_weight * mined
        return [loss]

    def partner_vectors(self, forward: Forward, paired: Tensor, memory: CorrespondenceMemory) -> list[Tensor]:
        """The texts that stand for those of the images, and the images for those of the texts, (B, D) each.

        Those of a paired one are its own.
        """
        ids, network, unpaired = forward.batch.ids, forward.networks[0], (~paired).nonzero()[:, 0]
        sides = (("image_partner", "bank_text", network.texts), ("text_partner", "bank_image", network.images))
        if self.config.partners == "remembered":
            return [
                torch.where(paired[:, None], own, memory.noted(bank)[memory.read(field, ids).long()].to(own)).detach()
                for field, bank, own in sides
            ]
        if len(unpaired) == 0:
            return [own for _, _, own in sides]
        of_images, of_texts = (
            forward.beside(memory.read(field, ids[unpaired]).long()).networks[0] for field, _, _ in sides
        )
        return [
            own.index_copy(0, unpaired, found.to(own))
            for own, found in ((network.texts, of_images.texts), (network.images, of_texts.images))
        ]

    def paired_loss(self, similarity: Tensor, images: Tensor, texts: Tensor, paired: Tensor) -> Tensor:
        """Hinges with negatives among the paired ones only, and alignment, of these; 0 of all others, (B,)."""
        loss = 0 * similarity.diagonal()
        if len(paired) == 0:
            return loss
        hinges = hinge_ranking(similarity[paired][:, paired], margin=self.config.margin)
        aligned = alignment(images[paired], texts[paired])
        align_weight = 1 / len(paired) if self.config.align_weight is None else self.config.align_weight
        return loss.index_add(0, paired, hinges + align_weight * aligned.to(loss))
