"""The options of GSC; importable without torch, so that `--help` is instant."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from truepair.option import SHARE, Options, option


@dataclass(frozen=True)
class GSCConfig(Options):
    """Options of GSC; the defaults are the paper's (section 4.2), but it is one network: all headline rows are two.

    Rows of Table 5, each with `co_train` in the paper: without L_IM `intra_modal_weight` 0; without temporal ensembling
    both momenta 1 and `warm_up_epochs` 5; without the second network the defaults.
    """

    cross_modal_temperature: float = option(0.07, "temperature τ1 across modalities (eq. 3)", above=0)
    intra_modal_temperature: float = option(
        1.0, "temperature τ2 within modalities (eq. 7)", above=0, idle={"intra_modal_weight": (0,)}
    )
    intra_modal_weight: float = option(0.01, "weight γ of the intra-modal loss (eq. 9)", least=0)
    intra_modal_pairs: Literal["believed", "all"] = option(
        "believed",
        "pairs of the intra-modal loss: each as far as it is believed (text of 3.3), or all alike (eq. 7)",
        idle={"intra_modal_weight": (0,)},
    )
    cross_modal_momentum: float = option(0.7, "weight β1 of an epoch's new cross-modal indicator (eq. 10)", **SHARE)
    intra_modal_momentum: float = option(0.7, "weight β2 of an epoch's new intra-modal indicator (eq. 10)", **SHARE)
    mixture: Literal["likelihood", "plain", "released"] = option(
        "likelihood",
        "the mixture of intra-modal similarities (eq. 4): of largest likelihood, asked whether there are two groups, "
        "and no pair gains by being worse; or by Bayes' rule alone, unasked (plain, as printed); or as released, a few "
        "steps of expectation maximisation from two means, unasked",
    )
    warm_up_epochs: int = option(
        0, "first epochs in which every label is 1 (Table 5: 5 without temporal ensembling)", least=0
    )
    co_train: bool = option(
        False,
        "two networks, each on the labels of the other, as in all headline rows of the paper; retrieval by their mean, "
        "twice the time",
    )
    exchange: Literal["in_turn", "after_epoch"] = option(
        "in_turn",
        "how two networks exchange labels: in turn, the second one on labels that the first has just made in the same "
        "epoch (Algorithm 1), or both after each epoch (as released); one network has none to exchange with",
        idle={"co_train": (False,)},
    )
