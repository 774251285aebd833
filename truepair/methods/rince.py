"""RINCE: robust contrastive learning against noisy views (CVPR 2022). A loss alone: no labels, no division."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from truepair.methods.base import BatchLoss, EpochPosition, Forward, Method
from truepair.methods.preset import CLIPPING, COMMON, STEPS, Preset, sgraf
from truepair.option import Options, option

if TYPE_CHECKING:
    from truepair.correspondence import CorrespondenceMemory


@dataclass(frozen=True)
class RINCEConfig(Options):
    """Options of RINCE."""

    temperature: float = option(0.07, "temperature τ of the similarities", above=0)
    exponent: float = option(0.1, "q: towards 0 it is InfoNCE, at 1 it tolerates noise", above=0, most=1)
    density: float = option(0.01, "weight λ of the candidates", above=0)


PRINTED = Preset(
    source="RINCE (CVPR 2022), eq. 4; its paper has no retrieval of texts, so that τ, q, λ are those listed in GSC's "
    "released scripts (GSC reports RINCE on SGR), and the training is GSC's",
    models=sgraf(),
    method={"temperature": 0.07, "exponent": 0.01, "density": 0.01},
    training={
        "batch_size": 128,
        "learning_rate": 2e-4,
        "decay_after": 15,
        "decay_every": 15,
        "decay_factor": 0.2,
        **STEPS,
        "optimizer": "adam",
        "weight_decay": 0.0,
    },
    reasons={**COMMON, "method.exponent": "at 0.01 it is InfoNCE but for a few percent; 0.1 is RINCE's own (SimCLR)"},
    silent=(
        "q and λ within RINCE's own code: 0.6 (MoCo), 0.1 (SimCLR), 0.5 with λ 0.001 (default of the class)",
        "a factor: here τ e^{−q s/τ}, s the largest similarity there can be (1), so that clipping sees gradients of "
        "the usual size; the class has none, MoCo 2τ",
        CLIPPING,
    ),
    equations={"4: RINCE": "losses.robust_info_nce:robust_info_nce"},
)


class RINCE(Method):
    """[−e^{q S_ii/τ} + (λ Σ_j e^{S_ij/τ})^q]/q, both ways."""

    name = "rince"
    config: RINCEConfig
    printed = PRINTED

    @property
    def similarity_temperature(self) -> float:
        return self.config.temperature

    def batch_loss(self, forward: Forward, position: EpochPosition, memory: CorrespondenceMemory) -> BatchLoss:
        from truepair.losses import robust_info_nce

        config = self.config
        self.remember_probability(forward, memory)
        per_pair = robust_info_nce(
            forward.similarity,
            temperature=config.temperature,
            exponent=config.exponent,
            density=config.density,
            largest=1.0 if forward.largest is None else forward.largest,
        )
        return BatchLoss(per_pair, {})
