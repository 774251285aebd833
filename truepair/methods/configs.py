"""The options of every method, one small dataclass each; importable without torch, so that `--help` is instant."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Any, Literal, get_args, get_origin, get_type_hints

from truepair.errors import InputError


@dataclass(frozen=True)
class TripletConfig:
    """Options of the triplet baseline."""

    margin: float = field(default=0.2, metadata={"help": "margin α of the hinge (VSE++)"})
    warm_up_epochs: int = field(
        default=1, metadata={"help": "first epochs on all negatives instead of the hardest one (VSE∞: 1)"}
    )

    def __post_init__(self) -> None:
        if self.margin < 0 or self.warm_up_epochs < 0:
            raise InputError(f"margin {self.margin} and warm-up epochs {self.warm_up_epochs} must not be negative")


@dataclass(frozen=True)
class InfoNCEConfig:
    """Options of the InfoNCE baseline."""

    temperature: float = field(default=0.05, metadata={"help": "temperature τ of both softmaxes (as in CRCL)"})

    def __post_init__(self) -> None:
        if not self.temperature > 0:
            raise InputError(f"temperature is {self.temperature}; expected a value above 0")


@dataclass(frozen=True)
class CRCLConfig:
    """Options of CRCL; the defaults are the paper's (Table 5)."""

    temperature: float = field(default=0.05, metadata={"help": "temperature τ of the matching probabilities (eq. 3)"})
    scale: float = field(default=5.0, metadata={"help": "weight λ of the complementary part (eq. 8)"})
    momentum: float = field(default=0.8, metadata={"help": "weight β of the old label in its update (eq. 10)"})
    threshold: float = field(default=0.1, metadata={"help": "labels below ε count as 0 in the loss (eq. 12)"})
    freeze_epochs: int = field(
        default=2, metadata={"help": "first epochs e_f of each piece with frozen labels (eq. 11)"}
    )
    pieces: tuple[int, ...] | None = field(
        default=None,
        metadata={
            "help": "epochs of the self-refining pieces before the last one, which has --epochs; none: no such piece. "
            "Default: three of 7/32 of --epochs as in the paper (7,7,7 before 32); where these were under 7 epochs, "
            "one of 4/5"
        },
    )

    def __post_init__(self) -> None:
        if not self.temperature > 0 or self.scale < 0:
            raise InputError(f"temperature {self.temperature} must be above 0 and scale {self.scale} not negative")
        if not 0 <= self.momentum <= 1 or not 0 <= self.threshold <= 1:
            raise InputError(f"momentum {self.momentum} and threshold {self.threshold} must lie in [0, 1]")
        if self.freeze_epochs < 1:
            raise InputError(f"freeze epochs is {self.freeze_epochs}; expected at least 1")
        if any(piece <= self.freeze_epochs for piece in self.pieces or ()):
            raise InputError(
                f"pieces are {self.pieces}; each needs more than the {self.freeze_epochs} epochs of frozen "
                "labels, or it refines nothing"
            )


@dataclass(frozen=True)
class GSCConfig:
    """Options of GSC; the defaults are the paper's (section 4.2)."""

    cross_modal_temperature: float = field(default=0.07, metadata={"help": "temperature τ1 across modalities (eq. 3)"})
    intra_modal_temperature: float = field(default=1.0, metadata={"help": "temperature τ2 within modalities (eq. 7)"})
    intra_modal_weight: float = field(default=0.01, metadata={"help": "weight γ of the intra-modal loss (eq. 9)"})
    cross_modal_momentum: float = field(
        default=0.7, metadata={"help": "weight β1 of an epoch's new cross-modal indicator (eq. 10)"}
    )
    intra_modal_momentum: float = field(
        default=0.7, metadata={"help": "weight β2 of an epoch's new intra-modal indicator (eq. 10)"}
    )
    co_train: bool = field(
        default=False, metadata={"help": "two networks, each on the labels of the other; retrieval by their mean"}
    )

    def __post_init__(self) -> None:
        if not (self.cross_modal_temperature > 0 and self.intra_modal_temperature > 0):
            raise InputError("the temperatures of GSC must be above 0")
        if self.intra_modal_weight < 0:
            raise InputError(f"intra-modal weight is {self.intra_modal_weight}; expected 0 or more")
        if not (0 <= self.cross_modal_momentum <= 1 and 0 <= self.intra_modal_momentum <= 1):
            raise InputError("the momenta of GSC must lie in [0, 1]")


