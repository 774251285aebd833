"""UGNCL as its paper prints it."""

from __future__ import annotations

from truepair.methods.preset import CLIPPING, COMMON, DECAY_ONCE, ENCODERS, Preset, sgraf

PRINTED = Preset(
    source="UGNCL (SIGIR 2024), section 4.2, settings of Flickr30K and CC152K",
    models=sgraf(),
    method={
        "evidence": "exp_softplus",
        "temperature": 0.1,
        "directions": "sum",
        "division": "uncertainty",
        "threshold": 0.5,
        "uncertainty": "value",
        "tolerance": 1.0,
        "soft_label": "belief",
        "label_threshold": 0.5,
        "hard_weight": "one",
        "margins": "trusted",
        "margin": 0.2,
        "curve": 10.0,
        "sharpness": 10.0,
        "kl_weight": 0.1,
        "divergence": "sum",
        "ranking_weight": 0.8,
        "ranking_total": "mean",
        "warm_up_epochs": 5,
        "hardness": "printed",
        "least_negatives": 5,
        "least_clean": 0.0,
    },
    training={
        "epochs": 45,
        "batch_size": 128,
        "learning_rate": 2e-4,
        "decay_after": 35,  # as NCR: 30 after the warm-up
        **DECAY_ONCE,
        "optimizer": "adam",
        "weight_decay": 0.0,
    },
    for_data={"coco": {"method": {"warm_up_epochs": 2}, "training": {"epochs": 22, "decay_after": 12}}},
    reasons={
        **COMMON,
        "method.evidence": "printed, no uncertainty exceeds 1/3 and no pair is hard (eq. 3 against p = 0.5)",
        "method.temperature": "evidence in units of the background is sharper",
        "method.directions": "summed, a pair among whose candidates nothing stands out has u = 0.4995: determined",
        "method.tolerance": "a pair that comes near its best partner is not noisy for that",
        "method.soft_label": "beliefs of hard pairs are near 0, and so would their margins be",
        "method.hard_weight": "hard pairs teach as far as their label is believed",
        "method.divergence": "a sum over the classes of a batch drowns the rest of the loss",
        "method.hardness": "λ would stay at the batch size for hundreds of epochs",
        "method.least_clean": "a division that finds hardly any clean pair would stop the training",
    },
    idle={"background": "evidence"},
    silent=(
        "which S of SGR and SAF an equation means: evidence (eq. 3) takes the score as it is, the ranking losses its "
        "hyperbolic tangent, retrieval its logistic function. With the latter in eq. 3 no uncertainty would exceed "
        "0.00003; with scores of any size none exceeds 1/3 in one view and 0.2 in both",
        "evidence beyond e³⁹, of a score of 3.9 at τ = 0.1: it saturates below e⁴⁰, so that the product of two views "
        "fits in a float32",
        "what a determined noisy pair learns (section 3.3 names eq. 1): L_e with the label 0, no ranking loss",
        "the loss of the warm-up: L_e with labels of 1, and the hinge over the λ hardest negatives at the full margin",
        "rate, optimizer and when the rate falls but as NCR's: 2e-4 with Adam, a tenth 30 epochs after the warm-up "
        "(COCO: 10)",
        "whether the losses of a batch, which eq. 18 states for one pair, are summed or averaged: both averaged. The "
        "released code averages L_e and sums L_t (ranking_total), with ξ2 = 0.2",
        CLIPPING,
    ),
    not_expressed=(
        ENCODERS,
        "eq. 2 prints the soft margin without its factor, and eq. 17 the odds as 1/(u − 1): misprints, not followed",
        "eq. 17 as it is gives a hard-clean pair (u ≥ 0.5) at most half of its soft margin, and in a run 0.2 % of it "
        "(median): the paper's own flaw, kept",
        "the released code holds no script that trains, and its training step cannot run: the margins of hard pairs "
        "raise −10 to powers that are no whole numbers, and a loop counts up to a list",
    ),
    equations={
        "3: evidence": "methods.ugncl.method:UGNCL.evidence",
        "3, as by default": "correspondence.opinions:background_evidence",
        "4: both directions": "correspondence.opinions:bidirectional",
        "5, 6: opinion": "correspondence.opinions:opinions",
        "7: fusion": "correspondence.opinions:fuse_evidence",
        "8–11: division": "methods.ugncl.method:divide",
        "12–14: evidential loss": "losses.evidential:evidential",
        "2: soft margin": "losses.trusted:soft_margin",
        "16: trusted robust loss": "losses.trusted:trusted_ranking",
        "16: λ": "losses.trusted:printed_hardness",
        "17: trusted margin": "losses.trusted:trusted_margin",
        "15, 18: the whole": "methods.ugncl.method:UGNCL.batch_loss",
        "Fig. 3: uncertainty of queries": "reproduce.figures.of_pairs:query_uncertainty",
    },
    rows={
        "Table 4": "`ugncl-parts`: without TRL `--ugncl-margins soft`, without UGD `--ugncl-division probability`",
        "Fig. 3": "figures `ugncl-3-examples`: queries, what is found first, and their uncertainty; `ugncl-3`: that of "
        "all images and texts of the test split as queries; training pairs by uncertainty: `truepair report RUN`",
    },
)
