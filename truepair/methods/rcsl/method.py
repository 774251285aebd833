"""RCSL: robust cross-modal semi-paired learning (AAAI 2026), with known pairs, or a division in place of them.

Paired items rank and align; all items spread out. An unpaired image is matched with the nearest caption of the whole
training set, an unpaired caption with the nearest image, by a loss that tolerates that many of these are wrong.
"""

from __future__ import annotations

import torch
from torch import Tensor

from truepair.correspondence import CorrespondenceMemory
from truepair.losses import hinge_ranking
from truepair.losses.semi_paired import alignment, mined_matching, uniformity
from truepair.methods.base import EpochPosition, Forward
from truepair.methods.loss_division.method import LossDivision
from truepair.methods.pair_field import PairField
from truepair.methods.rcsl.as_printed import PRINTED
from truepair.methods.rcsl.options import RCSLConfig

ROWS = 1024  # queries at a time
LEAST_KNOWN = 2  # the hinge of a paired one needs another


class RCSL(LossDivision):
    """Ranking and alignment of paired items, uniformity of all, matching with looked-up partners.

    Per pair the memory holds beside the division `image_partner` and `text_partner`, the pairs whose text (image) is
    nearest to its image (text); its own where it is paired. The vectors of all pairs lie there as notes.
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

    def mines(self, position: EpochPosition) -> bool:
        """Whether partners are used in an epoch."""
        epochs = position.stages[position.stage].epochs
        late = position.epoch > self.config.mining_from * epochs
        return bool(late and self.divides(position) and self.config.mining_weight > 0)

    def surveys(self, position: EpochPosition) -> bool:
        """For the division; where pairs are known, for the partners alone."""
        return self.mines(position) if self.knows else super().surveys(position)

    def survey(self, forward: Forward, position: EpochPosition, memory: CorrespondenceMemory) -> None:
        super().survey(forward, position, memory)
        if not self.mines(position):
            return
        ids, network = forward.batch.ids.cpu(), forward.networks[0]
        for name, vectors in (("bank_image", network.images), ("bank_text", network.texts)):
            if name not in self.seen:
                self.seen[name] = torch.zeros(memory.count, vectors.shape[1], dtype=torch.float16)
            self.seen[name][ids] = vectors.detach().cpu().half()

    def start_epoch(self, position: EpochPosition, memory: CorrespondenceMemory) -> dict[str, float]:
        scalars = {} if self.knows else super().start_epoch(position, memory)
        if self.mines(position):
            for name, vectors in self.seen.items():
                memory.note(name, vectors)
            self.seen = {}
            first = not self.mines(before(position))
            if first or not self.config.mine_once:
                scalars["partners_kept"] = self.look_up(memory)
        return scalars

    def look_up(self, memory: CorrespondenceMemory) -> float:
        """Partners of all pairs; the share of the unpaired ones that found the given one."""
        unpaired = (memory.read("weight") <= self.config.threshold).nonzero()[:, 0]
        images, texts = (memory.noted(name).float() for name in ("bank_image", "bank_text"))
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
        loss = loss + config.uniform_weight * (uniformity(network.images) + uniformity(network.texts)) / 2
        if self.mines(position):
            ids = forward.batch.ids
            partners = [
                torch.where(paired[:, None], own, memory.noted(bank)[memory.read(field, ids).long()].to(own))
                for field, bank, own in (
                    ("image_partner", "bank_text", network.texts),
                    ("text_partner", "bank_image", network.images),
                )
            ]
            mined = mined_matching(network.images, network.texts, *partners, temperature=config.temperature)
            loss = loss + config.mining_weight * mined
        return [loss]

    def paired_loss(self, similarity: Tensor, images: Tensor, texts: Tensor, paired: Tensor) -> Tensor:
        """Hinges with negatives among the paired ones only, and alignment, of these; 0 of all others, (B,)."""
        loss = 0 * similarity.diagonal()
        if len(paired) == 0:
            return loss
        hinges = hinge_ranking(similarity[paired][:, paired], margin=self.config.margin)
        aligned = alignment(images[paired], texts[paired])
        return loss.index_add(0, paired, hinges + self.config.align_weight * aligned.to(loss))


def before(position: EpochPosition) -> EpochPosition:
    """The epoch before, in the same stage."""
    return EpochPosition(position.stage, position.epoch - 1, position.stages)
