"""The options of MSCN; importable without torch, so that `--help` is instant."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from truepair.option import SHARE, Options, option


@dataclass(frozen=True)
class MSCNConfig(Options):
    """Options of MSCN; where the defaults are not the paper's, `as_printed` says why."""

    margin: float = option(0.2, "margin α of a pair of score 1", above=0)
    warm_up_epochs: int = option(5, "first epochs on all pairs and all negatives", least=0)
    negatives: float = option(
        0.1,
        "share of the batch, the hardest, that are negatives after the warm-up; 0: the hardest alone, as printed",
        **SHARE,
    )
    threshold: float = option(0.5, "pairs of a posterior above this are trained on", **SHARE)
    mixture: Literal["beta", "released"] = option(
        "beta",
        "two beta distributions of the scores, begun from those of known and of wrong pairs: of largest likelihood, "
        "and asked whether there are two groups; or as released, ten steps, believed unasked",
    )
    head_width: int = option(64, "width of the hidden layer of the similarity head", least=1)
    head_rate: float = option(
        0.085, "learning rate of the head, in units of the given one (the paper: after the warm-up)", above=0
    )
    meta_pairs: int = option(
        32, "known pairs a step that the head learns from, and as many wrong ones made of them", least=2
    )
    trial: Literal["left_out", "taken"] = option(
        "left_out",
        "what the head learns from: known pairs as the network sees them; or taken, as printed: as it would see them "
        "after a step on the batch, in about three times the time",
    )
    trial_rate: float | None = option(
        None,
        "learning rate of that step, plain gradient descent on the sum of a batch's hinges; default: 2e-4, as printed",
        above=0,
        idle={"trial": ("left_out",)},
    )
    co_train: bool = option(
        True, "two networks, each on the division of the other, as in the paper; or one on its own, in half the time"
    )
