"""GSC as its paper prints it."""

from __future__ import annotations

from truepair.methods.preset import CLIPPING, COMMON, Preset, sgraf

PRINTED = Preset(
    source="GSC (CVPR 2024), section 4.2",
    models=sgraf(),
    method={
        "cross_modal_temperature": 0.07,
        "intra_modal_temperature": 1.0,
        "intra_modal_weight": 0.01,
        "cross_modal_momentum": 0.7,
        "intra_modal_momentum": 0.7,
        "co_train": True,
    },
    training={
        "batch_size": 128,
        "learning_rate": 2e-4,
        "decay_after": 15,
        "decay_every": 15,
        "decay_factor": 0.2,
        "optimizer": "adam",
        "weight_decay": 0.0,
    },
    reasons={**COMMON, "method.co_train": "two networks take twice the time; all headline rows of the paper are two"},
    silent=("the number of epochs", "the similarity within a modality of SGR and SAF: as released", CLIPPING),
    not_expressed=(
        "Algorithm 1 gives network B the labels that A made in the same epoch; here both wait for the next",
        "eq. 7 has no factor y_i, which the text asks for and the loss here has",
    ),
)
