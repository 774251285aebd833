"""The options of GSC; importable without torch, so that `--help` is instant."""

from __future__ import annotations

from dataclasses import dataclass

from truepair.errors import InputError
from truepair.option import option


@dataclass(frozen=True)
class GSCConfig:
    """Options of GSC; the defaults are the paper's (section 4.2) but for `co_train`."""

    cross_modal_temperature: float = option(0.07, "temperature τ1 across modalities (eq. 3)")
    intra_modal_temperature: float = option(1.0, "temperature τ2 within modalities (eq. 7)")
    intra_modal_weight: float = option(0.01, "weight γ of the intra-modal loss (eq. 9)")
    cross_modal_momentum: float = option(0.7, "weight β1 of an epoch's new cross-modal indicator (eq. 10)")
    intra_modal_momentum: float = option(0.7, "weight β2 of an epoch's new intra-modal indicator (eq. 10)")
    co_train: bool = option(False, "two networks, each on the labels of the other; retrieval by their mean")

    def __post_init__(self) -> None:
        if not (self.cross_modal_temperature > 0 and self.intra_modal_temperature > 0):
            raise InputError("the temperatures of GSC must be above 0")
        if self.intra_modal_weight < 0:
            raise InputError(f"intra-modal weight is {self.intra_modal_weight}; expected 0 or more")
        if not (0 <= self.cross_modal_momentum <= 1 and 0 <= self.intra_modal_momentum <= 1):
            raise InputError("the momenta of GSC must lie in [0, 1]")
