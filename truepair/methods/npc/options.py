"""The options of NPC; importable without torch, so that `--help` is instant."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from truepair.option import Options, option


@dataclass(frozen=True)
class NPCConfig(Options):
    """Options of NPC; where the defaults are not what was released, `as_printed` says why."""

    temperature: float = option(0.05, "temperature τ of both softmaxes (a pretrained model has its own)", above=0)
    clean: float = option(0.9, "pairs of a posterior above this are in the bank", least=0, below=1)
    mixture: Literal["normal", "released"] = option(
        "normal",
        "the mixture of the losses: two normal distributions of largest likelihood, and asked whether there are two "
        "groups; or as released, a few steps of expectation maximisation, believed unasked",
    )
    trial_rate: float = option(
        2e-4, "length of the step that is tried, by which every parameter moves: that of a first step of Adam", above=0
    )
    weight: Literal["tanh", "ratio"] = option(
        "tanh", "weight of a pair whose step harms its bank pairs, of the ratio r < 1 of their losses: tanh r, or r"
    )
    bank: Literal["trained", "held"] = option(
        "trained", "bank pairs are trained on, too; or held: they only weigh, as in the released code"
    )
    averaged: bool = option(False, "weights fall on the mean loss of the batch, as released, not on each pair's own")
    warm_up_epochs: int = option(
        0,
        "first epochs without weights, after which the model as it then is makes the bank; for engines that start from "
        "weights drawn anew",
        least=0,
    )
