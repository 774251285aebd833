"""What is believed about each pair, from one batch or one epoch, and the memory that keeps it."""

from truepair.correspondence.memory import CorrespondenceMemory
from truepair.correspondence.mixture import Mixture, fit_mixture
from truepair.correspondence.opinions import (
    bidirectional,
    exponential_evidence,
    fuse_evidence,
    fuse_opinions,
    opinions,
    softplus_evidence,
)
from truepair.correspondence.probability import matching_probability, synthetic_probability
from truepair.correspondence.structure import intra_modal_similarity

__all__ = [
    "CorrespondenceMemory",
    "Mixture",
    "bidirectional",
    "exponential_evidence",
    "fit_mixture",
    "fuse_evidence",
    "fuse_opinions",
    "intra_modal_similarity",
    "matching_probability",
    "opinions",
    "softplus_evidence",
    "synthetic_probability",
]
