"""Pure functions: a batch's similarity matrix (and labels) → one loss per pair. Reduction is the training loop's."""

from truepair.losses.active_complementary import (
    active_complementary,
    complementary_contrastive,
    robust_complementary,
)
from truepair.losses.consistency import cross_modal_consistency, intra_modal_consistency
from truepair.losses.distillation import batch_distillation
from truepair.losses.evidential import evidential
from truepair.losses.info_nce import info_nce
from truepair.losses.information import jensen_shannon, reverse_gradient, unit_gaussian_divergence
from truepair.losses.ranking import hinge_ranking
from truepair.losses.robust_info_nce import robust_info_nce
from truepair.losses.soft_targets import reverse_cross_entropy, soft_alignment
from truepair.losses.trusted import hardness, printed_hardness, soft_margin, trusted_margin, trusted_ranking

__all__ = [
    "active_complementary",
    "batch_distillation",
    "complementary_contrastive",
    "cross_modal_consistency",
    "evidential",
    "hardness",
    "hinge_ranking",
    "info_nce",
    "intra_modal_consistency",
    "jensen_shannon",
    "printed_hardness",
    "reverse_cross_entropy",
    "reverse_gradient",
    "robust_complementary",
    "robust_info_nce",
    "soft_alignment",
    "soft_margin",
    "trusted_margin",
    "trusted_ranking",
    "unit_gaussian_divergence",
]
