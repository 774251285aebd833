"""The two sides of pairs as unit vectors of a trained model's space."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import normalize

from truepair.data.pairs import IntArray, Pairs
from truepair.device import resolve_device
from truepair.engines.retrieval_model import RetrievalModel, evaluating
from truepair.errors import InputError


class Vectors(NamedTuple):
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
    sides = views_of(model, pairs, np.arange(len(pairs.images)), np.arange(len(pairs.texts)), device)
    if not are_vectors(sides):
        raise InputError(f"{pairs.name}: this model compares regions with words and has no vector of an item")
    count = max(map(len, sides))
    images, texts = (views if len(views) == count else views * count for views in sides)  # each meets each view
    return Vectors(one_vector(images), one_vector(texts))


def has_vectors(model: RetrievalModel, pairs: Pairs, *, device: str = "auto") -> bool:
    """Whether the model has a vector of an item: a global engine does, a local one (SGR, SAF) does not."""
    first = np.zeros(1, dtype=np.int64)
    return are_vectors(views_of(model, pairs, first, first, device))


def views_of(
    model: RetrievalModel, pairs: Pairs, images: IntArray, texts: IntArray, device: str
) -> list[tuple[Any, ...]]:
    """The encoded views of some images, and those of some texts."""
    model.to(resolve_device(device))
    model.preparation.check(pairs)
    with evaluating(model.engine):
        sides = model.encode_images(pairs, images), model.encode_texts(pairs, texts)
    return [side if isinstance(side, tuple) else (side,) for side in sides]


def are_vectors(sides: list[tuple[Any, ...]]) -> bool:
    return all(isinstance(view, Tensor) and view.ndim == 2 for views in sides for view in views)


def one_vector(views: tuple[Tensor, ...]) -> Tensor:
    return normalize(torch.cat([view.float() for view in views], dim=1), dim=1).cpu()
