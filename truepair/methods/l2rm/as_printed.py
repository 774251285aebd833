"""L2RM as its paper prints it."""

from __future__ import annotations

from truepair.methods.preset import CLIPPING, COMMON, DECAY_ONCE, ENCODERS, Preset, sgraf

PRINTED = Preset(
    source="L2RM (CVPR 2024) and its released code, settings of Flickr30K",
    models=sgraf(),
    method={
        "margin": 0.2,
        "temperature": 0.05,
        "warm_up_epochs": 5,
        "threshold": 0.5,
        "mixture": "beta",
        "cost": "distance",
        "cost_rate": 10.0,
        "mass": 0.1,
        "epsilon": 0.01,
        "targets": "full",
        "rematch_weight": None,
    },
    training={
        "epochs": 40,
        "batch_size": 128,
        "learning_rate": 2e-4,
        "decay_after": 20,
        **DECAY_ONCE,
        "optimizer": "adam",
        "weight_decay": 0.0,
    },
    for_data={
        "coco": {"method": {"warm_up_epochs": 10, "epsilon": 0.07}, "training": {"epochs": 30, "decay_after": 20}},
        "cc152k": {"method": {"warm_up_epochs": 10, "epsilon": 0.07}, "training": {"epochs": 50, "decay_after": 30}},
    },
    reasons={
        **COMMON,
        "method.targets": "normalised, a row of which next to nothing was moved has a full target all the same",
    },
    silent=(
        "weights of the two losses: the released code adds a sum of hinges and a mean of divergences (rematch_weight)",
        "the diagonal of the plan is forbidden for all noisy pairs; in the released code unless the option of the "
        "noise rate is 0, so never on CC152K",
        "ε is in units of the range of the costs; there of the cost itself, which is at most 1",
        "how the beta mixture is fitted: to the larger likelihood of two starts, that of the released codes and the "
        "likeliest cut of the losses",
        CLIPPING,
    ),
    not_expressed=(
        ENCODERS,
        "the mixture is asked whether there are two groups, and no pair is noisy where there are not; there it is "
        "believed unasked",
        "the learned cost: there a linear map of a row of the batch, which depends on the order of its pairs, starts "
        "at 1 − S and is taught to be 0 for clean pairs, with nothing to keep other costs up; here the cost is 1 − S, "
        "or with --l2rm-cost learned a function of the one cell that wrong pairs keep up",
        "dev may choose an epoch of the warm-up there",
        "a queue of images is kept there, as long as a batch, and so holds that batch alone: left out",
    ),
    equations={
        "warm-up loss R": "losses.rematching:symmetric_cross_entropy",
        "mixture of the losses": "correspondence.beta_mixture:fit_beta_mixture",
        "learned cost": "methods.l2rm.cost:LearnedCost",
        "partial transport": "transport.partial:partial_transport",
        "plan of a batch": "methods.l2rm.method:L2RM.plan",
        "rematching loss": "losses.rematching:rematching",
        "the whole": "methods.l2rm.method:L2RM.divided_losses",
    },
    rows={"learned cost": "`--l2rm-cost learned`, `--l2rm-cost-rate`"},
)
