"""The options of BiCro; importable without torch, so that `--help` is instant."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from truepair.option import SHARE, Options, option


@dataclass(frozen=True)
class BiCroConfig(Options):
    """Options of BiCro; where the defaults are not the paper's, `as_printed` says why."""

    margin: float = option(0.2, "margin α of a pair that is fully believed", above=0)
    curve: float = option(10.0, "curve m of the soft margin", above=1)
    warm_up_epochs: int = option(
        5, "first epochs, on the pairs of each batch with the smallest losses (the paper: 10)", least=0
    )
    warm_up_share: float = option(0.3, "share of each batch that the warm-up trains on", above=0, most=1)
    threshold: float = option(0.5, "pairs of a posterior above this are clean", **SHARE)
    mixture: Literal["beta", "normal", "released"] = option(
        "released",
        "the mixture of the losses: two beta distributions or two normal ones, asked whether there are two groups; or "
        "normal ones by a few steps, as the released code, believed unasked",
    )
    least_label: float = option(0.5, "noisy pairs of a label at most this have label 0", **SHARE)
    noisy_from: float = option(
        0.5, "share of the epochs after the warm-up before noisy pairs join the training", **SHARE
    )
    co_train: bool = option(
        True, "two networks, each on the labels of the other, as in the paper; or one on its own, in half the time"
    )
