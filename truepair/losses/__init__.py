"""Pure functions: a batch's similarity matrix (and labels) → one loss per pair. Reduction is the training loop's."""

from truepair.losses.complementary import active_complementary, robust_complementary
from truepair.losses.info_nce import info_nce
from truepair.losses.ranking import hinge_ranking

__all__ = ["active_complementary", "hinge_ranking", "info_nce", "robust_complementary"]
