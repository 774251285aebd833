"""The two sides of pairs as unit vectors of a trained model's space."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import normalize

from truepair.data.pairs import Pairs
from truepair.device import resolve_device
from truepair.engines.retrieval_model import RetrievalModel, evaluating
from truepair.errors import InputError


@dataclass(frozen=True)
class Vectors:
    """Unit rows: `images` (images, D) and `texts` (texts, D), float32 on the CPU."""

    images: Tensor
    texts: Tensor


def encode(model: RetrievalModel, pairs: Pairs, *, device: str = "auto") -> Vectors:
    """Every image and every text of `pairs` as a vector.

    Several views of an image (UGNCL) or several networks (dual GSC) become one long vector, whose cosine is the mean of
    theirs.

    Raises:
        InputError: the model takes other features, or compares regions with words and has no vector of an item.
    """
    model.to(resolve_device(device))
    model.preparation.check(pairs)
    with evaluating(model.engine):
        images = model.encode_images(pairs, np.arange(len(pairs.images)))
        texts = model.encode_texts(pairs, np.arange(len(pairs.texts)))
    if not gives_vectors(images, texts):
        raise InputError(f"{pairs.name}: this model compares regions with words and has no vector of an item")
    views = max(len(as_views(images)), len(as_views(texts)))
    return Vectors(*(one_vector(as_views(side), views) for side in (images, texts)))


def has_vectors(model: RetrievalModel, pairs: Pairs, *, device: str = "auto") -> bool:
    """Whether the model has a vector of an item: a global engine does, a local one (SGR, SAF) does not.

    Raises:
        InputError: the model takes other features.
    """
    model.to(resolve_device(device))
    model.preparation.check(pairs)
    first = np.zeros(1, dtype=np.int64)
    with evaluating(model.engine):
        return gives_vectors(model.encode_images(pairs, first), model.encode_texts(pairs, first))


def as_views(encoded: Any) -> tuple[Any, ...]:
    return encoded if isinstance(encoded, tuple) else (encoded,)


def gives_vectors(*sides: Any) -> bool:
    return all(isinstance(view, Tensor) and view.ndim == 2 for side in sides for view in as_views(side))


def one_vector(views: tuple[Tensor, ...], count: int) -> Tensor:
    """The views side by side; a single one repeated, so that it meets each view of the other side."""
    repeated = views if len(views) == count else views * count
    return normalize(torch.cat([view.float() for view in repeated], dim=1), dim=1).cpu()
