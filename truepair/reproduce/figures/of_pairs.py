"""Figures of how a trained network sees pairs: agreement (GSC, Fig. 2), uncertainty of queries (UGNCL, Fig. 3)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import torch

from truepair.correspondence.opinions import fuse_evidence, opinions
from truepair.correspondence.structure import intra_modal_similarity
from truepair.data.batch import EpochBatches
from truepair.data.noise import inject_noise
from truepair.data.open import load
from truepair.data.pairs import Array, Pairs
from truepair.engines.retrieval_model import evaluating
from truepair.errors import InputError
from truepair.methods import build_method
from truepair.methods.base import Forward
from truepair.reproduce.figures.drawn import Drawn
from truepair.reproduce.figures.from_runs import distributions
from truepair.training.fit import Run, open_run
from truepair.training.run_folder import RunFolder

BATCH = 128
"""Pairs among which each is compared, as in training."""


def agreements(runs: Mapping[str, RunFolder], *, source: str, noise: float) -> Drawn:
    """How well the training pairs of a source agree, with a share of noise that no run was trained on: a row a run."""
    pairs = inject_noise(load(source), noise, seed=0)
    assert pairs.mismatched is not None
    found = {title: agreement(open_run(run.path), pairs) for title, run in runs.items()}
    names = {"similarity": "similarity across the modalities", "structure": "similarity of the structures within them"}
    rows = {title: {axis: values[name] for name, axis in names.items()} for title, values in found.items()}
    said = {"matched": "matched pairs", "mismatched": "mismatched pairs"}
    return distributions(rows, dict.fromkeys(rows, pairs.mismatched), said, "share of pairs (%)")


def queries(runs: Mapping[str, RunFolder], *, source: str) -> Drawn:
    """Uncertainty of the images and texts of the test split as queries, where they find their partner and where not."""
    pairs = load(source, "test")
    found = {title: query_uncertainty(open_run(run.path), pairs) for title, run in runs.items()}
    names = {"uncertainty": "uncertainty u", "similarity": "similarity of what is found"}
    rows = {title: {axis: values[name] for name, axis in names.items()} for title, values in found.items()}
    said = {"matched": "partner found first", "mismatched": "another found first"}
    wrong = {title: ~values["right"] for title, values in found.items()}
    return distributions(rows, wrong, said, "share of queries (%)")


def agreement(run: Run, pairs: Pairs) -> dict[str, Array]:
    """`similarity` S_ii and `structure` S_IM of every pair among random batches of 128, (N,) each (GSC, Fig. 2).

    Every label counts as 1. Of several networks it is the mean.
    """
    found = {name: np.zeros(len(pairs), dtype=np.float32) for name in ("similarity", "structure")}
    for forward in forwards(run, pairs):
        ids, ones = forward.batch.ids.numpy(), torch.ones(len(forward.batch.ids))
        found["similarity"][ids] = forward.similarity.diagonal().numpy()
        within = [
            intra_modal_similarity(network.image_similarity, network.text_similarity, ones)
            for network in forward.networks
        ]
        found["structure"][ids] = torch.stack(within).mean(dim=0).numpy()
    return found


def query_uncertainty(run: Run, pairs: Pairs) -> dict[str, Array]:
    """u of every image and every text as a query among random batches of 128 pairs, and what it finds (UGNCL, Fig. 3).

    Evidence of one direction, fused over the views (eq. 3, 6, 7): `uncertainty` (2N,), the images first; `right`, bool:
    the own partner is the most similar one of the batch; `similarity` of that one.

    Raises:
        InputError: the run is not of UGNCL.
    """
    described = run.folder.read_config()["method"]
    if described["name"] != "ugncl":
        raise InputError(f"{run.path}: uncertainty is UGNCL's, and the run is of {described['name']}")
    method: Any = build_method("ugncl", described["options"])
    found = {name: np.zeros(2 * len(pairs), dtype=np.float32) for name in ("uncertainty", "right", "similarity")}
    for forward in forwards(run, pairs):
        evidence, similarity = method.evidence(forward.networks[0]), forward.similarity
        ids = forward.batch.ids.numpy()
        for side, views, scores in (
            (ids, evidence, similarity),
            (ids + len(pairs), [view.T for view in evidence], similarity.T),
        ):
            best = scores.max(dim=1)
            found["uncertainty"][side] = opinions(fuse_evidence(*views))[1].numpy()
            found["right"][side] = best.indices.numpy() == np.arange(len(ids))
            found["similarity"][side] = best.values.numpy()
    return {**found, "right": found["right"] > 0}


def forwards(run: Run, pairs: Pairs) -> Iterator[Forward]:
    """All pairs once through the best model of a run, unaltered, in random batches.

    Raises:
        InputError: the model does not read such pairs.
    """
    model = run.model
    model.preparation.check(pairs)
    place = (0, 0, 0)
    batches = EpochBatches(pairs, model.preparation, batch_size=BATCH, position=place, order="figure", augmented=False)
    with torch.no_grad(), evaluating(model.engine):
        for batch in batches.loader(first=0, workers=0):
            yield Forward(model.engine, batch)
