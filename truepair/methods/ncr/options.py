"""The options of NCR; importable without torch, so that `--help` is instant."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from truepair.option import SHARE, Options, option


@dataclass(frozen=True)
class NCRConfig(Options):
    """Options of NCR; the defaults are the paper's."""

    margin: float = option(0.2, "margin α of a pair that is fully believed", above=0)
    curve: float = option(10.0, "curve m of the soft margin", above=1)
    warm_up_epochs: int = option(
        5, "first epochs on all pairs and all negatives (the paper: 5; MS-COCO, CC152K 10)", least=0
    )
    threshold: float = option(0.5, "pairs of a posterior above this are clean", **SHARE)
    mixture: Literal["normal", "released"] = option(
        "released",
        "the mixture of the losses: two normal distributions of largest likelihood, and asked whether there are two "
        "groups; or as released, a few steps of expectation maximisation, believed unasked",
    )
    noisy_from: float = option(
        0.5,
        "share of the epochs after the warm-up before noisy pairs, with predicted labels, join the training",
        **SHARE,
    )
    co_train: bool = option(
        True, "two networks, each on the division of the other, as in the paper; or one on its own, in half the time"
    )
