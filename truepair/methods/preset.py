"""`Preset`: a method as its paper prints it, beside the defaults here, and what of the print has no option yet."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from truepair.data.config import Augmentation
from truepair.engines.config import EngineConfig, MLPConfig, SAFConfig, SGRConfig


@dataclass(frozen=True)
class Preset:
    """Every setting and equation of a paper that options express.

    Attributes:
        source: the paper, and where in it the settings stand.
        models: the engines that the paper reports, by name; the first one unless another is asked for.
        method: options of the method.
        training: options of `truepair.training.config.TrainingConfig`.
        for_data: name of other data, such as "coco" → what is printed for them instead, by "method" and "training".
        augmentation: how training batches are altered.
        idle: options of the method that have no effect beside the above, and the one of these that takes it from them.
        reasons: why the default here is another, for each option above of which it is: "method.NAME", "training.NAME",
            "augmentation.NAME", or "model" for engine and widths.
        silent: what the print does not say, so that the default stands.
        not_expressed: what it says and no option does. "As printed" is true but for these.
        equations: what is printed, and the function that computes it, as `module:name` below `truepair`.
        rows: what of its tables and figures can be run, and how: options, or a table of `truepair.reproduce`.
    """

    source: str
    models: dict[str, EngineConfig]
    method: dict[str, Any]
    training: dict[str, Any]
    reasons: Mapping[str, str]
    augmentation: Augmentation = field(default_factory=lambda: Augmentation(word_share=0.0, region_share=0.0))
    for_data: Mapping[str, Mapping[str, Mapping[str, Any]]] = field(default_factory=dict)
    idle: Mapping[str, str] = field(default_factory=dict)
    silent: tuple[str, ...] = ()
    not_expressed: tuple[str, ...] = ()
    equations: Mapping[str, str] = field(default_factory=dict)
    rows: Mapping[str, str] = field(default_factory=dict)


def sgraf() -> dict[str, EngineConfig]:
    """SGR and SAF in the sizes of SGRAF; the papers' SGRAF is the mean of one run of each."""
    sizes = {"width": 1024, "word_width": 300, "similarity_width": 256}
    return {"sgr": SGRConfig(**sizes), "saf": SAFConfig(**sizes)}


def mrl_networks() -> dict[str, EngineConfig]:
    """Three fully connected layers a side, in the sizes of MRL."""
    return {"mlp": MLPConfig(width=512, hidden_width=4096)}


SMALLER = "the papers' sizes are for 30,000 images of 36 × 2048 features and a GPU; the defaults train on a CPU"
SHORTER = "as many epochs as smaller data and networks need"
WIDTH_RATE = "the best rate falls as networks grow wider; at width 1024 the default is 0.001"
STEP_DECAY = "four fifths of the epochs, since short training with an early decay learns too little"
ONE_DECAY = "one schedule for all methods: a tenth, once"
ADAMW = "one optimizer for all methods, that of CRCL"
AUGMENTED = "one augmentation for all methods, that of CRCL"
COMMON = {
    "model": SMALLER,
    "training.epochs": SHORTER,
    "training.learning_rate": WIDTH_RATE,
    "training.decay_after": STEP_DECAY,
    "training.decay_every": ONE_DECAY,
    "training.decay_factor": ONE_DECAY,
    "training.optimizer": ADAMW,
    "training.weight_decay": ADAMW,
    "augmentation.word_share": AUGMENTED,
    "augmentation.region_share": AUGMENTED,
}
"""Reasons that hold for every method."""

CLIPPING = "gradient clipping: at norm 2, as by default"
ENCODERS = "in the papers SGRAF is one SGR and one SAF run; evaluate the two together"

STEPS = {"schedule": "steps", "warm_up": 0.0}
"""A learning rate that falls in steps, and does not rise at first."""
DECAY_ONCE = {"decay_every": None, "decay_factor": 0.1, **STEPS}

LABEL_TRAINING = {
    "epochs": 100,
    "batch_size": 100,
    "learning_rate": 1e-4,
    "decay_after": 100,  # never
    **DECAY_ONCE,
    "optimizer": "adam",
    "weight_decay": 0.0,
    "clip": 0.0,
}
"""UOT-RCL, section V-B: its own training, and that of what it compares with."""
LABEL_REASONS = COMMON | {
    "training.batch_size": "128 in four of the five papers",
    "training.clip": "one default for all methods, that of VSE++",
}
