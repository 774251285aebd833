"""What is analysed: a finished DisNCL run, pairs it is looked at with, and the parts it makes of them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from truepair.data.config import Reading
from truepair.data.open import format_of, load
from truepair.data.pairs import IntArray, Pairs
from truepair.engines.retrieval_model import RetrievalModel
from truepair.errors import InputError
from truepair.evaluation.subspaces import EncodedParts, encode_parts
from truepair.training.fit import Run, open_run
from truepair.training.jobs import reading_of_run

METHOD = "disncl"


@dataclass(frozen=True)
class Subject:
    """A run with its model and its configuration."""

    name: str
    run: Run
    model: RetrievalModel
    config: dict[str, Any]

    @property
    def options(self) -> dict[str, Any]:
        """Those of the method."""
        options: dict[str, Any] = self.config["method"]["options"]
        return options


@dataclass(frozen=True)
class Split:
    """Pairs, and what one run makes of their images (a row an image) and texts (a row a caption)."""

    pairs: Pairs
    images: EncodedParts
    texts: EncodedParts


@dataclass(frozen=True)
class Rows:
    """Image and text rows that belong together, (n,) each; every image stands in one of them at most."""

    images: IntArray
    texts: IntArray

    def __len__(self) -> int:
        return len(self.images)


def open_subject(path: Path, *, device: torch.device | None = None) -> Subject:
    """A finished run of `--method disncl`; any other is refused."""
    run = open_run(path)
    config = run.folder.read_config()
    method = (config.get("method") or {}).get("name")
    if method != METHOD:
        raise InputError(
            f"{path} was trained with --method {method}; only runs of --method {METHOD} have the subspaces that are "
            "analysed here"
        )
    model = run.model if device is None else run.model.to(device)
    return Subject(path.resolve().name, run, model, config)


def source_of(subject: Subject, data: str | None) -> str:
    """The data to look at the run with: what was asked for, else what it was trained on, where that is still there."""
    if data is not None:
        return data
    source = (subject.config.get("data") or {}).get("source")
    if source is None:
        raise InputError(f"{subject.run.path} was trained from Python and does not name its data; give --data DATA")
    try:
        format_of(source, reading_of_run(subject.run.path, source))
    except InputError as error:
        raise InputError(f"{subject.run.path} was trained on {source}, which is not there; give --data DATA") from error
    return str(source)


def load_analysed(source: str, split: str, reading: Reading) -> Pairs:
    """The pairs of a split, at least two, each text in exactly one of them, as retrieval asks."""
    pairs = load(source, split, reading=reading)
    if len(np.unique(pairs.image_of_text)) < 2:
        raise InputError(f"{pairs.name}: fewer than two images have a caption; there is nothing to compare")
    return pairs


def encoded(subject: Subject, pairs: Pairs) -> Split:
    """Raises InputError: the features do not fit the model."""
    return Split(pairs, *encode_parts(subject.model, pairs))


def one_caption_each(pairs: Pairs) -> Rows:
    """Every image that has a caption, with its first one, in the order of the images.

    Estimates treat rows as independent, which the captions of one image are not.
    """
    images, first = np.unique(pairs.image_index, return_index=True)
    return Rows(images, pairs.text_index[first])


def drawn_rows(rows: Rows, count: int, rng: np.random.Generator) -> Rows:
    """At most `count` of them, drawn at random."""
    chosen = rng.permutation(len(rows))[:count]
    return Rows(rows.images[chosen], rows.texts[chosen])
