"""`RetrievalModel`: an engine with the vocabulary it reads; what a finished run hands out."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from truepair.data.loading import image_batches, text_batches
from truepair.data.pairs import IntArray, Pairs
from truepair.data.text import Vocabulary
from truepair.errors import InputError
from truepair.files import write_bytes_atomically
from truepair.models.config import GlobalConfig
from truepair.models.global_engine import GlobalEngine
from truepair.models.similarity import SimilarityEngine, similarity_blocks
from truepair.seeding import torch_seeded

ENCODING_BATCH = 256


class RetrievalModel:
    """An engine and its vocabulary: encodes the two sides of any `Pairs` and scores them against each other.

    Args:
        engine: the similarity engine.
        vocabulary: word → id, as the engine was trained with.
        feature_width: width of the region features the engine takes.
    """

    def __init__(self, engine: SimilarityEngine[Any], vocabulary: Vocabulary, feature_width: int) -> None:
        self.engine = engine
        self.vocabulary = vocabulary
        self.feature_width = feature_width

    @property
    def device(self) -> torch.device:
        return next(self.engine.parameters()).device

    def similarity_blocks(
        self, pairs: Pairs, image_rows: IntArray, text_rows: IntArray, *, memory_bytes: int = 256 << 20
    ) -> SimilarityBlocks:
        """The similarity matrix of some images (rows) to some texts (columns), to be iterated in blocks of rows.

        Raises:
            InputError: the features have another width than the engine takes.
        """
        if pairs.images.feature_width != self.feature_width:
            raise InputError(
                f"{pairs.name}: features are {pairs.images.feature_width} wide, this model takes {self.feature_width}; "
                "evaluate it on features made the same way as its training data"
            )
        with evaluating(self.engine):
            images = self._encode_images(pairs, image_rows)
            texts = self._encode_texts(pairs, text_rows)
        return SimilarityBlocks(self.engine, images, len(image_rows), texts, memory_bytes)

    def similarity(self, pairs: Pairs) -> Tensor:
        """Similarity of every image to every text of `pairs`, (images, texts), on the CPU."""
        return torch.cat(list(self.similarity_blocks(pairs, np.arange(len(pairs.images)), np.arange(len(pairs.texts)))))

    @torch.inference_mode()
    def _encode_images(self, pairs: Pairs, rows: IntArray) -> Any:
        batches = image_batches(pairs.images, rows, ENCODING_BATCH)
        return self.engine.concatenate([self.engine.encode_images(batch.to(self.device)) for batch in batches])

    @torch.inference_mode()
    def _encode_texts(self, pairs: Pairs, rows: IntArray) -> Any:
        captions = [self.vocabulary.encode(pairs.texts.captions[row]) for row in rows]
        batches = text_batches(captions, ENCODING_BATCH)
        return self.engine.concatenate([self.engine.encode_texts(batch.to(self.device)) for batch in batches])


class SimilarityBlocks:
    """A similarity matrix that is computed again, block of rows by block of rows, every time it is iterated."""

    def __init__(self, engine: SimilarityEngine[Any], images: Any, count: int, texts: Any, memory_bytes: int) -> None:
        self._arguments = (engine, images, count, texts)
        self._memory_bytes = memory_bytes

    def __iter__(self) -> Iterator[Tensor]:
        engine, images, count, texts = self._arguments
        with evaluating(engine):
            for block in similarity_blocks(engine, images, count, texts, memory_bytes=self._memory_bytes):
                yield block.float().cpu()


@contextmanager
def evaluating(engine: torch.nn.Module) -> Iterator[None]:
    """Evaluation mode within the block, the mode before after it."""
    mode = engine.training
    engine.eval()
    try:
        yield
    finally:
        engine.train(mode)


def build_engine(feature_width: int, vocabulary_size: int, config: GlobalConfig) -> SimilarityEngine[Any]:
    """A newly initialised engine of the given configuration."""
    return GlobalEngine(feature_width, vocabulary_size, config)


def save_model(path: Path, model: RetrievalModel, config: GlobalConfig) -> None:
    """Write weights and sizes to one `.safetensors` file, atomically (the vocabulary stands beside it)."""
    from safetensors.torch import save

    sizes = {"feature_width": model.feature_width, "words": model.vocabulary.digest, **asdict(config)}
    tensors = {name: tensor.contiguous().cpu() for name, tensor in model.engine.state_dict().items()}
    write_bytes_atomically(path, save(tensors, metadata={"truepair": json.dumps(sizes)}))


def load_model(path: Path, vocabulary: Vocabulary) -> RetrievalModel:
    """The model of a file that `save_model` wrote.

    Raises:
        InputError: not such a file, or made with another vocabulary.
    """
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, framework="pt") as file:
            metadata = file.metadata() or {}
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (not a dict)
        sizes = json.loads(metadata["truepair"])
        feature_width, words = sizes.pop("feature_width"), sizes.pop("words")
        config = GlobalConfig(**sizes)
    except FileNotFoundError as error:
        raise InputError(f"{path}: not found; is the run finished?") from error
    except (SafetensorError, KeyError, TypeError, json.JSONDecodeError) as error:
        raise InputError(f"{path}: not a model written by truepair ({error})") from error
    if words != vocabulary.digest:
        raise InputError(f"{path}: made for another vocabulary than the one given; use the vocabulary.json of its run")
    with torch_seeded(0, "load"):  # the values drawn here are replaced at once; the caller's generator stays as it is
        engine = build_engine(feature_width, len(vocabulary), config)
    try:
        engine.load_state_dict(tensors)
    except RuntimeError as error:
        raise InputError(f"{path}: its tensors do not fit its sizes ({error}); restore it from a copy") from error
    engine.eval()
    return RetrievalModel(engine, vocabulary, feature_width)
