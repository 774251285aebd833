"""The options of DisNCL; importable without torch, so that `--help` is instant."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from truepair.option import SHARE, Options, option

WITHOUT_DIVERGENCE = ("fdmer", "dmim", "reconstruction", "none")
RIVALS = ("mvib", *WITHOUT_DIVERGENCE)
"""What stands in the place of L_Dis and L_reg: all, and those that know no divergence of the invariant parts."""


@dataclass(frozen=True)
class DisNCLConfig(Options):
    """Options of DisNCL; the defaults that are not the paper's stand in `as_printed`, with each reason."""

    disentangler: Literal["disncl", "fdmer", "dmim", "mvib", "reconstruction", "none"] = option(
        "disncl",
        "how the subspaces are parted: L_Dis and L_reg; or feature consistency (FDMER), cross prediction "
        "(DMIM), information regularisation (MVIB); or not at all: parts that rebuild their input (the baseline of "
        "figure 4), or none of these",
    )
    align_weight: float = option(1.0, "weight of L_align (eq. 3) after the warm-up", least=0)
    soft_weight: float = option(1.0, "weight of L_soft (eq. 6); 0 leaves it out", least=0)
    disentangle_weight: float = option(
        1.0,
        "weight of L_Dis (eq. 1), or of a rival's terms; 0 leaves them out",
        least=0,
        idle={"disentangler": ("none",)},
    )
    regularizer_weight: float = option(
        1.0, "weight of L_reg (eq. 7); 0 leaves it out", least=0, idle={"disentangler": RIVALS}
    )
    adversarial_weight: float = option(
        1.0,
        "weight of all that is lowered, in L_Dis and L_reg; 0: parts may hold what they like",
        least=0,
        idle={"disentangler": RIVALS},
        idle_together={"disentangle_weight": (0,), "regularizer_weight": (0,)},
    )
    balance: float = option(
        0.5,
        "share γ of the invariant part in L_Dis (eq. 1)",
        **SHARE,
        idle={"disentangler": WITHOUT_DIVERGENCE, "disentangle_weight": (0,)},
    )
    invariant_weight: float = option(
        0.1,
        "weight β1 of the divergence of the invariant parts (eq. 10; MVIB's too)",
        least=0,
        idle={"disentangler": WITHOUT_DIVERGENCE, "disentangle_weight": (0,)},
    )
    exclusive_weight: float = option(
        0.1,
        "weight β2: what an exclusive part tells of the other side counts 1 + β2",
        least=0,
        idle={"disentangler": RIVALS, "disentangle_weight": (0,), "adversarial_weight": (0,)},
    )
    given_weight: float = option(
        0.5, "weight β3 of the given pair in a soft target (eq. 6)", **SHARE, idle={"soft_weight": (0,)}
    )
    temperature: float = option(0.05, "temperature τ of the soft targets (eq. 5)", above=0)
    log_floor: float = option(
        -4.0,
        "A, the least that the logarithm of a soft target counts (eq. 6): targets below e^A count as e^A, 0.018 at "
        "-4; the paper prints no floor: -100, which only a target of 0 reaches",
        below=0,
        idle={"soft_weight": (0,)},
    )
    margin: float = option(0.2, "margin α (eq. 3)", above=0)
    curve: float = option(10.0, "curve m of the soft margin (eq. 3)", above=1)
    warm_up_epochs: int = option(5, "epochs of L_align alone, with a constant margin", least=0)
    warm_up_negatives: Literal["falling", "all", "hardest"] = option(
        "falling",
        "negatives of a pair in the warm-up: from all of the batch to the share warm_up_least; all; "
        "or the hardest alone (the paper), which learns noise from the start",
        idle={"warm_up_epochs": (0,)},
    )
    warm_up_least: float = option(
        0.5,
        "share of the batch, the hardest, that are negatives at the end of a falling warm-up: fewer teach "
        "faster, and with much noise nothing",
        **SHARE,
    )
    heads: Literal["isometry", "plain"] = option(
        "isometry",
        "heads of the invariant parts: three layers beside an isometry, so that what is compared begins as the "
        "features; or three layers (the paper)",
    )
    subspace_width: int = option(512, "width of each subspace", least=1)
    hidden_width: int = option(256, "hidden width of the heads and the discriminators", least=1)
    head_rate: float = option(
        0.25, "learning rate of the invariant heads, in units of --learning-rate (the paper has none: 1)", above=0
    )
    main_rate: float = option(
        0.25, "learning rate of all after the warm-up, in units of --learning-rate (the paper: 1)", above=0
    )
    least_clean: float = option(
        0.01, "a run is stopped when a smaller share of the pairs is clean after the warm-up (the paper: 0)", **SHARE
    )
