"""DECL as its paper prints it."""

from __future__ import annotations

from truepair.methods.preset import CLIPPING, COMMON, DECAY_ONCE, Preset, sgraf

PRINTED = Preset(
    source="DECL (ACM MM 2022), with its supplement and released code, settings of Flickr30K",
    models=sgraf(),
    method={
        "evidence": "exp_tanh",
        "temperature": 0.1,
        "kl_weight": 0.1,
        "divergence": "sum",
        "margin": 0.2,
        "hinge_weight": 0.8,
        "hinge_total": "sum",
        "warm_up_epochs": 5,
        "hardness": "printed",
        "least_negatives": 5,
    },
    training={
        "epochs": 45,
        "batch_size": 128,
        "learning_rate": 2e-4,
        "decay_after": 25,
        **DECAY_ONCE,
        "optimizer": "adam",
        "weight_decay": 0.0,
    },
    for_data={
        "noise60": {"method": {"warm_up_epochs": 2}, "training": {"epochs": 42, "decay_after": 22}},
        "coco": {
            "method": {"warm_up_epochs": 2},
            "training": {"epochs": 22, "decay_after": 12, "learning_rate": 5e-4},
        },
        "coco-noise60": {
            "method": {"warm_up_epochs": 1},
            "training": {"epochs": 21, "decay_after": 11, "learning_rate": 5e-4},
        },
    },
    reasons={
        **COMMON,
        "method.evidence": "a cosine is free in its level: evidence is counted in units of the background, as in UGNCL",
        "method.temperature": "evidence in units of the background is sharper",
        "method.divergence": "a sum over the candidates of a batch drowns the rest of the loss",
        "method.hardness": "4,920 steps are four epochs of Flickr30K, and 52 of 12,000 pairs",
    },
    silent=(
        "whether the losses of a batch are sums or means: the released code has a mean of L_e and a sum of L_h, which "
        "makes their ratio 1 : 0.8 B; its figures were made so (hinge_total)",
        CLIPPING,
    ),
    not_expressed=(
        "DECL-SGRAF averages the evidence of one SGR and one SAF run; the two evaluated together give the mean of "
        "σ(r), and with `--evidence 0.1` that of their evidence",
    ),
    equations={
        "evidence": "correspondence.opinions:exponential_evidence",
        "evidence, as by default": "correspondence.opinions:background_evidence",
        "evidential loss L_e": "losses.evidential:evidential",
        "dynamic hinge L_h": "losses.ranking:hinge_ranking",
        "number of negatives": "methods.decl.method:DECL.negatives",
        "Algorithm 1: labels": "methods.decl.method:DECL.survey",
        "the whole": "methods.decl.method:DECL.batch_loss",
    },
)
