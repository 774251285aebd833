"""The options of UGNCL; importable without torch, so that `--help` is instant."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from truepair.errors import InputError
from truepair.methods.checks import check_choices


@dataclass(frozen=True)
class UGNCLConfig:
    """Options of UGNCL. The defaults are the paper's, but for the mends that docs/results.md accounts for.

    The letter of the paper: evidence exp_tanh or exp_softplus at temperature 0.1, divergence sum, tolerance 1, soft
    label belief, hard weight one.
    """

    evidence: Literal["background", "exp_tanh", "exp_softplus"] = field(
        default="background",
        metadata={
            "help": "from similarity to evidence: exp(s/τ) in units of the batch's wrong cells; exp(tanh(r)/τ); or the "
            "printed exp(softplus(r)/τ) (eq. 3), whose uncertainty never exceeds 1/3"
        },
    )
    temperature: float = field(default=0.05, metadata={"help": "temperature τ of the evidence (eq. 3; the paper: 0.1)"})
    background: float = field(default=0.25, metadata={"help": "evidence η of an average wrong cell"})
    threshold: float = field(default=0.5, metadata={"help": "pairs of uncertainty below p are determined (eq. 8)"})
    uncertainty: Literal["value", "rank"] = field(
        default="value", metadata={"help": "what is compared with p: u, or its rank in the training set"}
    )
    tolerance: float = field(
        default=0.1,
        metadata={"help": "a pair counts as foremost from this share of the best partner's evidence on (eq. 9: 1)"},
    )
    soft_label: Literal["odds", "share", "belief"] = field(
        default="odds",
        metadata={"help": "label of a hard pair: its odds against the tolerance, share of the evidence, or belief b"},
    )
    label_threshold: float = field(default=0.5, metadata={"help": "hard pairs of a label above ε are hard-clean"})
    hard_weight: Literal["label", "one"] = field(
        default="label", metadata={"help": "weight of a hard pair's ranking term: its label, or 1 as in eq. 16"}
    )
    margin: float = field(default=0.2, metadata={"help": "margin γ of a clean pair (eq. 16)"})
    curve: float = field(default=10.0, metadata={"help": "curve m of the soft margin (eq. 2)"})
    sharpness: float = field(default=10.0, metadata={"help": "sharpness Δ of the trusted margin (eq. 17)"})
    kl_weight: float = field(default=0.1, metadata={"help": "weight ξ1 of the divergence in the evidential loss"})
    divergence: Literal["mean", "sum"] = field(
        default="mean", metadata={"help": "the divergence over the classes of a batch: their mean, or sum (eq. 13)"}
    )
    ranking_weight: float = field(default=0.8, metadata={"help": "weight ξ2 of the trusted robust loss"})
    warm_up_epochs: int = field(default=5, metadata={"help": "epochs before the first division (the paper: 5)"})
    hardness: Literal["per_step", "printed"] = field(
        default="per_step",
        metadata={"help": "negatives λ fall from B − 1 to θ by the end of the warm-up, or as printed by δ an epoch"},
    )
    least_negatives: int = field(default=5, metadata={"help": "least negatives θ of a pair"})
    least_clean: float = field(
        default=0.1, metadata={"help": "a division with a smaller share of clean pairs is not acted on"}
    )

    def __post_init__(self) -> None:
        for name in ("threshold", "label_threshold", "least_clean"):
            if not 0 <= getattr(self, name) <= 1:
                raise InputError(f"{name} is {getattr(self, name)}; expected a value in [0, 1]")
        for name in ("temperature", "sharpness", "background", "tolerance", "margin"):
            if not getattr(self, name) > 0:
                raise InputError(f"{name} is {getattr(self, name)}; expected a value above 0")
        for name in ("kl_weight", "ranking_weight", "warm_up_epochs"):
            if getattr(self, name) < 0:
                raise InputError(f"{name} is {getattr(self, name)}; expected 0 or more")
        if self.tolerance > 1:
            raise InputError(f"tolerance is {self.tolerance}; expected at most 1")
        if not self.curve > 1 or self.least_negatives < 1:
            raise InputError(f"curve {self.curve} must be above 1, least negatives {self.least_negatives} at least 1")
        check_choices(self)