@dataclass(frozen=True)
class UGNCLConfig:
    """Options of UGNCL. The defaults are the paper's, but for the mends that docs/results.md accounts for.

    The letter of the paper: evidence exp_tanh or exp_softplus at temperature 0.1, divergence sum, tolerance 1, soft
    label belief, hard weight one.
    """

    evidence: Literal["background", "exp_tanh", "exp_softplus"] = field(
        default="background",
        metadata={
            "help": "from similarity to evidence: exp(s/τ) in units of the batch's wrong cells; exp(tanh(r)/τ); or the "
            "printed exp(softplus(r)/τ) (eq. 3), whose uncertainty never exceeds 1/3"
        },
    )
    temperature: float = field(default=0.05, metadata={"help": "temperature τ of the evidence (eq. 3; the paper: 0.1)"})
    background: float = field(default=0.25, metadata={"help": "evidence η of an average wrong cell"})
    threshold: float = field(default=0.5, metadata={"help": "pairs of uncertainty below p are determined (eq. 8)"})
    uncertainty: Literal["value", "rank"] = field(
        default="value", metadata={"help": "what is compared with p: u, or its rank in the training set"}
    )
    tolerance: float = field(
        default=0.1,
        metadata={"help": "a pair counts as foremost from this share of the best partner's evidence on (eq. 9: 1)"},
    )
    soft_label: Literal["odds", "share", "belief"] = field(
        default="odds",
        metadata={"help": "label of a hard pair: its odds against the tolerance, share of the evidence, or belief b"},
    )
    label_threshold: float = field(default=0.5, metadata={"help": "hard pairs of a label above ε are hard-clean"})
    hard_weight: Literal["label", "one"] = field(
        default="label", metadata={"help": "weight of a hard pair's ranking term: its label, or 1 as in eq. 16"}
    )
    margin: float = field(default=0.2, metadata={"help": "margin γ of a clean pair (eq. 16)"})
    curve: float = field(default=10.0, metadata={"help": "curve m of the soft margin (eq. 2)"})
    sharpness: float = field(default=10.0, metadata={"help": "sharpness Δ of the trusted margin (eq. 17)"})
    kl_weight: float = field(default=0.1, metadata={"help": "weight ξ1 of the divergence in the evidential loss"})
    divergence: Literal["mean", "sum"] = field(
        default="mean", metadata={"help": "the divergence over the classes of a batch: their mean, or sum (eq. 13)"}
    )
    ranking_weight: float = field(default=0.8, metadata={"help": "weight ξ2 of the trusted robust loss"})
    warm_up_epochs: int = field(default=5, metadata={"help": "epochs before the first division (the paper: 5)"})
    hardness: Literal["per_step", "printed"] = field(
        default="per_step",
        metadata={"help": "negatives λ fall from B − 1 to θ by the end of the warm-up, or as printed by δ an epoch"},
    )
    least_negatives: int = field(default=5, metadata={"help": "least negatives θ of a pair"})
    least_clean: float = field(
        default=0.1, metadata={"help": "a division with a smaller share of clean pairs is not acted on"}
    )

    def __post_init__(self) -> None:
        for name in ("threshold", "label_threshold", "least_clean"):
            if not 0 <= getattr(self, name) <= 1:
                raise InputError(f"{name} is {getattr(self, name)}; expected a value in [0, 1]")
        for name in ("temperature", "sharpness", "background", "tolerance", "margin"):
            if not getattr(self, name) > 0:
                raise InputError(f"{name} is {getattr(self, name)}; expected a value above 0")
        for name in ("kl_weight", "ranking_weight", "warm_up_epochs"):
            if getattr(self, name) < 0:
                raise InputError(f"{name} is {getattr(self, name)}; expected 0 or more")
        if self.tolerance > 1:
            raise InputError(f"tolerance is {self.tolerance}; expected at most 1")
        if not self.curve > 1 or self.least_negatives < 1:
            raise InputError(f"curve {self.curve} must be above 1, least negatives {self.least_negatives} at least 1")
        check_choices(self)


