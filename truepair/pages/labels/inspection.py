"""`inspect_labels`: a finished run in, everything its page of labels says out.

What its model finds on a split needs the data it was trained on. Where these are gone, the reason is said instead.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from truepair.data.open import is_drawn, read_config
from truepair.data.pairs import Array, Images, IntArray, Pairs
from truepair.decisions.training import load_decided_splits
from truepair.engines.retrieval_model import RetrievalModel, evaluating
from truepair.errors import InputError
from truepair.evaluation.class_retrieval import ClassScores, LabelledItems, score_classes
from truepair.evaluation.label_correction import Record, confusion, label_record, mean_distribution
from truepair.pages.analysis.embedding import plane
from truepair.pages.labels.table import LabelTable, read_label_table
from truepair.seeding import generator
from truepair.training.fit import open_run
from truepair.training.held_out import check_held_out
from truepair.training.run_folder import RunFolder

Side = tuple[IntArray, IntArray]
"""Rows of images or of texts, and their classes."""

QUERIES, HITS = 5, 5
PLACED = 400  # images, and as many texts, in the plane
FEWEST_PLACED = 4


@dataclass(frozen=True)
class Answer:
    """A query and the items found for it, best first: row of an image or a text, its class, its similarity."""

    row: int
    label: int
    hits: list[tuple[int, int, float]]


@dataclass(frozen=True)
class Planes:
    """Places of images and texts, (n, 2) each; every plane has directions of its own.

    Attributes:
        image_labels, text_labels: (n,) classes of the images and of the texts.
        raw_images, raw_texts: of the features; None where there are none of use (texts that are words).
        learned_images, learned_texts: of the encodings, both in one plane; None for engines of many vectors an item.
    """

    image_labels: IntArray
    text_labels: IntArray
    raw_images: Array | None
    raw_texts: Array | None
    learned_images: Array | None
    learned_texts: Array | None


@dataclass(frozen=True)
class Trained:
    """Everything found on one split.

    Attributes:
        answers: `i2t` and `t2i` → examples.
        planes: None where the split has too few pairs.
    """

    pairs: Pairs
    scores: ClassScores
    answers: dict[str, list[Answer]]
    planes: Planes | None


def find_data(config: dict[str, Any], split: str, kept: Path | None = None) -> tuple[tuple[Images, Pairs] | None, str]:
    """The training images of a run and the pairs of a split, or None and the reason why they are not to be had.

    Args:
        kept: the decisions that the run keeps (`RunFolder.decisions`).
    """
    data = config.get("data")
    if data is None:
        return None, "the run was trained from Python and does not name its data"
    source = str(data["source"])
    if not is_drawn(source) and not Path(source).exists():
        return None, f"its data, {source}, are not there any more"
    try:
        splits = load_decided_splits(read_config(data), seed=config["training"]["seed"], kept=kept)
    except (InputError, TypeError) as error:
        return None, f"its data cannot be read any more ({error})"
    pairs: Pairs | None = getattr(splits, split)
    if pairs is None:
        return None, f"its data, {source}, have no split {split}"
    return (splits.train.images, pairs), ""


def examples(model: RetrievalModel, pairs: Pairs, items: LabelledItems, *, seed: int) -> dict[str, list[Answer]]:
    """Five queries each way, drawn at random, with the five items found first (UOT-RCL, figure 5)."""
    rng = generator(seed, "label examples")
    images = rng.permutation(len(items.images))[:QUERIES]
    texts = rng.permutation(len(items.texts))[:QUERIES]
    of_images = torch.cat(list(model.similarity_blocks(pairs, items.images[images], items.texts)))
    of_texts = torch.cat(list(model.similarity_blocks(pairs, items.images, items.texts[texts]))).T
    sides = (items.images, items.image_labels), (items.texts, items.text_labels)
    return {"i2t": answers(images, of_images, *sides), "t2i": answers(texts, of_texts, *reversed(sides))}


def answers(queries: IntArray, similarity: Tensor, asked: Side, found: Side) -> list[Answer]:
    """What is found first for some queries, by their similarity to every item, (queries, items)."""
    (rows, labels), (item_rows, item_labels) = asked, found
    all_answers = []
    for query, values in zip(queries, similarity.numpy(), strict=True):
        best = np.argsort(-values, kind="stable")[:HITS]
        hits = [(int(item_rows[item]), int(item_labels[item]), float(values[item])) for item in best]
        all_answers.append(Answer(int(rows[query]), int(labels[query]), hits))
    return all_answers


def planes(model: RetrievalModel, pairs: Pairs, items: LabelledItems, *, seed: int) -> Planes | None:
    """t-SNE of raw and of learned features of at most 400 images and texts, drawn at random (UOT-RCL, figure 7)."""
    rng = generator(seed, "placed items")
    images = np.sort(rng.permutation(len(items.images))[:PLACED])
    texts = np.sort(rng.permutation(len(items.texts))[:PLACED])
    if min(len(images), len(texts)) < FEWEST_PLACED:
        return None
    image_rows, text_rows = items.images[images], items.texts[texts]
    learned = [encodings(model, pairs, "image", image_rows), encodings(model, pairs, "text", text_rows)]
    together = None
    if all(side is not None for side in learned):
        together = places(np.concatenate([side for side in learned if side is not None]), seed)
    return Planes(
        items.image_labels[images],
        items.text_labels[texts],
        places(pairs.images.features[image_rows], seed),
        None if pairs.texts.features is None else places(pairs.texts.features[text_rows], seed),
        None if together is None else together[: len(images)],
        None if together is None else together[len(images) :],
    )


def places(features: Array, seed: int) -> Array | None:
    """Places in the plane of features (n, D), or of the mean regions of (n, R, D); None where D is 1."""
    rows = np.asarray(features, dtype=np.float64)
    rows = rows.mean(axis=1) if rows.ndim == 3 else rows
    return plane(rows, seed=seed) if rows.shape[1] > 1 else None


def encodings(model: RetrievalModel, pairs: Pairs, side: str, rows: IntArray) -> Array | None:
    """One vector an item, (n, D); None for engines that make several."""
    with evaluating(model.engine):
        joined = (model.encode_images if side == "image" else model.encode_texts)(pairs, rows)
    return joined.float().cpu().numpy() if isinstance(joined, Tensor) and joined.ndim == 2 else None


@dataclass(frozen=True)
class Inspection:
    """What a run made of its labels, and what its model finds.

    Attributes:
        name, method, split: of the run, and the split the model is looked at with.
        record: as `label_record`.
        wrong: `share` and standard `error` of the run's estimate of how many labels are wrong; None: it has none.
        against: what the rows of the next two are: `true` labels, or `given` ones where the truth is unknown.
        counts: (K, K) pairs by that label (row) and corrected label (column).
        heat: (K, K) mean corrected distribution by that label; NaN for classes without pairs.
        images: the training images, to show; None without data.
        trained: None without data.
        missing: why there are no data; empty where there are.
    """

    name: str
    method: str
    split: str
    table: LabelTable
    record: Record
    wrong: dict[str, float] | None
    against: str
    counts: IntArray
    heat: Array
    images: Images | None
    trained: Trained | None
    missing: str


def inspect_labels(
    run: Path,
    *,
    split: str = "test",
    device: torch.device | None = None,
    say: Callable[[str], None] = lambda text: None,
) -> Inspection:
    """What a finished run made of the class labels it was given.

    Args:
        run: folder of a finished run of a method that learns from class labels.
        split: train, dev or test, to retrieve in and to draw examples from.
        device: to encode on; None for the CPU.
        say: told what is done next.

    Raises:
        RunFolderError: there is no run, it is not finished, or a file of it is damaged.
        InputError: the run is of a method that knows no labels, or the data do not fit the model any more.
    """
    folder = RunFolder(run)
    table, config = read_label_table(folder), folder.read_config()
    say("data")
    data, missing = find_data(config, split, folder.decisions)
    images, trained = None, None
    if data is not None:
        images, pairs = data
        known = read_config(config["data"])
        check_held_out(run, pairs, known.source, split, known.reading)
        model, seed = open_run(run).model.to(device or torch.device("cpu")), config["training"]["seed"]
        say("retrieval")
        scores = score_classes(model, pairs)
        found = examples(model, pairs, scores.items, seed=seed)
        say("t-SNE")
        trained = Trained(pairs, scores, found, planes(model, pairs, scores.items, seed=seed))
    reference = table.given if table.truth is None else table.truth
    return Inspection(
        name=run.resolve().name,
        method=config["method"]["name"],
        split=split,
        table=table,
        record=label_record(table.given, table.distribution, table.truth),
        wrong=folder.read_result().get("wrong_label_share"),
        against="given" if table.truth is None else "true",
        counts=confusion(table.corrected, reference, len(table.classes)),
        heat=mean_distribution(table.distribution, reference),
        images=images,
        trained=trained,
        missing=missing,
    )
