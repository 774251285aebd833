"""Figures of merit: recall of retrieval, how well mismatched pairs are found, and how much two sides share."""

from truepair.evaluation.detection import detection
from truepair.evaluation.division import division_record
from truepair.evaluation.evaluate import evaluate
from truepair.evaluation.mutual_information import jensen_shannon_information, mine
from truepair.evaluation.ranks import UNDESCRIBED, ranks, ranks_from_blocks
from truepair.evaluation.retrieval import (
    Fold,
    fold_recall,
    folds_of,
    mean_over_folds,
    recall,
    recall_from_ranks,
)
from truepair.evaluation.subspaces import EncodedParts, encode_parts

__all__ = [
    "UNDESCRIBED",
    "EncodedParts",
    "Fold",
    "detection",
    "division_record",
    "encode_parts",
    "evaluate",
    "fold_recall",
    "folds_of",
    "jensen_shannon_information",
    "mean_over_folds",
    "mine",
    "ranks",
    "ranks_from_blocks",
    "recall",
    "recall_from_ranks",
]
