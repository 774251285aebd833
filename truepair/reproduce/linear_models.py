"""Our method stopped before its first epoch: what the linear models of its first labels say of the pairs."""

from __future__ import annotations

import tempfile
from dataclasses import asdict
from pathlib import Path

from sklearn.metrics import roc_auc_score

from truepair.correspondence import CorrespondenceMemory
from truepair.correspondence.canonical import ROUNDS, HeldOutScores
from truepair.correspondence.mixture_proportion import estimate_share
from truepair.data.config import DataConfig
from truepair.data.pairs import BoolArray
from truepair.errors import InputError
from truepair.methods.base import EpochPosition
from truepair.methods.truepair.first_labels import DIVISIONS, PairVectors
from truepair.methods.truepair.method import TruePair
from truepair.methods.truepair.options import TruePairConfig
from truepair.reproduce.cells import Record
from truepair.training.config import TrainingConfig
from truepair.training.fit import fit
from truepair.training.jobs import Job, load_job
from truepair.training.setup import Setup

TWICE = 2 * DIVISIONS
"""Divisions into folds: twice as many as the method makes, so that two estimates of it are there."""


class Found(Exception):
    """Ends a training before its first epoch, and carries what was found."""

    def __init__(self, record: Record) -> None:
        super().__init__("the linear models were looked at")
        self.record = record


class LinearModelsAlone(TruePair):
    """Our method, that has seen all pairs and stops there.

    Args:
        mismatched: (N,) the truth, for the AUROC.
    """

    def __init__(self, config: TruePairConfig, mismatched: BoolArray) -> None:
        super().__init__(config)
        self.mismatched = mismatched

    def begin(self, position: EpochPosition, memory: CorrespondenceMemory) -> dict[str, float]:
        assert self.inputs is not None
        raise Found(measured(self.inputs, self.mismatched, self.config.temperature, position.batch_size))


def measured(inputs: PairVectors, mismatched: BoolArray, temperature: float, batch_size: int) -> Record:
    """Estimates of π by divisions, alone and five together; AUROC by rounds of weights, and of the means over divisions
    that labels are; whether these are taken.
    """
    labels = inputs.first_labels(temperature=temperature, batch_size=batch_size)
    judged, copies, models = inputs.held_out_models(temperature)
    if labels is None or models is None:
        raise InputError("the linear models need more images, or images and captions that differ")
    each = [division.first for division in models.divided(TWICE)]
    parts = [HeldOutScores.together(each[start : start + DIVISIONS]) for start in range(0, TWICE, DIVISIONS)]
    share, matched = labels.estimate.share, ~mismatched[judged]
    return {
        "pairs": len(mismatched),
        "mismatch_rate": float(mismatched.mean()),
        "ridge": models.ridge,
        "alone": [asdict(estimate_share(one.given, one.synthetic, times=copies)) for one in each],
        "together": [asdict(estimate_share(part.given, part.synthetic, times=DIVISIONS * copies)) for part in parts],
        "auroc": [roc_auc_score(matched, models.cleaned(share, rounds).given) for rounds in range(ROUNDS + 1)],
        "auroc_of_means": roc_auc_score(matched, labels.odds.numpy()[judged]),
        "recall": labels.recall,
        "taken": labels.better,
    }


def look(data: DataConfig, seed: int) -> Record:
    """What is found in the training pairs, as the global engine is fed with them.

    Args:
        seed: of the synthetic mismatches and of the order of the pairs.

    Raises:
        InputError: nobody knows which pairs match, or the linear models have too little to tell.
    """
    splits, setup = load_job(Job(data, setup=Setup(TrainingConfig(seed=seed))))
    mismatched = splits.train.mismatched
    if mismatched is None or not mismatched.any():
        raise InputError(f"{splits.train.name}: no pairs are known to be mismatched; make some with --noise")
    with tempfile.TemporaryDirectory() as out:
        try:
            method = LinearModelsAlone(TruePairConfig(), mismatched)
            fit(splits.train, method=method, out=Path(out) / "run", setup=setup, progress=False)
        except Found as found:
            return found.record
    raise AssertionError("a survey comes before the first epoch, and ends the training")
