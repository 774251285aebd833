"""Figures of merit: retrieval by pairs and by class, what was found of wrong pairs and labels, what two sides share."""

from truepair.evaluation.average_precision import average_precisions, mean_average_precision
from truepair.evaluation.class_retrieval import evaluate_classes, score_classes
from truepair.evaluation.detection import detection, division_record
from truepair.evaluation.evaluate import evaluate
from truepair.evaluation.gallery import gallery
from truepair.evaluation.label_correction import confusion, corrected_classes, label_record, mean_distribution
from truepair.evaluation.mutual_information import jensen_shannon_information, mine
from truepair.evaluation.ranks import UNDESCRIBED, ranks, ranks_from_blocks
from truepair.evaluation.recall_bound import RecallBound, bound_of_classes, recall_bounds
from truepair.evaluation.retrieval import Fold, fold_recall, folds_of, mean_over_folds, recall, recall_from_ranks
from truepair.evaluation.subspaces import encode_parts

__all__ = [
    "UNDESCRIBED",
    "Fold",
    "RecallBound",
    "average_precisions",
    "bound_of_classes",
    "confusion",
    "corrected_classes",
    "detection",
    "division_record",
    "encode_parts",
    "evaluate",
    "evaluate_classes",
    "fold_recall",
    "folds_of",
    "gallery",
    "jensen_shannon_information",
    "label_record",
    "mean_average_precision",
    "mean_distribution",
    "mean_over_folds",
    "mine",
    "ranks",
    "ranks_from_blocks",
    "recall",
    "recall_bounds",
    "recall_from_ranks",
    "score_classes",
]
