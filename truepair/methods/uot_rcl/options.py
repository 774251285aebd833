"""The options of UOT-RCL; importable without torch, so that `--help` is instant."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from truepair.errors import InputError
from truepair.option import SHARE, Options, option

WITHOUT_RELATION = {"relation_weight": (0,)}


@dataclass(frozen=True)
class UOTRCLConfig(Options):
    """Options of UOT-RCL; the defaults that are not the paper's stand in `as_printed`, with each reason."""

    learns_from_labels: ClassVar[bool] = True
    warm_up_epochs: int = option(
        4, "first epochs on cross entropy with the given labels (the paper: 2 of 100)", least=0
    )
    temperature: float = option(1.0, "temperature τ1 of the class probabilities (eq. 1)", above=0)
    relation_temperature: float = option(
        1.0, "temperature τ2 of relations to the confident set (eq. 16)", above=0, idle=WITHOUT_RELATION
    )
    match_temperature: float = option(
        1.0, "temperature τ3 of the matching probability (eq. 18)", above=0, idle=WITHOUT_RELATION
    )
    momentum: float = option(
        0.97, "momentum γ of the running targets (eq. 9; the paper: 0.99, for 100 epochs)", **SHARE
    )
    consistency: Literal["none", "printed"] = option(
        "none", "the ratio by which the vote of each modality counts (eq. 7); none: both count the same"
    )
    neighbours: int | None = option(
        None, "nearest samples that vote, the pair itself among them (eq. 8); default: 0.5 % of the pairs", least=1
    )
    per_class: int = option(5, "confident pairs of each class (eq. 5)", least=1)
    first_mass: float = option(
        0.4, "share s of the labels transported after the warm-up (the paper: 0.2)", above=0, most=1
    )
    last_mass: float = option(
        0.8, "share s in the last epoch at full doubt, 1 without any; linear in between", above=0, most=1
    )
    mass_constraint: Literal["exact", "printed"] = option(
        "exact",
        "whether exactly s of the labels is transported, or s at least, and more where a cost is below 0 (eq. 13: "
        "s + ε, where ε costs nothing)",
    )
    doubt_from: float = option(
        0.2,
        "share of given labels contradicted after the warm-up, up to which they are trusted: no L_BHG, and "
        "s goes to 1 (the paper has no such rule)",
        **SHARE,
    )
    doubt_to: float = option(0.4, "the same share from which on λ and s are as set; linear in between", **SHARE)
    epsilon: float = option(
        0.05, "entropic regularisation of the labels' transport (eq. 14), in units of the cost", above=0
    )
    relation_epsilon: float = option(
        0.01,
        "the same of the transport in L_BHG (eq. 17), as a share of the range of its costs",
        above=0,
        idle=WITHOUT_RELATION,
    )
    class_prior: Literal["predicted", "given", "uniform"] = option(
        "predicted",
        "class sizes r of the corrected labels (eq. 12): those of the predictions and targets of the first correction, "
        "of the given labels (which noise makes alike), or all equal (the paper)",
    )
    relation_weight: float = option(
        0.4, "weight λ of the relation alignment L_BHG (eq. 19) at full doubt; 0 leaves it out", least=0
    )
    relation_from: float = option(
        0.7,
        "share ρ of the labels drawn anew from all classes, as linear models find it, below which there is no L_BHG; "
        "where they can tell nothing, doubt alone decides (the paper: 0)",
        **SHARE,
        idle=WITHOUT_RELATION | {"held_out_weight": (0,)},
    )
    pair_weight: float = option(
        0.8,
        "share of the given pairs in what L_BHG matches, the transport the rest (the paper: 0)",
        **SHARE,
        idle=WITHOUT_RELATION,
    )
    confident: Literal["consistent", "random"] = option(
        "consistent",
        "confident pairs: where both modalities agree; random: the paper's ablation",
        idle_together=WITHOUT_RELATION | {"consistency": ("none",)},
    )
    held_out_weight: float = option(
        0.75,
        "share of linear models that have not learned the labels in what is said of these, the corrected labels being "
        "the rest; 0: they are not asked (the paper)",
        **SHARE,
    )
    remainder: Literal["held-out", "none"] = option(
        "held-out",
        "what L_PLC learns for the part of a label that is not transported: what these linear models say, where they "
        "can tell (the given label, where they see none that is wrong at random); or nothing (the paper)",
        idle={"held_out_weight": (0,), "keep_labels": (True,)},
    )
    keep_labels: bool = option(False, "the labels as given in place of corrected ones (the ablation of L_PLC)")

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.doubt_from > self.doubt_to:
            raise InputError(f"doubt_from is {self.doubt_from}, above doubt_to, {self.doubt_to}; expected it below")
