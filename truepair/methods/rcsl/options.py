"""The options of RCSL; importable without torch, so that `--help` is instant."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from truepair.errors import InputError
from truepair.option import SHARE, Options, option

UNMINED = {"mining_weight": (0.0,)}
"""Beside which options about looked-up partners have no effect."""


@dataclass(frozen=True)
class RCSLConfig(Options):
    """Options of RCSL."""

    margin: float = option(0.2, "margin α of a pair that counts as paired", above=0)
    temperature: float = option(0.03, "temperature τ of matching with looked-up partners", above=0, idle=UNMINED)
    align_weight: float | None = option(
        None,
        "weight of the alignment of a paired one beside its hinges; default: 1 / paired ones of the batch, as released",
        least=0,
    )
    uniform_weight: float | None = option(
        None,
        "weight of the uniformity of the batch beside the hinges of a paired one; default: 1 / batch size, as released",
        least=0,
    )
    mining_weight: float = option(1.0, "weight of matching with looked-up partners; 0: none is looked up", least=0)
    mining_from: float = option(
        0.625, "share of the epochs before partners are looked up (the paper: 25 of 40)", idle=UNMINED, **SHARE
    )
    mine_once: bool = option(False, "partners are looked up once, as released, rather than before each epoch")
    restart: bool = option(
        False,
        "optimizer and learning rate start afresh when partners are first looked up, and the best epoch is one of "
        "those that follow, as released",
    )
    partners: Literal["encoded", "remembered"] = option(
        "encoded",
        "vectors of looked-up partners: encoded with the batch, unaltered, and trained like it, as released; or "
        "those of the last pass over all pairs, which costs nothing",
        idle=UNMINED,
    )
    paired: Literal["division", "known"] = option(
        "division",
        "which pairs count as paired: those that the mixture of the losses calls clean, after a warm-up; or, as in the "
        "paper, those known to match (--clean-pairs), from the first epoch on",
    )
    warm_up_epochs: int = option(
        5, "first epochs, with the ranking loss of all pairs over all negatives", least=0, idle={"paired": ("known",)}
    )
    threshold: float = option(0.5, "pairs of a posterior above this are paired", idle={"paired": ("known",)}, **SHARE)
    mixture: Literal["normal", "beta", "released"] = option(
        "released",
        "the mixture of the losses that stands for the paper's knowledge of what is paired: two normal distributions "
        "or two beta ones, asked whether there are two groups; or normal ones by a few steps, believed unasked",
        idle={"paired": ("known",)},
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("mine_once", "restart"):
            if getattr(self, name) and self.mining_weight == 0:
                raise InputError(
                    f"{name} is on and mining_weight is 0, with which no partner is looked up; leave one out"
                )
