"""The options of L2RM; importable without torch, so that `--help` is instant."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from truepair.option import SHARE, Options, option


@dataclass(frozen=True)
class L2RMConfig(Options):
    """Options of L2RM; where the defaults are not what was released, `as_printed` says why."""

    margin: float = option(0.2, "margin α of a clean pair", above=0)
    temperature: float = option(0.05, "temperature τ of the warm-up and of rematching", above=0)
    warm_up_epochs: int = option(5, "first epochs, with the robust loss on all pairs (MS-COCO, CC152K: 10)", least=0)
    threshold: float = option(0.5, "pairs of a posterior above this are clean", **SHARE)
    mixture: Literal["beta", "normal", "released"] = option(
        "beta",
        "the mixture of the losses: two beta distributions or two normal ones, asked whether there are two groups; or "
        "normal ones by a few steps, believed unasked",
    )
    cost: Literal["distance", "learned"] = option(
        "distance",
        "what it costs to match an image and a text anew: 1 − S; or a falling function of S, learned from clean pairs "
        "and from wrong ones made of them",
    )
    cost_rate: float = option(
        10.0, "learning rate of that function, in units of the given one", above=0, idle={"cost": ("distance",)}
    )
    mass: float = option(0.1, "share ρ of the noisy pairs of a batch that the plan moves", above=0, most=1)
    epsilon: float = option(
        0.01,
        "entropic regularisation ε of the plan, in units of the range of its costs (MS-COCO, CC152K: 0.07)",
        above=0,
    )
    targets: Literal["moved", "full"] = option(
        "moved",
        "weight of a noisy item's target: the share of it that the plan moves; or 1, as released, however little it is",
    )
    log_floor: float | None = option(
        None,
        "A, log of the least share of a target: what it costs to believe a partner that the plan does not name, the "
        "given one of all; default: log 10⁻¹⁰ = −23, as released",
        below=0,
    )
    rematch_weight: float | None = option(
        None,
        "weight of a noisy pair's rematching beside a clean one's hinge; default: 1 / batch size, as released",
        least=0,
    )
