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
    distillation: float = option(3.0, "weight δ of the distillation from the teachers; 0: no teacher", least=0)
    taught: Literal["all", "disbelieved"] = option(
        "all", "pairs that learn from the teachers: all, or the noisy ones alone (disbelieved)"
    )
    target_temperature: float | None = option(
        None, "temperature of the teacher's probabilities; default: that of the matching probabilities", above=0
    )
    teacher_input: Literal["augmented", "unaltered"] = option(
        "augmented",
        "what the teachers see of a batch: regions and words as the network does, some dropped or altered (augmented); "
        "or the pairs as they are (unaltered), each of which is encoded once where similarities are products of "
        "vectors, and the last stage takes half as long",
    )
    own_cell: Literal["kept", "removed", "unused"] = option(
        "removed",
        "own cell of a noisy pair in the last stage: part of the distillation, as any other (kept), no part of it "
        "(removed), or no part of the whole loss (unused)",
    )
    partners: Literal["proposed", "none"] = option(
        "none",
        "whether the image of a noisy pair also learns the caption that the teachers find most probable for it among "
        "those of all noisy pairs, weighted by that probability",
    )
    average_epochs: float = option(
        1.0, "epochs that the moving average of the weights spans; 0: no average, the weights as they are", least=0
    )
    labels: Literal["refined", "given"] = option(
        "refined", "labels of the loss: refined over epochs and stages; or 1 as given"
    )
    first_labels: Literal["held-out", "given"] = option(
        "held-out",
        "first labels: of linear models (cross-fitted CCA) that have not seen the pair, before the first epoch where "
        "two thirds of the pairs are mismatched, and later where the network has learned nothing, or has memorised "
        "mismatched pairs; or 1 as given",
    )
    credit: Literal["posterior", "label"] = option(
        "posterior",
        "weight of a pair in the loss: the posterior of the upper one of two groups of labels (where there are not "
        "two: the label, and where labels are low throughout: as far as chance does not explain it), or the label "
        "itself",
    )
    least_believed: Literal["estimate", "any"] = option(
        "estimate",
        "how many pairs stay clean at least, where the credit is the posterior: all but the upper end of the linear "
        "models' estimate of the share of mismatched pairs, and a twentieth more of all pairs; or any number",
        idle={"credit": ("label",), "first_labels": ("given",), "labels": ("given",)},
    )
    label_memory: Literal["mean", "momentum"] = option(
        "mean",
        "memory of a label: the mean of its log odds over all epochs and networks, or a moving average of the "
        "probabilities with weight β",
    )
    momentum: float = option(MOMENTUM, "weight β of the old label in a moving average", **SHARE)
    threshold: float = option(0.1, "where the label is the credit: pairs with a label below ε are noisy", **SHARE)
    freeze_epochs: int = option(2, "first epochs of each stage with frozen labels", least=1)
    pieces: tuple[int, ...] | None = option(
        None,
        "epochs of the stages before the last one, which has --epochs and the averages of the others as teachers. "
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
        if self.teacher_input == "unaltered" and (self.pieces == () or not self.distillation):
            raise InputError("teacher_input is unaltered, and distillation 0 or pieces leave no teachers; leave it out")
        if self.partners == "proposed" and self.pieces == ():
            raise InputError(
                "partners are proposed by the teachers that stages before the last one leave, and pieces say there are "
                "none; leave pieces out"
            )
