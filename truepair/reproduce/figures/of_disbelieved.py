"""A figure of what our own method makes of the pairs it disbelieves: where their captions find their images."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch

from truepair.data.open import with_encoder
from truepair.data.pairs import Array, BoolArray, IntArray, Pairs
from truepair.decisions.training import load_decided_splits
from truepair.engines.retrieval_model import RetrievalModel
from truepair.errors import InputError, RunFolderError
from truepair.evaluation.ranks import ranks_from_blocks
from truepair.files import read_tensors
from truepair.pages.kit.canvas import COLUMN, DPI, RUN_COLOURS, SOFT, legend_above, styled
from truepair.reproduce.figures.drawn import Drawn
from truepair.training.fit import open_run
from truepair.training.jobs import read_job
from truepair.training.pair_table import read_pair_table
from truepair.training.run_folder import RunFolder

DASHES = ("solid", (0, (4, 1.5)), (0, (1, 1)), (0, (4, 1.5, 1, 1.5)))
POINTS = 60
"""Ranks at which a curve is drawn, at equal distances on a logarithmic axis."""

TEACHER = "auxiliary/before.0."
"""The average that the stage before the last one has left, among the tensors of a checkpoint."""


def ranks_of_disbelieved(runs: Mapping[str, RunFolder], *, source: str) -> Drawn:
    """The ranks of the true and of the given image for the captions of the disbelieved pairs, as cumulative curves.

    Candidates are all images of the training pairs; of equals the asked one counts as last. Which pairs are disbelieved
    says the first run at its end, which is of our own method: its teacher and its model are drawn, and the models of
    the other runs.

    Args:
        runs: title → run, all on the same pairs with known noise.
        source: the data they were trained on, as it lies here.

    Raises:
        InputError: the truth is not known, no pair is disbelieved, or the runs are of different pairs.
        RunFolderError: the first run has no teacher.
    """
    (title, ours), *others = runs.items()
    pairs = training_pairs([*runs.values()], source)
    mismatched = pairs.mismatched
    table = read_pair_table(ours.pairs, ["division"])
    disbelieved = table["division"].to_numpy(zero_copy_only=False) == "noisy"
    if mismatched is None or not disbelieved.any():
        raise InputError(f"{ours.path}: the truth is not known, or no pair is disbelieved; there is nothing to draw")
    asked = {
        "mismatched pairs: rank of the true image": (disbelieved & mismatched, pairs.true_image),
        "mismatched pairs: rank of the given image": (disbelieved & mismatched, pairs.image_index),
        "matched pairs: rank of their image": (disbelieved & ~mismatched, pairs.image_index),
    }
    models = {f"{title}, teacher": teacher_of(ours), f"{title}, final": open_run(ours.path).model}
    models |= {name: open_run(run.path).model for name, run in others}
    found = {
        name: {axis: image_ranks(model, pairs, of, images) for axis, (of, images) in asked.items() if of.any()}
        for name, model in models.items()
    }
    candidates = len(np.unique(pairs.image_index))
    counts = {"disbelieved": int(disbelieved.sum()), "mismatched": int((disbelieved & mismatched).sum())}
    return drawn_ranks(found, candidates, {**counts, "mismatched of all": int(mismatched.sum()), "of": len(pairs)})


def training_pairs(runs: Sequence[RunFolder], source: str) -> Pairs:
    """The pairs that the runs were trained on, with the truth; an InputError where some are of others."""
    job, _ = read_job(runs[0].path)
    data = with_encoder(replace(job.data, source=source))
    pairs = load_decided_splits(data, seed=job.setup.training.seed, kept=runs[0].decisions).train
    for run in runs:
        table = read_pair_table(run.pairs, ["image_index", "text_index"])
        for column, own in (("image_index", pairs.image_index), ("text_index", pairs.text_index)):
            if not np.array_equal(table[column].to_numpy(), own):
                raise InputError(f"{run.path} was trained on other pairs than {runs[0].path}, or than {source} has now")
    return pairs


def teacher_of(run: RunFolder) -> RetrievalModel:
    """Of the networks that taught the last stage of a run of our own method, the latest; from its last checkpoint."""
    tensors, _ = read_tensors(run.checkpoint, "the last checkpoint of a run", error=RunFolderError)
    weights = {name.removeprefix(TEACHER): value for name, value in tensors.items() if name.startswith(TEACHER)}
    if not weights:
        raise RunFolderError(f"{run.checkpoint} holds no teacher; name a run of our own method first")
    model = open_run(run.path).model
    model.engine.load_state_dict(weights)
    return model


def image_ranks(model: RetrievalModel, pairs: Pairs, of: BoolArray, images: IntArray | None) -> IntArray:
    """Rank from 1 of one image, that of `images`, for the caption of each pair of a choice among all images in pairs.

    Args:
        of: (N,) the pairs that are asked about.
        images: (N,) an image of every pair.
    """
    assert images is not None
    candidates = np.unique(np.append(pairs.image_index, images[of]))
    blocks = model.similarity_blocks(pairs, candidates, pairs.text_index[of])
    own = torch.from_numpy(np.searchsorted(candidates, images[of]))
    return np.asarray(ranks_from_blocks(lambda: blocks, own)[1].numpy() + 1)


def drawn_ranks(found: Mapping[str, Mapping[str, IntArray]], candidates: int, counts: dict[str, int]) -> Drawn:
    """A panel a question, a curve a model: the share of pairs whose rank is at most so large.

    Args:
        found: model → question → ranks from 1.
        candidates: images among which was ranked; the grey line is what chance gives.
        counts: of the pairs; kept with the numbers.
    """
    from matplotlib.figure import Figure

    ranks = np.unique(np.geomspace(1, candidates, POINTS).round().astype(int))
    axes_of = list(next(iter(found.values())))
    numbers: dict[str, Any] = {"pairs": counts, "candidates": candidates, "ranks": ranks.tolist()}
    with styled():
        figure = Figure(figsize=(COLUMN[0] * 0.8 * len(axes_of), COLUMN[1]), dpi=DPI, layout="constrained")
        panels = figure.subplots(1, len(axes_of), sharey=True, squeeze=False)[0]
        for axes, question in zip(panels, axes_of, strict=True):
            axes.plot(ranks, 100 * ranks / candidates, color=SOFT, linewidth=0.7)
            handles = []
            for number, (name, of_model) in enumerate(found.items()):
                curve = cumulative(of_model[question], ranks)
                look = {"color": RUN_COLOURS[number % len(RUN_COLOURS)], "linestyle": DASHES[number % len(DASHES)]}
                handles += axes.plot(ranks, curve, label=name, **look)
                summary = {"median": float(np.median(of_model[question])), "at most": curve.round(3).tolist()}
                firsts = {f"first {k}": round(100 * float((of_model[question] <= k).mean()), 2) for k in (1, 5, 10)}
                numbers.setdefault(question, {})[name] = {"pairs": len(of_model[question]), **firsts, **summary}
            axes.set(xscale="log", xlabel=question.replace(": ", "\n"))
            axes.grid(axis="y")
        panels[0].set_ylabel("captions with at most this rank (%)")
        legend_above(figure, handles)
    return Drawn(figure, numbers)


def cumulative(values: IntArray, ranks: IntArray) -> Array:
    """How many percent of the values are at most each rank."""
    return 100 * np.searchsorted(np.sort(values), ranks, side="right") / len(values)
