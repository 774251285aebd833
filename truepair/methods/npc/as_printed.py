"""NPC as its paper prints it."""

from __future__ import annotations

from truepair.engines.pretrained.config import PretrainedConfig
from truepair.methods.preset import COMMON, Preset

PRINTED = Preset(
    source="NPC (AAAI 2024) and its released code, settings of MS-COCO with ViT-B/32",
    models={"pretrained": PretrainedConfig(tune="full")},
    method={
        "temperature": 0.05,
        "clean": 0.9,
        "mixture": "released",
        "trial_rate": 2e-7,
        "weight": "tanh",
        "bank": "trained",
        "averaged": False,
        "warm_up_epochs": 0,
    },
    training={
        "epochs": 5,
        "batch_size": 256,
        "learning_rate": 2e-7,
        "schedule": "cosine",
        "optimizer": "adamw",
        "weight_decay": 0.2,
        "clip": 10.0,
    },
    reasons={
        **COMMON,
        "model": "a pretrained model is to be given (--model pretrained --encoder FOLDER)",
        "method.mixture": "a few steps of a fit need not find two groups, nor ask whether there are any",
        "method.trial_rate": "a step of the paper's rate is lost in the rounding of losses where networks are small",
        "training.batch_size": "128 in four of the five papers",
        "training.schedule": "one schedule for all methods: a tenth, once",
        "training.clip": "one default for all methods, that of VSE++",
    },
    silent=(
        "τ: that of the pretrained model is trained on, as by default",
        "what the tried step is made of: a first step of Adam; the released copy of the model has an optimizer of its "
        "own, with moments of the steps before, and doubles the gradient",
        "the released code averages the losses of a batch before it weighs them, and computes the bank's loss without "
        "a gradient, so that it trains on a scalar times the plain loss: `averaged` and bank `held`, as a control",
    ),
    not_expressed=(
        "500 steps of a rising rate (--warm-up takes a share of the steps), β of AdamW 0.9, 0.98 and ε 1e-6",
        "the released schedule: its count of steps jumps between epochs",
        "weights in half precision, most of whose updates at this rate are below their rounding",
        "the plain fine-tuning beside it has 5e-7, more than twice its rate",
    ),
    equations={
        "clean pairs": "methods.npc.method:NPC.start_epoch",
        "memory bank": "methods.npc.method:NPC.look_up",
        "negative impact": "methods.npc.impact:impact_weight",
        "the whole": "methods.npc.method:NPC.batch_loss",
    },
    rows={"as released": "`--npc-averaged`, `--npc-bank held`"},
)
