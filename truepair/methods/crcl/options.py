"""The options of CRCL; importable without torch, so that `--help` is instant."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from truepair.errors import InputError
from truepair.option import SHARE, Options, option

NOT_REFINED = ("current", "given")
"""Labels without SCC."""


@dataclass(frozen=True)
class CRCLConfig(Options):
    """Options of CRCL; the defaults are the paper's (Table 5), `pieces` in proportion to the epochs.

    Rows of Table 4: L_r with SCC is `active_weight` 0; L_d `scale` 0; without SCC `labels` "current" or "given"; q
    fixed `exponent`. Fig. 4 has CCL: `complementary` "log" with `active_weight` 0, `exponent` 0 and `labels` "given".
    """

    temperature: float = option(0.05, "temperature τ of the matching probabilities (eq. 3)", above=0)
    scale: float = option(5.0, "weight λ of the complementary part (eq. 8)", least=0)
    active_weight: float = option(1.0, "weight of the active part L_d (in eq. 8); 0 leaves it out", least=0)
    exponent: float | None = option(
        None,
        "exponent q of the complementary part (eq. 6), the same for all pairs; default: 1 − ŷ (eq. 8)",
        **SHARE,
        idle={"scale": (0,)},
    )
    complementary: Literal["tan", "log", "exp", "gce", "mae"] = option(
        "tan",
        "what the complementary part sums: tan p (eq. 6), or another form of RCL's, which needs q = 0",
        idle={"scale": (0,)},
    )
    labels: Literal["refined", "current", "given"] = option(
        "refined",
        "labels of the loss: corrected over epochs and pieces (SCC); or without SCC the matching probability of the "
        "batch at hand, or 1 as given",
    )
    momentum: float = option(
        0.8, "weight β of the old label in its update (eq. 10)", **SHARE, idle={"labels": NOT_REFINED}
    )
    threshold: float = option(0.1, "labels below ε count as 0 in the loss (eq. 12)", **SHARE)
    freeze_epochs: int = option(
        2, "first epochs e_f of each piece with frozen labels (eq. 11)", least=1, idle={"labels": NOT_REFINED}
    )
    pieces: tuple[int, ...] | None = option(
        None,
        "epochs of the self-refining pieces before the last one, which has --epochs; none: no such piece. "
        "Default: as in Table 5 (7,7,7 before 32 or 42 epochs, 4,4,4 before 22); else three of 7/32 of --epochs, or "
        "where these were under 7 epochs one of 4/5",
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.scale and not self.active_weight:
            raise InputError("scale and active_weight are 0, which leaves nothing to learn from; leave one out")
        if self.complementary != "tan" and self.exponent != 0:
            raise InputError(
                f"complementary is {self.complementary}, which is normalised by nothing; it needs an exponent of 0"
            )
        if self.labels != "refined" and self.pieces:
            raise InputError(
                f"labels are {self.labels}, which no piece refines, and pieces are {self.pieces}; leave one out"
            )
        if any(piece <= self.freeze_epochs for piece in self.pieces or ()):
            raise InputError(
                f"pieces are {self.pieces}; each needs more than the {self.freeze_epochs} epochs of frozen "
                "labels, or it refines nothing"
            )
