"""UOT-RCL as its paper prints it."""

from __future__ import annotations

from truepair.methods.preset import LABEL_REASONS, LABEL_TRAINING, Preset, mrl_networks

PRINTED = Preset(
    source="UOT-RCL, section V-B, settings of Wikipedia",
    models=mrl_networks(),
    method={
        "warm_up_epochs": 2,
        "temperature": 1.0,
        "relation_temperature": 1.0,
        "match_temperature": 1.0,
        "momentum": 0.99,
        "consistency": "printed",
        "own_weight": 0.0,
        "neighbours": None,  # 0.5 % of the pairs: 10 of Wikipedia
        "per_class": 5,
        "first_mass": 0.2,
        "last_mass": 0.8,
        "doubt_from": 0.0,
        "doubt_to": 0.0,
        "epsilon": 0.05,
        "relation_epsilon": 0.05,
        "class_prior": "uniform",
        "relation_weight": 0.4,
        "pair_weight": 0.0,
        "confident": "consistent",
        "keep_labels": False,
    },
    training=LABEL_TRAINING,
    for_data={
        "nuswide10": {"method": {"neighbours": 200}, "training": {"batch_size": 500}},
        "xmedianet": {"method": {"neighbours": 150}},
    },
    reasons={
        **LABEL_REASONS,
        "method.warm_up_epochs": "two short epochs predict no class yet",
        "method.momentum": "0.99 is for 100 epochs",
        "method.consistency": "the ratio counts a vote more, the less the other modality agrees",
        "method.own_weight": "one vote of 0.5 % of the pairs does not hold a right label where neighbours are poor",
        "method.relation_epsilon": "sharper: 6 to 13 matches in a batch of 100 where 0.05 leaves 24 to 41",
        "method.first_mass": "fewer epochs to grow in",
        "method.doubt_from": "where nearly all labels are right, correcting costs more than it saves",
        "method.doubt_to": "where nearly all labels are right, correcting costs more than it saves",
        "method.class_prior": "classes are not of one size, and noise makes the given sizes alike",
        "method.pair_weight": "matches of the transport alone are hardly better than chance early on",
    },
    silent=(
        "the entropic regularisation ε of both transports: 0.05, of the labels' in units of the cost, of L_BHG's as a "
        "share of its range (0.01 to 0.05: with ε in its units every match would be as good)",
        "how cosines below 0 enter eq. 7: both are clamped at 0.1, so that a ratio is between 0.1 and 10",
        "whether a pair is one of its own nearest samples: it is",
        "the widths of the hidden layers: 4096 as in MRL",
    ),
    not_expressed=("features are VGG-19 and Doc2Vec: give them as data",),
)
