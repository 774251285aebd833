"""BiCro as its paper prints it."""

from __future__ import annotations

from truepair.methods.preset import CLIPPING, COMMON, DECAY_ONCE, Preset, sgraf

PRINTED = Preset(
    source="BiCro (CVPR 2023) and the scripts of its released code, which are the same for all data",
    models=sgraf(),
    method={
        "margin": 0.2,
        "curve": 10.0,
        "warm_up_epochs": 10,
        "warm_up_share": 0.3,
        "threshold": 0.5,
        "mixture": "beta",
        "least_label": 0.5,
        "noisy_from": 0.5,
        "co_train": True,
    },
    training={
        "epochs": 50,
        "batch_size": 128,
        "learning_rate": 2e-4,
        "decay_after": 40,
        **DECAY_ONCE,
        "optimizer": "adam",
        "weight_decay": 0.0,
    },
    reasons={
        **COMMON,
        "method.warm_up_epochs": "a quarter of the default epochs, as NCR's and DECL's",
        "method.mixture": "once the losses draw together, the upper of the two likeliest groups can be a sliver in "
        "the middle of the others: a division of epoch 7 calls 0.8 % clean, and dev rSum falls from 200 to 52 "
        "(docs/grand.md)",
    },
    silent=(
        "the mixture of the tables: beta in the released scripts, normal by its code's default (mixture)",
        "the beta mixture is fitted to the largest likelihood found, and the group of the lower mean is clean; the "
        "released code takes ten steps and the first group, whichever that is",
        "losses of a batch: means here, sums as released; Adam cares for their ratio alone",
        CLIPPING,
    ),
    not_expressed=(
        "labels are made by another pass in evaluation mode there; here by the pass that trains, dropout included",
        "where every posterior is above ½ the released code calls the 1 % with the smallest noisy; here nobody is",
        "the beta mixture is asked whether there are two groups, and no pair is noisy where there are not; there it is "
        "believed unasked",
        "anchors come from the clean pairs of the batch, as released; in the paper from a clean set of the whole data",
        "the released code writes the labels of clean pairs to other places than theirs, and ranks texts for an image "
        "by the margin of the negative's pair; here each pair has its own label, both ways",
        "of cosines of opposite signs the released code takes a/b for the similarity consistency; here it is "
        "min(a/b, b/a), as in the paper, at most −1. A label differs by at most ½, where −1 < a/b < 0",
        "clean and noisy pairs come in batches of their own there, and A trains an epoch before B; here both learn "
        "from every batch",
        "BiCro* is the mean of two SGR and two SAF networks: evaluate one run of each together",
    ),
    equations={
        "ranking loss ℓ": "losses.ranking:hinge_ranking",
        "mixture of the losses": "correspondence.beta_mixture:fit_beta_mixture",
        "similarity consistency": "correspondence.consistency:bidirectional_consistency",
        "labels": "methods.bicro.method:BiCro.labels_by",
        "soft margin": "losses.trusted:soft_margin",
        "the whole": "methods.loss_division.soft_margin:SoftMarginDivision.divided_losses",
    },
    rows={"one network": "`--no-bicro-co-train`", "mixture": "`--bicro-mixture`"},
)
