"""The options of UGNCL; importable without torch, so that `--help` is instant."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from truepair.option import SHARE, Options, option


@dataclass(frozen=True)
class UGNCLConfig(Options):
    """Options of UGNCL. The defaults that are not the paper's stand in `as_printed`, with each reason."""

    evidence: Literal["background", "exp_tanh", "exp_softplus"] = option(
        "background",
        "from similarity to evidence: exp(s/τ) in units of the batch's wrong cells; exp(tanh(r)/τ); or the "
        "printed exp(softplus(r)/τ) (eq. 3), whose uncertainty never exceeds 1/3",
    )
    temperature: float = option(0.05, "temperature τ of the evidence (eq. 3; the paper: 0.1)", above=0)
    background: float = option(
        0.25, "evidence η of an average wrong cell", above=0, idle={"evidence": ("exp_tanh", "exp_softplus")}
    )
    directions: Literal["mean", "sum"] = option(
        "mean",
        "evidence of a pair from that of its image and that of its text: their mean, with which a pair among whose "
        "candidates nothing stands out has u = 1/(1 + 2η) = 0.67; or their sum (eq. 4), with which it has 0.4995 and "
        "counts as determined",
    )
    division: Literal["uncertainty", "probability"] = option(
        "uncertainty",
        "determined and hard pairs by their uncertainty (UGD); or without it: foremost pairs are clean, all others "
        "hard (Table 4, without UGD)",
    )
    threshold: float = option(
        0.5, "pairs of uncertainty below p are determined (eq. 8)", **SHARE, idle={"division": ("probability",)}
    )
    uncertainty: Literal["value", "rank"] = option(
        "value",
        "what is compared with p: u, or its rank in the training set",
        idle={"division": ("probability",)},
    )
    tolerance: float = option(
        0.1, "a pair counts as foremost from this share of the best partner's evidence on (eq. 9: 1)", above=0, most=1
    )
    soft_label: Literal["odds", "share", "belief"] = option(
        "odds", "label of a hard pair: its odds against the tolerance, share of the evidence, or belief b"
    )
    label_threshold: float = option(0.5, "hard pairs of a label above ε are hard-clean", **SHARE)
    hard_weight: Literal["label", "one"] = option(
        "label", "weight of a hard pair's ranking term: its label, or 1 as in eq. 16"
    )
    margins: Literal["trusted", "soft"] = option(
        "trusted",
        "loss of a hard pair: λ negatives, margin by label and uncertainty (TRL, eq. 16 and 17); or the hardest "
        "negative, margin by the label alone (eq. 2; Table 4, without TRL)",
    )
    margin: float = option(0.2, "margin γ of a clean pair (eq. 16)", above=0)
    curve: float = option(10.0, "curve m of the soft margin (eq. 2)", above=1)
    sharpness: float = option(10.0, "sharpness Δ of the trusted margin (eq. 17)", above=0, idle={"margins": ("soft",)})
    kl_weight: float = option(0.1, "weight ξ1 of the divergence in the evidential loss", least=0)
    divergence: Literal["mean", "sum"] = option(
        "mean", "the divergence over the classes of a batch: their mean, or sum (eq. 13)", idle={"kl_weight": (0,)}
    )
    ranking_weight: float = option(0.8, "weight ξ2 of the trusted robust loss", least=0)
    ranking_total: Literal["mean", "sum"] = option(
        "mean",
        "the ranking loss of a batch: the mean over its pairs, as of the evidential loss (eq. 18 is of one pair); or "
        "their sum, as released, B times the weight",
        idle={"ranking_weight": (0,)},
    )
    warm_up_epochs: int = option(5, "epochs before the first division (the paper: 5)", least=0)
    hardness: Literal["per_step", "printed"] = option(
        "per_step", "negatives λ fall from B − 1 to θ by the end of the warm-up, or as printed by δ an epoch"
    )
    least_negatives: int = option(5, "least negatives θ of a pair", least=1)
    least_clean: float = option(0.1, "a division with a smaller share of clean pairs is not acted on", **SHARE)
