"""RCL: cross-modal retrieval with partially mismatched pairs (TPAMI 2023), by complementary contrastive learning.

That an image does not belong to a text of another pair is right whether or not either pair is. So the loss learns from
the negatives alone, in forms of different tolerance; there are no labels, no division and no warm-up.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from truepair.errors import InputError
from truepair.methods.base import BatchLoss, EpochPosition, Forward, Method
from truepair.methods.preset import CLIPPING, COMMON, DECAY_ONCE, ENCODERS, Preset, sgraf
from truepair.option import Options, option

if TYPE_CHECKING:
    from truepair.correspondence import CorrespondenceMemory


@dataclass(frozen=True)
class RCLConfig(Options):
    """Options of RCL."""

    temperature: float = option(0.05, "temperature τ of the matching probabilities", above=0)
    form: Literal["log", "tan", "exp", "gce", "mae"] = option(
        "log", "what is summed over the negatives, from the least to the most tolerant"
    )
    exponent: float | None = option(None, "exponent q of the form gce; default: 0.5", above=0, most=1)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.exponent is not None and self.form != "gce":
            raise InputError(f"exponent is {self.exponent}, which only the form gce has, and form is {self.form}")


PRINTED = Preset(
    source="RCL (TPAMI 2023); training as in its released script for Flickr30K",
    models=sgraf(),
    method={"temperature": 0.05, "form": "log"},
    training={
        "epochs": 30,
        "batch_size": 128,
        "learning_rate": 2e-4,
        "decay_after": 15,
        **DECAY_ONCE,
        "optimizer": "adam",
        "weight_decay": 0.0,
    },
    for_data={"coco": {"training": {"epochs": 20, "learning_rate": 5e-4, "decay_after": 10}}},
    reasons=COMMON,
    silent=(
        "which script is that of the tables: its README has SGR 40 epochs (decay after 30), SAF 30 (20), both at 5e-4",
        "q of the form gce: the released code takes its margin for it, 0.2 or 0.5; here 0.5",
        "10⁻¹⁰ in every sum and logarithm of the released code: here 1 − p is exact without it",
        CLIPPING,
    ),
    not_expressed=(ENCODERS,),
    equations={"complementary contrastive losses": "losses.active_complementary:complementary_contrastive"},
    rows={"the five forms": "`--rcl-form`"},
)


class RCL(Method):
    """Σ_{j≠i} φ(p_ij) + Σ_{j≠i} φ(pᵀ_ji)."""

    name = "rcl"
    config: RCLConfig
    printed = PRINTED

    @property
    def similarity_temperature(self) -> float:
        return self.config.temperature

    def batch_loss(self, forward: Forward, position: EpochPosition, memory: CorrespondenceMemory) -> BatchLoss:
        from truepair.losses import complementary_contrastive

        config = self.config
        self.remember_probability(forward, memory)
        per_pair = complementary_contrastive(
            forward.similarity, temperature=config.temperature, form=config.form, exponent=config.exponent or 0.5
        )
        return BatchLoss(per_pair, {})
