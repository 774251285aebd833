"""MSCN as its paper prints it."""

from __future__ import annotations

from truepair.methods.preset import CLIPPING, COMMON, DECAY_ONCE, Preset, sgraf

PRINTED = Preset(
    source="MSCN (CVPR 2023) and its released code, whose settings are the same for all data",
    models={"sgr": sgraf()["sgr"]},
    method={
        "margin": 0.2,
        "warm_up_epochs": 5,
        "negatives": 0.0,
        "threshold": 0.5,
        "mixture": "released",
        "head_width": 64,
        "head_rate": 0.085,
        "meta_pairs": 32,
        "trial": "taken",
        "trial_rate": None,
        "co_train": True,
    },
    training={
        "epochs": 55,
        "batch_size": 64,
        "learning_rate": 2e-4,
        "decay_after": 35,
        **DECAY_ONCE,
        "optimizer": "adam",
        "weight_decay": 0.0,
    },
    reasons={
        **COMMON,
        "method.mixture": "ten steps from a poor start need not find two groups, nor ask whether there are any",
        "method.negatives": "the hardest alone learn the mismatches that a division leaves in, as for the triplet loss",
        "method.trial": "a step takes three times as long, and at the paper's rate the second derivative is 0.0001 of "
        "the head's gradient (3,000 products at 40 %, median of 96 steps)",
        "training.batch_size": "128 in four of the five papers",
    },
    silent=(
        "the trial step: plain gradient descent at Adam's rate on a sum of hinges, as released, although the network "
        "learns by Adam",
        "how beta distributions are fitted in a step: by their moments",
        "losses of a batch: means here, sums as released; Adam cares for their ratio alone",
        CLIPPING,
    ),
    not_expressed=(
        "the trial step has the learning rate of the epoch there, here that of the first; there with dropout, here "
        "without; and the network then learns by the new head, here both step at once",
        "the head's cross entropy is of all known pairs in turn there; here of some drawn for each step, and its wrong "
        "pairs are known images with each other's captions rather than pairs drawn from the training set once an epoch",
        "batches of 128, and the network's rate for the head, in the warm-up; both optimizers start afresh after it",
        "known pairs come from dev on Flickr30K (2,900 of its 5,070), from dev and train on MS-COCO, and from another "
        "split of Conceptual Captions on CC152K; here from the training pairs (--clean-pairs), and dev is held out",
        "the released code ranks texts for an image by the margin of the negative's pair, by broadcasting; here each "
        "pair has its own margin both ways",
        "pairs that are left out are no negatives there; here their items are, and A and B learn from every batch",
    ),
    equations={
        "similarity score s": "engines.similarity_head:SimilarityHead",
        "margin of a pair": "losses.meta:score_margin",
        "meta loss": "losses.meta:meta_cross_entropy",
        "trial step and meta gradient": "methods.mscn.trial:through_trial_step",
        "division by the mixture of scores": "methods.mscn.method:MSCN.start_epoch",
        "the whole": "methods.mscn.method:MSCN.batch_loss",
    },
    rows={
        "one network": "`--no-mscn-co-train`",
        "mixture": "`--mscn-mixture`",
        "trial step": "`--mscn-trial taken`, `--mscn-trial-rate`",
    },
)
