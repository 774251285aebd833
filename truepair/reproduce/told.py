"""Our method, told a part of the truth about its pairs: for the analysis of what limits it, and for nothing else."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch

from truepair.correspondence import CorrespondenceMemory
from truepair.data.pairs import BoolArray, IntArray, Pairs
from truepair.errors import InputError
from truepair.methods.base import EpochPosition
from truepair.methods.truepair.method import TruePair
from truepair.methods.truepair.options import TruePairConfig


@dataclass(frozen=True)
class Truth:
    """Of N pairs: `matched` (N,), and `partner` (N,), for a mismatched pair another one, also mismatched, whose caption
    belongs to its image; itself where there is none, or none is needed.
    """

    matched: BoolArray
    partner: IntArray


def truth_of(pairs: Pairs) -> Truth:
    """The truth about pairs; several captions that an image lost go to its mismatched pairs in turn.

    Raises:
        InputError: nobody knows the truth.
    """
    mismatched = pairs.mismatched
    if mismatched is None or pairs.true_image is None:
        raise InputError(
            f"{pairs.name}: nobody knows which pairs match; take a run with synthetic mismatches (--noise)"
        )
    places = np.flatnonzero(mismatched).tolist()
    lost: dict[int, list[int]] = {}
    for place in places:
        lost.setdefault(int(pairs.true_image[place]), []).append(place)
    partner, given = np.arange(len(pairs)), dict.fromkeys(lost, 0)
    for place in places:
        image = int(pairs.image_index[place])
        if image in lost:
            partner[place] = lost[image][given[image] % len(lost[image])]
            given[image] += 1
    return Truth(~mismatched, partner)


class ToldTruePair(TruePair):
    """Our method that is told which pairs match, in all stages (`labels`) or the last one (`last-labels`), or, for each
    mismatched pair that it disbelieves, a caption that belongs to its image (`partners`).
    """

    def __init__(self, config: TruePairConfig, told: str, truth: Truth) -> None:
        super().__init__(config)
        self.told, self.truth = told, truth
        self.proposes |= told == "partners"
        self.reads_beside |= self.proposes

    def start_epoch(self, position: EpochPosition, memory: CorrespondenceMemory) -> dict[str, float]:
        scalars = super().start_epoch(position, memory)
        if self.told == "labels" or (self.told == "last-labels" and position.in_last_stage):
            memory.write("credit", None, torch.from_numpy(self.truth.matched).float())
            scalars["disbelieved"] = float(1 - self.truth.matched.mean())
        return scalars

    def look_for_partners(self, memory: CorrespondenceMemory) -> dict[str, float]:
        """The true ones in the place of those that teachers propose."""
        partner = torch.from_numpy(self.truth.partner)
        found = (partner != torch.arange(len(partner))).float()
        memory.write("partner", None, partner)
        memory.write("partner_probability", None, found)
        return {"partner_probability": float(found.mean())}
