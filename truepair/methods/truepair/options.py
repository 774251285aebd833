"""The options of our own method; importable without torch, so that `--help` is instant."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from truepair.errors import InputError
from truepair.option import SHARE, Options, idle_beside, option

TEACHERS = 3
"""Stages before the last one, where `pieces` does not say."""
MOMENTUM = 0.8


@dataclass(frozen=True)
class TruePairConfig(Options):
    """Options of our own method (docs/truepair-method.md); `ablation.PARTS` has those that take a part away."""

    temperature: float = option(0.05, "temperature τ of the matching probabilities", above=0)
    scale: float = option(5.0, "weight λ of the complementary part of the loss", least=0)
    distillation: float = option(3.0, "weight δ of what is learned of the teachers; 0: no teacher", least=0)
    taught: Literal["all", "disbelieved"] = option(
        "all", "pairs that learn of the teachers: all, or those alone that the loss does not learn from as pairs"
    )
    target_temperature: float | None = option(
        None, "temperature of the teacher's probabilities; default: that of the matching probabilities", above=0
    )
    own_cell: Literal["kept", "removed", "unused"] = option(
        "removed",
        "similarity of a disbelieved pair's own two items in the last stage: part of what the teachers say, as that of "
        "any others (kept), no part of it (removed), or no part of the whole loss (unused)",
    )
    partners: Literal["proposed", "none"] = option(
        "none",
        "whether a disbelieved pair's image also learns the caption that the teacher finds most probable for it among "
        "those of all disbelieved pairs, as far as the teacher does",
    )
    average_epochs: float = option(
        1.0, "epochs that the moving average of the weights looks back; 0: no average, the weights as they are", least=0
    )
    labels: Literal["refined", "given"] = option(
        "refined", "labels of the loss: corrected over epochs and stages; or 1 as given"
    )
    first_labels: Literal["held-out", "given"] = option(
        "held-out",
        "first labels: of linear models (cross-fitted CCA) that have not seen the pair, before the first epoch where "
        "two thirds of the pairs are mismatched, and later where the network has learned nothing; or 1 as given",
    )
    credit: Literal["posterior", "label"] = option(
        "posterior",
        "how far the loss believes a pair: how probably its label is of the upper one of the two groups of labels "
        "(where there are not two: the label, and where labels are low throughout: as far as chance does not explain "
        "it), or the label itself",
    )
    least_believed: Literal["estimate", "any"] = option(
        "estimate",
        "how many pairs are believed at least, where the credit is the posterior: all but as many as the estimate of "
        "the share of mismatched pairs by linear models says at most, and a twentieth more of all pairs; or any number",
        idle={"credit": ("label",), "first_labels": ("given",), "labels": ("given",)},
    )
    label_memory: Literal["mean", "momentum"] = option(
        "mean",
        "how a label remembers: the mean of the log odds that were seen, over all epochs and networks, or a moving "
        "average of the probabilities with weight β",
    )
    momentum: float = option(MOMENTUM, "weight β of the old label in a moving average", **SHARE)
    threshold: float = option(0.1, "where the label is the credit: pairs below ε are disbelieved", **SHARE)
    freeze_epochs: int = option(2, "first epochs of each stage with frozen labels", least=1)
    pieces: tuple[int, ...] | None = option(
        None,
        "epochs of the stages before the last one, which has --epochs and learns of what each of them leaves. "
        "Default: three of 4/5 of --epochs",
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if any(piece <= self.freeze_epochs for piece in self.pieces or ()):
            raise InputError(
                f"pieces are {self.pieces}; each needs more than the {self.freeze_epochs} epochs of frozen labels, or "
                "its labels stay as they are"
            )
        if self.label_memory == "mean" and self.momentum != MOMENTUM:
            raise InputError(
                f"momentum is {self.momentum}, and labels that are means have none; leave it out, or add label_memory "
                "momentum"
            )
        if self.least_believed == "any":
            for name, other in idle_beside(self, ("least_believed",)):
                raise InputError(
                    f"{name} is any, and beside {other} {getattr(self, other)} no estimate limits how many pairs are "
                    "believed; leave it out"
                )
        if self.partners == "proposed" and self.pieces == ():
            raise InputError(
                "partners are proposed by the teachers that stages before the last one leave, and pieces say there are "
                "none; leave pieces out"
            )
