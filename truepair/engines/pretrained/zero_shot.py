"""A pretrained model as it is, without any training: what `truepair evaluate FOLDER` scores (zero-shot)."""

from __future__ import annotations

from pathlib import Path

from truepair.engines.pretrained.config import PretrainedConfig
from truepair.engines.pretrained.preparation import PixelsAndTokens
from truepair.engines.retrieval_model import RetrievalModel, new_model
from truepair.seeding import torch_seeded


def zero_shot(folder: Path) -> RetrievalModel:
    """The model of a folder of transformers; similarity is the cosine of its own vectors.

    Raises:
        InputError: it is none of a model of images and texts, or a file is missing or damaged.
    """
    config = PretrainedConfig(encoder=str(folder))
    with torch_seeded(0, "zero-shot"):  # the heads are the identity; the caller's generator stays as it is
        return new_model(config, PixelsAndTokens.of(config))
