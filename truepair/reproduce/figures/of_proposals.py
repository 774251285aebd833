"""A figure of how right it would be to put disbelieved pairs together again: the partners that a teacher proposes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch

from truepair.data.pairs import Array, BoolArray, IntArray, Pairs
from truepair.engines.retrieval_model import RetrievalModel
from truepair.errors import InputError
from truepair.pages.kit.canvas import DASHES, RUN_COLOURS, empty_figure, legend_above, styled
from truepair.reproduce.figures.drawn import Drawn
from truepair.reproduce.figures.of_disbelieved import teacher_of, training_pairs
from truepair.training.jobs import read_job
from truepair.training.pair_table import read_pair_table
from truepair.training.run_folder import RunFolder

SHARES = (0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0)
"""Of the proposals, the surest first."""


def precision_of_proposals(runs: Mapping[str, RunFolder], *, source: str) -> Drawn:
    """How many of the surest proposals of a teacher are right, and how many it expects to be: the mean of its p.

    For the image of each disbelieved pair the teacher of a run of our own method proposes the caption that it finds
    most probable among those of all disbelieved pairs but the ones that came with this image.

    Args:
        runs: title → run, one with known noise.
        source: the data it was trained on, as it lies here.

    Raises:
        InputError: the truth is not known, or fewer than two pairs are disbelieved.
        RunFolderError: the run has no teacher.
    """
    (run,) = runs.values()
    pairs = training_pairs([run], source)
    disbelieved = read_pair_table(run.pairs, ["division"])["division"].to_numpy(zero_copy_only=False) == "noisy"
    if pairs.true_image is None or disbelieved.sum() < 2:
        raise InputError(f"{run.path}: the truth is not known, or no pairs are disbelieved; there is nothing to draw")
    temperature = float(read_job(run.path)[0].method_options["temperature"])
    probability, caption = proposals(teacher_of(run), pairs, disbelieved, temperature)
    pool = np.flatnonzero(disbelieved)
    right = pairs.true_image[pool[caption]] == pairs.image_index[pool]
    return drawn_precision(probability, right, {"disbelieved": len(pool), "of": len(pairs)})


def proposals(
    model: RetrievalModel, pairs: Pairs, disbelieved: BoolArray, temperature: float
) -> tuple[Array, IntArray]:
    """For the image of each of the P disbelieved pairs: the largest probability of a caption, and whose caption it is.

    Softmax over the captions of the disbelieved pairs, without those that came with the same image. A block of images
    at a time.

    Returns:
        (P,) float in [0, 1], and (P,) int64 places among the disbelieved pairs.
    """
    images, texts = pairs.image_index[disbelieved], pairs.text_index[disbelieved]
    given, found, start = torch.from_numpy(images), [], 0
    for block in model.similarity_blocks(pairs, images, texts):
        same = given[start : start + len(block), None] == given[None, :]
        found.append(torch.softmax((block / temperature).masked_fill(same, -torch.inf).nan_to_num(), dim=1).max(dim=1))
        start += len(block)
    return torch.cat([best.values for best in found]).numpy(), torch.cat([best.indices for best in found]).numpy()


def drawn_precision(probability: Array, right: BoolArray, counts: dict[str, int]) -> Drawn:
    """Two curves over the share of proposals used, the surest first: how many are right, and the mean probability."""
    order = np.argsort(-probability, kind="stable")
    kept = [max(1, round(share * len(order))) for share in SHARES]
    curves: dict[str, list[float]] = {
        "right": [round(100 * float(right[order[:count]].mean()), 2) for count in kept],
        "expected by the teacher": [round(100 * float(probability[order[:count]].mean()), 2) for count in kept],
    }
    handles: list[Any] = []
    with styled():
        figure, axes = empty_figure("proposals used, the surest first (%)", "proposals (%)")
        for (name, curve), colour, dashes in zip(curves.items(), RUN_COLOURS, DASHES.values(), strict=False):
            handles += axes.plot(100 * np.array(SHARES), curve, color=colour, linestyle=dashes, marker="o", label=name)
        axes.set(xscale="log", ylim=(0, 100))
        legend_above(figure, handles)
    surest = [round(float(probability[order[count - 1]]), 4) for count in kept]
    shown = {"share": list(SHARES), "proposals": kept, "least probability": surest, **curves}
    return Drawn(figure, {"pairs": counts, **shown})
