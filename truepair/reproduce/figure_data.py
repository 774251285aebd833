"""What figures show of a trained network: agreement of its pairs (GSC, Fig. 2), uncertainty of queries (UGNCL, Fig. 3).

Histograms by the end of training (GSC, Fig. 5b–d; CRCL, Fig. 1) are of `pairs.parquet`; `truepair report` draws them.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from truepair.correspondence.opinions import fuse_evidence, opinions
from truepair.correspondence.structure import intra_modal_similarity
from truepair.data.batch import EpochBatches
from truepair.data.noise import inject_noise
from truepair.data.open import load
from truepair.data.pairs import Pairs
from truepair.engines.retrieval_model import evaluating
from truepair.errors import InputError
from truepair.methods import build_method
from truepair.methods.base import Forward
from truepair.reproduce.cells import Cell, Context, Places, Record
from truepair.training.fit import Run, open_run

Array = npt.NDArray[Any]
BATCH = 128
"""Pairs among which each is compared, as in training."""
BINS = 40


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


def histogram(values: Array, parts: dict[str, Array]) -> Record:
    """Counts of the values of each part, (N,) bool, in 40 bins of equal width over the range of all."""
    edges = np.linspace(float(values.min()), float(values.max()), BINS + 1)
    counts = {name: np.histogram(values[part], edges)[0].tolist() for name, part in parts.items()}
    means = {name: float(values[part].mean()) if part.any() else None for name, part in parts.items()}
    return {"low": edges[0].item(), "high": edges[-1].item(), "counts": counts, "means": means}


def figure_cells(at: Context, *, name: str, figure: str, data: str, run: str, noise: float) -> Iterator[Cell]:
    """The data of a figure, of the run of another cell (`TABLE/NAME`): `agreement` or `uncertainty`."""
    facts = {"data": data, "method": name, "noise": noise, "seed": 0, "run": run}
    command = f"python -m truepair.reproduce run {at.table} --methods {name}"
    yield Cell(name, facts, command, partial(measure_figure, at, figure, data, run, noise))


def measure_figure(at: Context, figure: str, data: str, run: str, noise: float, places: Places) -> Record:
    from sklearn.metrics import roc_auc_score

    trained, source = open_run(at.trained(run, places).path), places.source(data)
    if figure == "agreement":
        pairs = inject_noise(load(source), noise, seed=0)
        values, wrong = agreement(trained, pairs), pairs.mismatched
        assert wrong is not None
        parts = {"matched": ~wrong, "mismatched": wrong}
    else:
        values = query_uncertainty(trained, load(source, "test"))
        wrong = ~values.pop("right")
        parts = {"right": ~wrong, "wrong": wrong}
    return {
        "figure": {
            field: {**histogram(found, parts), "auroc": float(roc_auc_score(wrong, found))}
            for field, found in values.items()
        }
    }