@dataclass(frozen=True)
class DisNCLConfig:
    """Options of DisNCL; the defaults are the paper's (section VI-A3) unless their help says otherwise."""

    disentangler: Literal["disncl", "fdmer", "dmim", "mvib", "none"] = field(
        default="disncl",
        metadata={
            "help": "how the subspaces are parted: L_Dis and L_reg; or feature consistency (FDMER), cross prediction "
            "(DMIM), information regularisation (MVIB); or not at all"
        },
    )
    align_weight: float = field(default=1.0, metadata={"help": "weight of L_align (eq. 3) after the warm-up"})
    soft_weight: float = field(default=1.0, metadata={"help": "weight of L_soft (eq. 6); 0 leaves it out"})
    disentangle_weight: float = field(
        default=1.0, metadata={"help": "weight of L_Dis (eq. 1), or of a rival's terms; 0 leaves them out"}
    )
    regularizer_weight: float = field(default=1.0, metadata={"help": "weight of L_reg (eq. 7); 0 leaves it out"})
    adversarial_weight: float = field(
        default=1.0,
        metadata={"help": "weight of all that is lowered, in L_Dis and L_reg; 0: parts may hold what they like"},
    )
    balance: float = field(
        default=0.1,
        metadata={
            "help": "share γ of the invariant part in L_Dis (eq. 1; the paper: 0.5). What it should hold is raised by "
            "L_align as well, what the exclusive part should hold by nothing else"
        },
    )
    invariant_weight: float = field(
        default=0.05,
        metadata={
            "help": "weight β1 of the divergence of the invariant parts (eq. 10; MVIB's too), which makes them forget "
            "what only one side has; the paper's 0.1 is for parts of no stated size, here they are spread to size one"
        },
    )
    exclusive_weight: float = field(
        default=0.1, metadata={"help": "weight β2: what an exclusive part tells of the other side counts 1 + β2"}
    )
    given_weight: float = field(default=0.5, metadata={"help": "weight β3 of the given pair in a soft target (eq. 6)"})
    temperature: float = field(default=0.05, metadata={"help": "temperature τ of the soft targets (eq. 5)"})
    log_floor: float = field(default=-4.0, metadata={"help": "A, in place of log 0 in the reverse cross entropy"})
    margin: float = field(default=0.2, metadata={"help": "margin α (eq. 3)"})
    curve: float = field(default=10.0, metadata={"help": "curve m of the soft margin (eq. 3)"})
    warm_up_epochs: int = field(default=5, metadata={"help": "epochs of L_align alone, with a constant margin"})
    warm_up_negatives: Literal["falling", "all", "hardest"] = field(
        default="falling",
        metadata={
            "help": "negatives of a pair in the warm-up: from all of the batch to the share warm_up_least; all; "
            "or the hardest alone (the paper), which learns noise from the start"
        },
    )
    warm_up_least: float = field(
        default=0.5,
        metadata={
            "help": "share of the batch, the hardest, that are negatives at the end of a falling warm-up: fewer teach "
            "faster, and with much noise nothing"
        },
    )
    subspace_width: int = field(default=512, metadata={"help": "width of each subspace"})
    hidden_width: int = field(default=256, metadata={"help": "hidden width of the heads and the discriminators"})
    part_noise: float = field(
        default=0.5,
        metadata={"help": "deviation of the noise on the parts that discriminators see, whose values are near 1"},
    )
    head_rate: float = field(
        default=0.25, metadata={"help": "learning rate of the invariant heads, in units of --learning-rate"}
    )
    exclusive_rate: float = field(
        default=1.0, metadata={"help": "learning rate of the exclusive heads, in units of --learning-rate"}
    )
    main_rate: float = field(
        default=0.25, metadata={"help": "learning rate of all after the warm-up, in units of --learning-rate"}
    )
    discriminator_rate: float = field(
        default=3.0, metadata={"help": "learning rate of the discriminators, in units of --learning-rate"}
    )
    discriminator_steps: int = field(
        default=1, metadata={"help": "discriminator steps for each step of the encoders, the common one included"}
    )
    least_clean: float = field(
        default=0.01, metadata={"help": "a run is stopped when a smaller share of the pairs is clean after the warm-up"}
    )

    def __post_init__(self) -> None:
        for name in ("balance", "given_weight", "least_clean", "warm_up_least"):
            if not 0 <= getattr(self, name) <= 1:
                raise InputError(f"{name} is {getattr(self, name)}; expected a value in [0, 1]")
        for option in fields(self):
            if option.name.endswith("_weight") and not getattr(self, option.name) >= 0:
                raise InputError(f"{option.name} is {getattr(self, option.name)}; expected 0 or more")
        for name in ("temperature", "margin", "head_rate", "exclusive_rate", "main_rate", "discriminator_rate"):
            if not getattr(self, name) > 0:
                raise InputError(f"{name} is {getattr(self, name)}; expected a value above 0")
        if not self.part_noise >= 0:
            raise InputError(f"part_noise is {self.part_noise}; expected 0 or more")
        for name in ("subspace_width", "hidden_width"):
            if getattr(self, name) < 1:
                raise InputError(f"{name} is {getattr(self, name)}; expected at least 1")
        if not self.log_floor < 0 or not self.curve > 1:
            raise InputError(f"log_floor {self.log_floor} must be below 0 and curve {self.curve} above 1")
        if self.warm_up_epochs < 0 or self.discriminator_steps < 1:
            raise InputError(
                f"warm-up epochs {self.warm_up_epochs} must not be negative, discriminator steps "
                f"{self.discriminator_steps} at least 1"
            )
        check_choices(self)


def check_choices(config: Any) -> None:
    """Refuse values that are not among a field's literals.

    Raises:
        InputError: there is one.
    """
    hints = get_type_hints(type(config))
    for option in fields(config):
        known = get_args(hints[option.name]) if get_origin(hints[option.name]) is Literal else None
        if known and getattr(config, option.name) not in known:
            raise InputError(f"{option.name} is {getattr(config, option.name)!r}; expected one of {', '.join(known)}")
