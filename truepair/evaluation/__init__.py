"""Figures of merit: ranks and recall of retrieval, and how well mismatched pairs are found."""

from truepair.evaluation.detection import detection
from truepair.evaluation.division import division_record
from truepair.evaluation.evaluate import evaluate
from truepair.evaluation.ranks import UNDESCRIBED, ranks, ranks_from_blocks
from truepair.evaluation.retrieval import (
    Fold,
    fold_recall,
    folds_of,
    mean_over_folds,
    recall,
    recall_from_ranks,
)

__all__ = [
    "UNDESCRIBED",
    "Fold",
    "detection",
    "division_record",
    "evaluate",
    "fold_recall",
    "folds_of",
    "mean_over_folds",
    "ranks",
    "ranks_from_blocks",
    "recall",
    "recall_from_ranks",
]
