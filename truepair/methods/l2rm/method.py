"""L2RM: learning to rematch mismatched pairs for robust cross-modal retrieval (CVPR 2024).

Noisy pairs are not thrown away: among themselves their images and texts are matched anew, by partial optimal transport
with the given partners forbidden, and the plan is what they learn. Clean pairs learn by the triplet loss. The warm-up
has a loss that tolerates noise.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor

from truepair.correspondence import CorrespondenceMemory
from truepair.losses import hinge_ranking
from truepair.losses.rematching import rematching, symmetric_cross_entropy
from truepair.methods.base import EpochPosition, Forward
from truepair.methods.l2rm.as_printed import PRINTED
from truepair.methods.l2rm.cost import AuxiliaryCost, LearnedCost
from truepair.methods.l2rm.options import L2RMConfig
from truepair.methods.loss_division.method import LossDivision
from truepair.transport import partial_transport

FLOOR = 1e-10  # of a target, as released
LEAST_RANGE = 1e-6  # of the costs: where all are equal, any ε will do


class L2RM(LossDivision):
    """The hinge for clean pairs, rematching for noisy ones."""

    name = "l2rm"
    config: L2RMConfig
    printed = PRINTED
    kept = ("loss", "weight")

    def __init__(self, config: L2RMConfig) -> None:
        super().__init__(config)
        if config.cost == "learned":
            self.auxiliary = AuxiliaryCost(config.cost_rate)

    def warm_up_loss(self, similarity: Tensor) -> Tensor:
        return symmetric_cross_entropy(similarity, temperature=self.config.temperature)

    def divided_losses(self, forward: Forward, position: EpochPosition, memory: CorrespondenceMemory) -> list[Tensor]:
        config, similarity = self.config, forward.similarity
        (weight,) = self.weights(forward, memory)
        clean = weight > config.threshold
        loss = torch.where(clean, hinge_ranking(similarity, margin=config.margin), 0 * similarity.diagonal())
        costs = self.costs(forward)
        if isinstance(costs, LearnedCost):
            loss = loss + costs.loss(similarity, clean)
        noisy = (~clean).nonzero()[:, 0]
        if len(noisy) > 1:  # one alone has nobody to be matched with
            among = similarity[noisy][:, noisy]
            anew = rematching(
                among,
                self.plan(costs(among.detach())).to(among),
                temperature=config.temperature,
                floor=FLOOR if config.log_floor is None else math.exp(config.log_floor),
                share=config.targets == "moved",
            )
            rematch_weight = 1 / len(weight) if config.rematch_weight is None else config.rematch_weight
            loss = loss.index_add(0, noisy, rematch_weight * anew)
        return [loss]

    def costs(self, forward: Forward) -> Callable[[Tensor], Tensor]:
        """What makes costs of similarities."""
        return (
            forward.auxiliary
            if isinstance(forward.auxiliary, LearnedCost)
            else lambda similarity: 1 - similarity.double()
        )

    def plan(self, costs: Tensor) -> Tensor:
        """π of the noisy pairs of a batch, (n, n): mass ρ of uniform marginals 1/n at these costs, diagonal 0."""
        count, cost = len(costs), costs.detach().double().cpu()
        itself = torch.eye(count, dtype=torch.bool)
        others = cost[~itself]
        spread = max(float(others.max() - others.min()), LEAST_RANGE)
        mass = torch.full((count,), 1 / count, dtype=torch.float64)
        forbidden = cost.masked_fill(itself, torch.inf)
        found = partial_transport(forbidden, mass, mass, mass=self.config.mass, epsilon=self.config.epsilon * spread)
        return found.to(costs.device)
