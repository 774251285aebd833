"""DisNCL as its paper prints it."""

from __future__ import annotations

from truepair.methods.preset import CLIPPING, COMMON, DECAY_ONCE, ENCODERS, Preset, sgraf

PRINTED = Preset(
    source="DisNCL, section VI-A3",
    models=sgraf(),
    method={
        "disentangler": "disncl",
        "align_weight": 1.0,
        "soft_weight": 1.0,
        "disentangle_weight": 1.0,
        "regularizer_weight": 1.0,
        "adversarial_weight": 1.0,
        "balance": 0.5,
        "invariant_weight": 0.1,
        "exclusive_weight": 0.1,
        "given_weight": 0.5,
        "temperature": 0.05,
        "log_floor": -100.0,  # none; as torch takes log 0 in a cross entropy
        "margin": 0.2,
        "curve": 10.0,
        "warm_up_epochs": 5,
        "warm_up_negatives": "hardest",
        "heads": "plain",
        "subspace_width": 512,
        "hidden_width": 256,
        "head_rate": 1.0,
        "main_rate": 1.0,
        "least_clean": 0.0,
    },
    training={
        "epochs": 55,  # 50 after the warm-up
        "batch_size": 128,
        "learning_rate": 2e-4,
        "decay_after": 30,  # 25 after the warm-up
        **DECAY_ONCE,
        "optimizer": "adam",
        "weight_decay": 0.0,
    },
    reasons={
        **COMMON,
        "method.log_floor": "theorem 3 calls L_soft bounded, which it is with a floor",
        "method.heads": "three layers alone take twice the epochs where features are trained from scratch",
        "method.warm_up_negatives": "hardest negatives learn noise from the start: products at 40 % stop in epoch 3, "
        "with 0.02 % of the pairs clean",
        "method.head_rate": "at the rate of the network heads that begin as the features leave them: dev rSum is 59 in "
        "place of 125 after the first epoch",
        "method.main_rate": "the loss after the warm-up is larger; smaller steps keep what was learned: at the full "
        "rate products at 40 % fall from dev rSum 168 to 11 in the first epoch after it, and stop in the next",
        "method.least_clean": "a run whose clean set dies out is stopped",
    },
    idle={"warm_up_least": "warm_up_negatives"},
    silent=(
        "the order of H(p, y) in eq. 6: −Σ p log y, the targets being y, which theorem 3 needs; its log 0, of β3 = 1 "
        "alone, is −100",
        "whether a gradient flows through the soft margin and the targets: through neither",
        "which vectors L_Dis and L_reg see of regions and words: heads act on each, and the means of the parts count",
        "whose marginal samples discriminators see",
        "whether eq. 4, which takes the similarities of pairs that are not clean for 0, reaches into the rows of the "
        "clean ones: it does not, and their own rows are left out by eq. 6",
        "whether the warm-up ranks the clean pairs of eq. 2 alone: it ranks all",
        CLIPPING,
    ),
    not_expressed=(
        ENCODERS,
        "the loss of a batch is eq. 8 divided by the batch size",
        "parts, as all encodings here, are brought to length one",
    ),
    equations={
        "1, 7, 11: L_Dis and L_reg": "methods.disncl.disentanglers:InformationBottleneck.terms",
        "2: clean set": "correspondence.mutual_best:mutual_best",
        "3: alignment loss L_align": "methods.disncl.method:DisNCL.alignment_loss",
        "3: soft margin": "losses.trusted:soft_margin",
        "4, 8: the whole, of the clean set": "methods.disncl.method:DisNCL.batch_loss",
        "5, 6: soft alignment loss L_soft": "losses.soft_targets:soft_alignment",
        "6: entropy H(p, y)": "losses.soft_targets:reverse_cross_entropy",
        "9, 12: information": "losses.information:jensen_shannon",
        "10: divergence": "losses.information:unit_gaussian_divergence",
        "12: what is lowered": "losses.information:reverse_gradient",
        "Fig. 4: information between the parts": "pages.analysis.leakage:leakage",
        "Fig. 4: retrieval by each part": "pages.analysis.analyse:retrieval_of",
        "Fig. 4: the parts in a plane": "pages.analysis.embedding:embed",
        "Fig. 5: soft targets of queries": "pages.analysis.soft_examples:soft_examples",
    },
    rows={
        "Table I": "`disncl-images`: whole images exchanged (`--noise-kind image`)",
        "Table V": "`disncl`: L_align alone `--disncl-disentangler none` with `--disncl-soft-weight 0`, without L_soft "
        "`--disncl-soft-weight 0`, without L_reg `--disncl-regularizer-weight 0`; on SGR, SAF and both `disncl-local`",
        "Fig. 4": "figures `disncl-4` and `disncl-4-baseline`, whose parts rebuild their features "
        "(`--disncl-disentangler reconstruction`); information and retrieval of the parts: `disncl-analysis`, of any "
        "run `truepair analyse RUN`",
        "Fig. 5": "figure `disncl-5`; of any run `truepair analyse RUN`",
        "Fig. 6": "figures `disncl-6a`, `disncl-6b`, of the table `disncl`: `--disncl-disentangler fdmer`, "
        "`--disncl-disentangler mvib`, `--disncl-disentangler dmim`",
    },
)
