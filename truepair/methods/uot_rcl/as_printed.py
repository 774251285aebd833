"""UOT-RCL as its paper prints it."""

from __future__ import annotations

from truepair.methods.preset import LABEL_REASONS, LABEL_TRAINING, Preset, mrl_networks

DOUBT = (
    "where nearly all labels are right, correcting costs more than it saves (Wikipedia at 40 and 80 % is beyond the "
    "range in which it acts)"
)

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
        "neighbours": None,  # 0.5 % of the pairs: 10 of Wikipedia
        "per_class": 5,
        "first_mass": 0.2,
        "last_mass": 0.8,
        "mass_constraint": "printed",
        "doubt_from": 0.0,
        "doubt_to": 0.0,
        "epsilon": 0.05,
        "relation_epsilon": 0.05,
        "class_prior": "uniform",
        "relation_weight": 0.4,
        "relation_from": 0.0,
        "pair_weight": 0.0,
        "confident": "consistent",
        "held_out_weight": 0.0,
        "remainder": "none",
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
        "method.relation_epsilon": "sharper: 6 to 13 matches in a batch of 100 where 0.05 leaves 24 to 41",
        "method.mass_constraint": "s is the share that is transported, whatever the sign of the costs",
        "method.first_mass": "fewer epochs to grow in",
        "method.doubt_from": DOUBT,
        "method.doubt_to": DOUBT,
        "method.class_prior": "classes are not of one size, and noise makes the given sizes alike",
        "method.held_out_weight": "a network learns wrong labels by heart; models that have not learned them tell "
        "more of the labels",
        "method.remainder": "with less than a whole label of each pair a network learns more slowly than by the given "
        "ones: products at 20 % stay below cross entropy in twelve epochs",
        "method.relation_from": "at 40 and 60 % wrong labels L_BHG costs emoji a point of mAP and brings the other "
        "sets 0.4 at most; at 80 % it brings products 0.7 and emoji 1.7",
        "method.pair_weight": "matches of the transport alone are hardly better than chance early on",
    },
    silent=(
        "the entropic regularisation ε of both transports: 0.05, of the labels' in units of the cost, of L_BHG's as a "
        "share of its range (0.01 to 0.05: with ε in its units every match would be as good)",
        "how cosines below 0 enter eq. 7: both are clamped at 0.1, so that a ratio is between 0.1 and 10",
        "whether a pair is one of its own nearest samples: in eq. 8 it is; in eq. 7, the nearest of the confident set, "
        "it is not, since the ratio of each confident pair would be 1",
        "the length of encodings and prototypes: one, as in MRL, though eq. 6 alone prints a cosine; so no probability "
        "of eq. 1 exceeds 0.23 of ten classes at right angles",
        "the size of the features, which differs by orders of magnitude: standardised by a batch norm before the first "
        "layer",
        "what eq. 17 means by the index i of both relations: i and j",
        "whether the two epochs of the warm-up are among the 100: they are",
        "the widths of the hidden layers: 4096 as in MRL",
    ),
    not_expressed=("features are VGG-19 and Doc2Vec: give them as data",),
    equations={
        "1: class probabilities p": "methods.labels:LabelMethod.logits",
        "2, 15: cross entropy, label loss L_PLC": "losses.clustering:soft_cross_entropy",
        "3: optimal transport": "transport:sinkhorn",
        "4: divergence of the modalities": "correspondence.confident:jensen_shannon",
        "5: confident set": "correspondence.confident:confident_pairs",
        "6–8: cost of a class": "correspondence.class_costs:label_cost",
        "9: running targets": "correspondence.class_costs:running_targets",
        "10–14: corrected labels": "correspondence.class_costs:corrected_labels",
        "10–14: partial transport": "transport:partial_transport",
        "12: class sizes r": "methods.uot_rcl.method:UOTRCL.class_mass",
        "13: share s": "methods.uot_rcl.method:UOTRCL.mass",
        "16: relations": "losses.relation:relations",
        "17: cost of a match": "losses.relation:relation_cost",
        "17: matches M": "methods.uot_rcl.method:UOTRCL.match",
        "18: relation loss L_BHG": "losses.relation:relation_alignment",
        "19: the whole": "methods.uot_rcl.method:UOTRCL.batch_loss",
        "20: mAP": "evaluation.average_precision:mean_average_precision",
        "Fig. 8: corrected labels": "reproduce.figures.from_runs:corrected_labels",
    },
    rows={
        "Table IV": "`labels`: without L_PLC `--uot-rcl-keep-labels`, without L_BHG `--uot-rcl-relation-weight 0`, "
        "without the confident set `--uot-rcl-confident random`",
        "Fig. 3": "figures `uot-rcl-3-20`, `uot-rcl-3-40`, `uot-rcl-3-60`, `uot-rcl-3-80`",
        "Fig. 4": "figures `uot-rcl-4a` to `uot-rcl-4d`, of the table `labels-gamma`: `--uot-rcl-momentum`",
        "Fig. 5": "figure `uot-rcl-5`: drawings of emoji and their names",
        "Fig. 6": "figures `uot-rcl-6a`, `uot-rcl-6b`, of the table `labels-lambda`: `--uot-rcl-relation-weight`",
        "Fig. 7": "figure `uot-rcl-7`: the features as they are, and as the run encodes them",
        "Fig. 8": "figure `uot-rcl-8`; of any run `truepair labels RUN`",
    },
)
