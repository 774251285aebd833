"""The options of CRCL; importable without torch, so that `--help` is instant."""

from __future__ import annotations

from dataclasses import dataclass

from truepair.errors import InputError
from truepair.option import SHARE, Options, option


@dataclass(frozen=True)
class CRCLConfig(Options):
    """Options of CRCL; the defaults are the paper's (Table 5), `pieces` in proportion to the epochs."""

    temperature: float = option(0.05, "temperature τ of the matching probabilities (eq. 3)", above=0)
    scale: float = option(5.0, "weight λ of the complementary part (eq. 8)", least=0)
    momentum: float = option(0.8, "weight β of the old label in its update (eq. 10)", **SHARE)
    threshold: float = option(0.1, "labels below ε count as 0 in the loss (eq. 12)", **SHARE)
    freeze_epochs: int = option(2, "first epochs e_f of each piece with frozen labels (eq. 11)", least=1)
    pieces: tuple[int, ...] | None = option(
        None,
        "epochs of the self-refining pieces before the last one, which has --epochs; none: no such piece. "
        "Default: three of 7/32 of --epochs as in the paper (7,7,7 before 32); where these were under 7 epochs, "
        "one of 4/5",
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if any(piece <= self.freeze_epochs for piece in self.pieces or ()):
            raise InputError(
                f"pieces are {self.pieces}; each needs more than the {self.freeze_epochs} epochs of frozen "
                "labels, or it refines nothing"
            )
