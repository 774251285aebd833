"""The options of IN²R; importable without torch, so that `--help` is instant."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from truepair.option import SHARE, Options, option


@dataclass(frozen=True)
class IN2RConfig(Options):
    """Options of IN²R; where the defaults are not what was released, `as_printed` says why."""

    temperature: float = option(0.05, "temperature τ of the robust losses", above=0)
    margin: float = option(0.2, "margin α of a clean pair", above=0)
    intra_modal_margin: float = option(0.3, "margin within a modality, of the items of clean pairs", above=0)
    second_pass: Literal["left_out", "taken"] = option(
        "left_out",
        "what an item is compared with within its modality: the others of its batch in the same pass; or taken: the "
        "items of the batch in a second pass, unaltered, in half as much time again",
    )
    warm_up_epochs: int = option(1, "first epochs, with the robust loss on all pairs", least=0)
    threshold: float = option(0.5, "pairs of a posterior above this are clean", **SHARE)
    mixture: Literal["normal", "beta", "released"] = option(
        "released",
        "the mixture of the losses: two normal distributions or two beta ones, asked whether there are two groups; or "
        "normal ones by a few steps, as released, believed unasked",
    )
    neighbours: int = option(5, "k, nearest pairs of the bank that make a prototype", least=1)
    bank: int = option(65536, "most pairs of the bank, those of the largest posteriors", least=1)
    rematch_weight: float | None = option(
        None,
        "weight of a noisy pair's loss beside a clean one's hinges; default: 1 / batch size, as released",
        least=0,
    )
    co_train: bool = option(
        True,
        "two networks from the same start, each on the division and the bank of the other, as in the paper; or one on "
        "its own, in half the time",
    )
