"""NCR as its paper prints it."""

from __future__ import annotations

from truepair.methods.preset import CLIPPING, COMMON, DECAY_ONCE, Preset, sgraf

PRINTED = Preset(
    source="NCR (NeurIPS 2021) and its released code, settings of Flickr30K",
    models={"sgr": sgraf()["sgr"]},
    method={
        "margin": 0.2,
        "curve": 10.0,
        "warm_up_epochs": 5,
        "threshold": 0.5,
        "mixture": "released",
        "noisy_from": 0.5,
        "co_train": True,
    },
    training={
        "epochs": 45,
        "batch_size": 128,
        "learning_rate": 2e-4,
        "decay_after": 35,
        **DECAY_ONCE,
        "optimizer": "adam",
        "weight_decay": 0.0,
    },
    for_data={
        "coco": {"method": {"warm_up_epochs": 10}, "training": {"epochs": 30, "decay_after": 20}},
        "cc152k": {"method": {"warm_up_epochs": 10}, "training": {"epochs": 50, "decay_after": 40}},
    },
    reasons=COMMON,
    silent=(
        "how the mixture is fitted: ten steps of expectation maximisation, as in the released code",
        "losses of a batch: means here, sums as released; Adam cares for their ratio alone",
        "which network predicts when: here both from the step at hand, as released",
        CLIPPING,
    ),
    not_expressed=(
        "labels are predicted by another pass in evaluation mode there; here by the pass that trains, dropout included",
        "where every posterior is above ½ the released code calls the 1 % with the smallest noisy; here nobody is",
        "the released code gives a clean pair one row of a matrix of labels and a noisy pair's text the margin of the "
        "negative, by broadcasting; until November 2023 every clean pair had the prediction of the first of its batch, "
        "and until June 2022 the soft margin had no effect. Here each pair has its own margin both ways; what the "
        "published figures were made with is not known",
        "clean and noisy pairs come in batches of their own there, and A trains an epoch before B; here both learn "
        "from every batch, in which a noisy pair's items are sound negatives",
    ),
    equations={
        "ranking loss ℓ": "losses.ranking:hinge_ranking",
        "mixture of the losses": "methods.loss_division.posteriors:clean_posterior",
        "prediction P": "correspondence.slack:predicted_label",
        "labels": "methods.ncr.method:NCR.labels",
        "soft margin": "losses.trusted:soft_margin",
        "the whole": "methods.loss_division.soft_margin:SoftMarginDivision.divided_losses",
    },
    rows={
        "one network": "`--no-ncr-co-train`",
        "mixture of largest likelihood": "`--ncr-mixture normal`",
    },
)
