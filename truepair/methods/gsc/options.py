"""The options of GSC; importable without torch, so that `--help` is instant."""

from __future__ import annotations

from dataclasses import dataclass

from truepair.option import SHARE, Options, option


@dataclass(frozen=True)
class GSCConfig(Options):
    """Options of GSC; the defaults are the paper's (section 4.2) but for `co_train`."""

    cross_modal_temperature: float = option(0.07, "temperature τ1 across modalities (eq. 3)", above=0)
    intra_modal_temperature: float = option(1.0, "temperature τ2 within modalities (eq. 7)", above=0)
    intra_modal_weight: float = option(0.01, "weight γ of the intra-modal loss (eq. 9)", least=0)
    cross_modal_momentum: float = option(0.7, "weight β1 of an epoch's new cross-modal indicator (eq. 10)", **SHARE)
    intra_modal_momentum: float = option(0.7, "weight β2 of an epoch's new intra-modal indicator (eq. 10)", **SHARE)
    co_train: bool = option(False, "two networks, each on the labels of the other; retrieval by their mean")
