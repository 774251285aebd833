"""What a model with subspaces (DisNCL) makes of pairs: features, and the invariant and the exclusive part of each."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import torch

from truepair.data.pairs import Pairs
from truepair.engines.retrieval_model import ENCODING_BATCH, RetrievalModel, evaluating
from truepair.engines.subspaces import Parts
from truepair.errors import InputError

EncodedParts = Parts
"""Of n items, float32 on the CPU: unit vectors; for region–word engines means of an item's own, which are shorter."""


def encode_parts(
    model: RetrievalModel, pairs: Pairs, *, batch_size: int = ENCODING_BATCH
) -> tuple[EncodedParts, EncodedParts]:
    """The parts of all images and of all texts of `pairs`, in the order of `pairs.images` and `pairs.texts`.

    Raises:
        InputError: the model has no subspaces, or the features another width than it takes.
    """
    if not model.needs.subspace_width:
        raise InputError(
            "this model has no subspaces: only runs of --method disncl part what both sides share from the rest"
        )
    engine: Any = model.engine
    model.preparation.check(pairs)
    images = model.image_batches(pairs, np.arange(len(pairs.images)), batch_size)
    texts = model.text_batches(pairs, np.arange(len(pairs.texts)), batch_size)
    with evaluating(engine), torch.inference_mode():
        return (
            joined(engine.split_images(batch)[1] for batch in images),
            joined(engine.split_texts(batch)[1] for batch in texts),
        )


def joined(batches: Iterable[Parts]) -> EncodedParts:
    found = [[side.float().cpu() for side in (part.features, part.invariant, part.exclusive)] for part in batches]
    return EncodedParts(*(torch.cat(side) for side in zip(*found, strict=True)))
