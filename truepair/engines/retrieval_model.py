"""`RetrievalModel`: an engine with the vocabulary it reads; what a finished run hands out."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from truepair.data.loading import image_batches, text_batches
from truepair.data.pairs import IntArray, Pairs
from truepair.data.text import Vocabulary
from truepair.engines.config import MODELS, GlobalConfig, MLPConfig, ModelConfig, model_name
from truepair.engines.global_engine import GlobalEngine
from truepair.engines.similarity import ScoringEngine, SimilarityEngine, SingleViewEngine, similarity_blocks
from truepair.errors import InputError
from truepair.files import options_from, read_tensors, require_like, tensor_bytes, write_bytes_atomically
from truepair.seeding import torch_seeded

ENCODING_BATCH = 256

TEXTS_AT_ONCE = 1024
"""Texts that are compared with one image in one call of `cells`: what is copied of their encodings stays small."""


class RetrievalModel:
    """An engine and its vocabulary: encodes the two sides of any `Pairs` and scores them against each other.

    Args:
        engine: the similarity engine.
        vocabulary: word → id, as the engine was trained with.
        sizes: what the engine was built for.
    """

    def __init__(self, engine: SimilarityEngine[Any], vocabulary: Vocabulary, sizes: EngineSizes) -> None:
        self.engine = engine
        self.vocabulary = vocabulary
        self.sizes = sizes

    @property
    def device(self) -> torch.device:
        return next(self.engine.parameters()).device

    def to(self, device: torch.device) -> RetrievalModel:
        """This model, its engine moved to a device."""
        self.engine.to(device)
        return self

    def similarity_blocks(
        self, pairs: Pairs, image_rows: IntArray, text_rows: IntArray, *, memory_bytes: int = 256 << 20
    ) -> SimilarityBlocks:
        """The similarity matrix of some images (rows) to some texts (columns), to be iterated in blocks of rows.

        Raises:
            InputError: the features have another width than the engine takes.
        """
        self.check_features(pairs)
        with evaluating(self.engine):
            images = self.encode_images(pairs, image_rows)
            texts = self.encode_texts(pairs, text_rows)
        return SimilarityBlocks(self.engine, images, len(image_rows), texts, memory_bytes)

    def check_features(self, pairs: Pairs) -> None:
        """Refuse features that the engine does not take.

        Raises:
            InputError: they have another width, or texts are vectors where it reads words, or the other way round.
        """
        if pairs.texts.feature_width != self.sizes.text_width:
            given, taken = (described_texts(width) for width in (pairs.texts.feature_width, self.sizes.text_width))
            raise InputError(f"{pairs.name}: texts are {given}, this model takes {taken}; use data made the same way")
        if pairs.images.feature_width != self.sizes.feature_width:
            raise InputError(
                f"{pairs.name}: features are {pairs.images.feature_width} wide, this model takes "
                f"{self.sizes.feature_width}; evaluate it on features made the same way as its training data"
            )

    def similarity(self, pairs: Pairs) -> Tensor:
        """Similarity of every image to every text of `pairs`, (images, texts), on the CPU."""
        return torch.cat(list(self.similarity_blocks(pairs, np.arange(len(pairs.images)), np.arange(len(pairs.texts)))))

    @torch.inference_mode()
    def encode_images(self, pairs: Pairs, rows: IntArray) -> Any:
        """Encodings of some images, as the engine makes them, on its device. In evaluation mode: see `evaluating`."""
        batches = image_batches(pairs.images, rows, ENCODING_BATCH)
        return self.engine.concatenate([self.engine.encode_images(batch.to(self.device)) for batch in batches])

    @torch.inference_mode()
    def encode_texts(self, pairs: Pairs, rows: IntArray) -> Any:
        """Encodings of some texts, as the engine makes them, on its device. In evaluation mode: see `evaluating`."""
        batches = text_batches(pairs.texts, rows, self.vocabulary, ENCODING_BATCH)
        return self.engine.concatenate([self.engine.encode_texts(batch.to(self.device)) for batch in batches])


def described_texts(width: int) -> str:
    return f"vectors of width {width}" if width else "words"


class SimilarityBlocks:
    """A similarity matrix that is computed again, block of rows by block of rows, every time it is iterated.

    Attributes:
        costly: computing a cell costs far more than the memory it takes (local engines).
    """

    def __init__(self, engine: SimilarityEngine[Any], images: Any, count: int, texts: Any, memory_bytes: int) -> None:
        self._engine, self._images, self._count, self._texts = engine, images, count, texts
        self._memory_bytes = memory_bytes
        self.costly = any(network.costly for network in engine.networks())

    def __iter__(self) -> Iterator[Tensor]:
        with evaluating(self._engine):
            for block in similarity_blocks(
                self._engine, self._images, self._count, self._texts, memory_bytes=self._memory_bytes
            ):
                yield block.float().cpu()

    @torch.inference_mode()
    def cells(self, image_index: Tensor, text_index: Tensor) -> Iterator[Tensor]:
        """The similarity of cell c, image `image_index[c]` and text `text_index[c]`, in order, as 1-d float32 pieces.

        A run of cells with the same image is one call of the engine (of at most `TEXTS_AT_ONCE` texts): sort by image.
        A call has its price, so few texts an image are dearer each: 20 cost some two times as much as in whole rows,
        100 some one and a half times.

        Args:
            image_index, text_index: (cells,) int64 on the CPU, rows and columns of this matrix.

        Yields:
            Pieces on the CPU; their sizes depend on the cells alone, not on the model.
        """
        rows, counts = torch.unique_consecutive(image_index, return_counts=True)
        with evaluating(self._engine):
            for row, columns in zip(torch.split(rows, 1), torch.split(text_index, counts.tolist()), strict=True):
                image = self._engine.select(self._images, row)
                for part in torch.split(columns, TEXTS_AT_ONCE):
                    similarity = self._engine.similarity(image, self._engine.select(self._texts, part))
                    yield similarity.flatten().float().cpu()


@contextmanager
def evaluating(engine: torch.nn.Module) -> Iterator[None]:
    """Evaluation mode within the block, the mode before after it."""
    mode = engine.training
    engine.eval()
    try:
        yield
    finally:
        engine.train(mode)


@dataclass(frozen=True)
class EngineSizes:
    """What data and method ask of an engine.

    Attributes:
        feature_width: F of the region features.
        regions: R, the most regions an image has.
        vocabulary_size: number of word ids.
        views: projections of the regions, each a view of the image (UGNCL).
        networks: networks with parameters of their own (dual networks).
        subspace_width, subspace_hidden: of each subspace, and of the hidden layers before it (DisNCL); 0 for none.
        text_width: width of the text vectors; 0 where texts are words.
    """

    feature_width: int
    regions: int
    vocabulary_size: int
    views: int = 1
    networks: int = 1
    subspace_width: int = 0
    subspace_hidden: int = 0
    text_width: int = 0


def build_engine(config: ModelConfig, sizes: EngineSizes) -> SimilarityEngine[Any]:
    """A newly initialised engine of the given configuration."""
    networks = [build_network(config, sizes) for _ in range(sizes.networks)]
    if len(networks) == 1:
        return networks[0]
    from truepair.engines.ensemble import EnsembleEngine

    return EnsembleEngine(networks)


def blank_engine(config: ModelConfig, sizes: EngineSizes) -> SimilarityEngine[Any]:
    """The same without memory for its parameters: their names, shapes and types alone."""
    with torch_seeded(0, "blank"), torch.device("meta"):
        return build_engine(config, sizes)


def parameter_bytes(config: ModelConfig, sizes: EngineSizes) -> float:
    """Memory of the parameters; infinite where their number is beyond all counting."""
    try:
        return sum(values.numel() * values.element_size() for values in blank_engine(config, sizes).parameters())
    except (RuntimeError, OverflowError):
        return math.inf


def build_network(config: ModelConfig, sizes: EngineSizes) -> ScoringEngine[Any]:
    """One network: as it is, with several views of the images, or with subspaces."""
    base: SingleViewEngine[Any]
    if isinstance(config, GlobalConfig):
        base = GlobalEngine(sizes.feature_width, sizes.vocabulary_size, config)
    elif isinstance(config, MLPConfig):
        from truepair.engines.mlp_engine import MLPEngine

        base = MLPEngine(sizes.feature_width, sizes.regions, sizes.vocabulary_size, sizes.text_width, config)
    else:
        from truepair.engines.region_word.local_engine import LocalEngine

        base = LocalEngine(
            sizes.feature_width,
            sizes.regions,
            sizes.vocabulary_size,
            config,
            compared_width=sizes.subspace_width or None,
        )
    if sizes.subspace_width:
        from truepair.engines.subspaces import DisentangledEngine, SubspaceSizes

        return DisentangledEngine(base, config.width, SubspaceSizes(sizes.subspace_width, sizes.subspace_hidden))
    if sizes.views == 1:
        return base
    from truepair.engines.views import MultiViewEngine

    return MultiViewEngine(base, sizes.views)


def save_model(path: Path, model: RetrievalModel, config: ModelConfig) -> None:
    """Write weights and sizes to one `.safetensors` file, atomically (the vocabulary stands beside it)."""
    described = {
        "words": model.vocabulary.digest,
        "sizes": asdict(model.sizes),
        "model": {"name": model_name(config), **asdict(config)},
    }
    write_bytes_atomically(path, tensor_bytes(model.engine.state_dict(), described))


def load_model(path: Path, vocabulary: Vocabulary) -> RetrievalModel:
    """The model of a file that `save_model` wrote.

    Raises:
        InputError: not such a file, or made with another vocabulary.
    """
    tensors, described = read_tensors(path, "the model of a finished run. Restore it from a copy")
    try:
        if "sizes" not in described:
            described = _as_written_by_first_version(described, len(vocabulary))
        sizes = options_from(EngineSizes, described["sizes"], f"{path}: sizes")
        config = options_from(MODELS[described["model"].pop("name")], described["model"], f"{path}: model")
        words = described["words"]
    except (KeyError, TypeError, AttributeError) as error:
        raise InputError(f"{path}: not a model written by truepair ({error})") from error
    if words != vocabulary.digest:
        raise InputError(f"{path}: made for another vocabulary than the one given; use the vocabulary.json of its run")
    try:
        require_like(tensors, blank_engine(config, sizes).state_dict())
    except (RuntimeError, ValueError) as error:
        raise InputError(f"{path}: its tensors do not fit its sizes ({error}); restore it from a copy") from error
    with torch_seeded(0, "load"):  # the values drawn here are replaced at once; the caller's generator stays as it is
        engine = build_engine(config, sizes)
    engine.load_state_dict(tensors)
    engine.eval()
    return RetrievalModel(engine, vocabulary, sizes)


def _as_written_by_first_version(described: dict[str, Any], words: int) -> dict[str, Any]:
    """Models of before there were several engines: global, sizes at the top level."""
    model = {name: described[name] for name in ("width", "word_width", "pooling")}
    sizes = {"feature_width": described["feature_width"], "regions": 1, "vocabulary_size": words}
    return {"words": described["words"], "sizes": sizes, "model": {"name": "global", **model}}
