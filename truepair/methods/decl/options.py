"""The options of DECL; importable without torch, so that `--help` is instant."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from truepair.errors import InputError
from truepair.option import Options, option


@dataclass(frozen=True)
class DECLConfig(Options):
    """Options of DECL. The defaults that are not the paper's stand in `as_printed`, with each reason."""

    evidence: Literal["background", "exp_tanh"] = option(
        "background", "from similarity to evidence: exp(s/τ) in units of the batch's wrong cells, or exp(tanh(r)/τ)"
    )
    temperature: float = option(0.05, "temperature τ of the evidence (the paper: 0.1)", above=0)
    background: float | None = option(
        None, "evidence η of an average wrong cell, where evidence is background; default: 0.25", above=0
    )
    kl_weight: float = option(0.1, "weight λ2 of the divergence in the evidential loss", least=0)
    divergence: Literal["mean", "sum"] = option(
        "mean", "the divergence over the candidates of a batch: their mean, or their sum as printed"
    )
    margin: float = option(0.2, "margin α of the hinge", least=0)
    hinge_weight: float = option(0.8, "weight λ1 of the dynamic hinge", least=0)
    hinge_total: Literal["sum", "mean"] = option(
        "sum",
        "the hinge of a batch beside the mean evidential loss: its sum over the pairs, as released (B times λ1), or "
        "its mean",
    )
    warm_up_epochs: int = option(5, "epochs before the first division (the paper: 5; 2 from 60 % noise on)", least=0)
    hardness: Literal["warm_up", "printed"] = option(
        "warm_up",
        "negatives of the hinge fall from B − 1 to the least by the end of the warm-up (where the paper's do on its "
        "data); or as printed by η = 0.025 a step",
    )
    least_negatives: int = option(5, "least negatives μ of a pair", least=1)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.background is not None and self.evidence != "background":
            raise InputError(
                f"background is {self.background}, which scales evidence of that name, and evidence is {self.evidence}"
            )
