"""`RetrievalModel`: an engine with the preparation of what it reads; what a finished run hands out."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode

from truepair.data.pairs import IntArray, Pairs
from truepair.data.preparation import Preparation
from truepair.engines import engine_config
from truepair.engines.config import EngineConfig
from truepair.engines.similarity import ScoringEngine, SimilarityEngine, similarity_blocks
from truepair.errors import InputError
from truepair.files import options_from, read_tensors, require_like, tensor_bytes, write_bytes_atomically
from truepair.phrases import counted
from truepair.seeding import torch_seeded

if TYPE_CHECKING:
    from truepair.search.index import Index

ENCODING_BATCH = 256

TEXTS_AT_ONCE = 1024
"""Texts that are compared with one image in one call of `cells`: what is copied of their encodings stays small."""


@dataclass(frozen=True)
class Needs:
    """What a method needs of the networks.

    Attributes:
        views: projections of the regions, each a view of the image (UGNCL).
        networks: networks with parameters of their own (dual networks).
        subspace_width, subspace_hidden: of each subspace, and of the hidden layers before it (DisNCL); 0 for none.
        plain_heads: the heads of what is compared are three layers and no more (DisNCL as printed).
        view_temperature: τ of the evidence whose mean over the views is their similarity (models that UGNCL
            published); 0 for the mean of their similarities.
        head_width: of the hidden layer of a similarity head (MSCN); 0 for none.
    """

    views: int = 1
    networks: int = 1
    subspace_width: int = 0
    subspace_hidden: int = 0
    plain_heads: bool = False
    view_temperature: float = 0.0
    head_width: int = 0


class RetrievalModel:
    """Encodes the two sides of any `Pairs` and scores them against each other.

    Args:
        engine: the similarity engine.
        config: what it was made by.
        preparation: what makes batches for it.
        needs: what the method needed of it.
    """

    def __init__(
        self, engine: SimilarityEngine[Any], config: EngineConfig, preparation: Preparation, needs: Needs
    ) -> None:
        self.engine, self.config, self.preparation, self.needs = engine, config, preparation, needs

    def __repr__(self) -> str:
        parameters = sum(parameter.numel() for parameter in self.engine.parameters())
        return f"RetrievalModel({self.config.name}, {counted(parameters, 'parameter')}, {self.device})"

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
            InputError: the model does not read such pairs.
        """
        self.preparation.check(pairs)
        with evaluating(self.engine):
            images = self.encode_images(pairs, image_rows)
            texts = self.encode_texts(pairs, text_rows)
        return SimilarityBlocks(self.engine, images, len(image_rows), texts, memory_bytes)

    def similarity(self, pairs: Pairs) -> Tensor:
        """Similarity of every image to every text of `pairs`, (images, texts), on the CPU."""
        return torch.cat(list(self.similarity_blocks(pairs, np.arange(len(pairs.images)), np.arange(len(pairs.texts)))))

    def index(self, pairs: Pairs, *, encoder: str | None = None, exact: bool | None = None) -> Index:
        """All images and captions of some pairs, to be found by words, by a picture, or by each other.

        Args:
            encoder: the name of what describes pictures from outside; None: the built-in one that described the data.
            exact: compare every vector, or (False) look into some cells only (extra `faiss`); None: exact up to
                `truepair.search.EXACT_UP_TO` of a side.

        Raises:
            InputError: the model does not read such pairs.
        """
        from truepair.engines.model_embedder import ModelEmbedder
        from truepair.search.index import build_index

        self.preparation.check(pairs)
        return build_index(ModelEmbedder(self, encoder), pairs, exact=exact)

    def load_index(
        self, folder: Path | str, pairs: Pairs | None = None, *, encoder: str | None = None, exact: bool | None = None
    ) -> Index:
        """The index of this model that `Index.save` wrote.

        Args:
            pairs: what was indexed; needed to search by pictures, and by local engines.
            encoder, exact: as for `index`.

        Raises:
            InputError: there is none, or it is that of another model or of other pairs.
        """
        from truepair.engines.model_embedder import ModelEmbedder
        from truepair.search.index import load_index

        return load_index(folder, ModelEmbedder(self, encoder), pairs, exact=exact)

    @torch.inference_mode()
    def encode_images(self, pairs: Pairs, rows: IntArray) -> Any:
        """Encodings of some images, as the engine makes them, on its device. In evaluation mode: see `evaluating`."""
        return self.engine.concatenate([self.engine.encode_images(batch) for batch in self.image_batches(pairs, rows)])

    @torch.inference_mode()
    def encode_texts(self, pairs: Pairs, rows: IntArray) -> Any:
        """Encodings of some texts, as the engine makes them, on its device. In evaluation mode: see `evaluating`."""
        return self.engine.concatenate([self.engine.encode_texts(batch) for batch in self.text_batches(pairs, rows)])

    def image_batches(self, pairs: Pairs, rows: IntArray, size: int = ENCODING_BATCH) -> Iterator[Any]:
        """Some images as the engine reads them, in the order of `rows`, on its device."""
        for start in range(0, len(rows), size):
            yield self.preparation.images(pairs.images, rows[start : start + size]).to(self.device)

    def text_batches(self, pairs: Pairs, rows: IntArray, size: int = ENCODING_BATCH) -> Iterator[Any]:
        """Some texts as the engine reads them, in the order of `rows`, on its device."""
        for start in range(0, len(rows), size):
            yield self.preparation.texts(pairs.texts, rows[start : start + size]).to(self.device)


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


def new_model(config: EngineConfig, preparation: Preparation, needs: Needs | None = None) -> RetrievalModel:
    """A model whose engine is newly initialised."""
    needs = needs or Needs()
    return RetrievalModel(build_engine(config, preparation.sizes, needs), config, preparation, needs)


def build_engine(config: EngineConfig, sizes: Any, needs: Needs | None = None) -> SimilarityEngine[Any]:
    """A newly initialised engine for a preparation of these sizes."""
    needs = needs or Needs()
    networks = [build_network(config, sizes, needs) for _ in range(needs.networks)]
    if len(networks) == 1:
        return networks[0]
    for network in networks[1:]:
        network.vary()
    from truepair.engines.ensemble import EnsembleEngine

    return EnsembleEngine(networks)


def blank_engine(config: EngineConfig, sizes: Any, needs: Needs) -> SimilarityEngine[Any]:
    """The same without memory for its parameters: their names, shapes and types alone."""
    with torch_seeded(0, "blank"), torch.device("meta"), _Undrawn():
        return build_engine(config, sizes, needs)


class _Undrawn(TorchFunctionMode):
    """Initial values are not drawn: where there is no memory to fill, torch imports its compiler to do so."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if func in (torch.Tensor.normal_, torch.Tensor.uniform_) or getattr(func, "__module__", "") == "torch.nn.init":
            return kwargs["tensor"] if "tensor" in kwargs else args[0]
        return func(*args, **kwargs)


def parameter_bytes(config: EngineConfig, sizes: Any, needs: Needs) -> float:
    """Memory of the parameters; infinite where their number is beyond all counting."""
    try:
        parameters = blank_engine(config, sizes, needs).parameters()
        return sum(values.numel() * values.element_size() for values in parameters)
    except (RuntimeError, OverflowError):
        return math.inf


def build_network(config: EngineConfig, sizes: Any, needs: Needs) -> ScoringEngine[Any]:
    """One network: as it is, with several views of the images, or with subspaces."""
    base = config.build(sizes, compared_width=needs.subspace_width or None)
    if needs.head_width:
        base.use_head(needs.head_width)
    if needs.subspace_width:
        from truepair.engines.subspaces import DisentangledEngine, SubspaceSizes

        sizes_of_parts = SubspaceSizes(needs.subspace_width, needs.subspace_hidden, needs.plain_heads)
        return DisentangledEngine(base, config.width, sizes_of_parts)
    if needs.views == 1:
        return base
    from truepair.engines.views import MultiViewEngine

    return MultiViewEngine(base, needs.views, needs.view_temperature)


def save_model(path: Path, model: RetrievalModel) -> None:
    """Write weights and what made them to one `.safetensors` file, atomically.

    What the preparation writes (`Preparation.write`) stands beside it.
    """
    described = {
        "model": {"name": model.config.name, **asdict(model.config)},  # type: ignore[call-overload]
        "preparation": model.preparation.described(),
        "needs": asdict(model.needs),
    }
    write_bytes_atomically(path, tensor_bytes(model.engine.state_dict(), described))


def load_model(path: Path, engine: type[EngineConfig] | None = None) -> RetrievalModel:
    """The model of a file that `save_model` wrote, with what its preparation wrote beside it.

    Args:
        engine: its configuration, for an engine that is not in `truepair.engines.ENGINES`.

    Raises:
        InputError: not such a file, or what lies beside it belongs to another one.
    """
    tensors, described = read_tensors(path, "the model of a finished run. Restore it from a copy")
    try:
        if "model" not in described:
            raise InputError(
                f"{path}: no model, or one of the first version, which is not read any more; train it again"
            )
        if "sizes" in described:
            described = as_written_before_preparations(described)
        kind = engine or engine_config(described["model"]["name"])
        options = {name: value for name, value in described["model"].items() if name != "name"}
        config = options_from(kind, options, f"{path}: model")
        preparation = config.read_preparation(described["preparation"], path.parent)
        needs = options_from(Needs, described["needs"], f"{path}: needs")
    except (KeyError, TypeError, AttributeError) as error:
        raise InputError(f"{path}: not a model written by truepair ({error})") from error
    try:
        require_like(tensors, blank_engine(config, preparation.sizes, needs).state_dict())
    except (RuntimeError, ValueError) as error:
        raise InputError(f"{path}: its tensors do not fit its sizes ({error}); restore it from a copy") from error
    with torch_seeded(0, "load"):  # the values drawn here are replaced at once; the caller's generator stays as it is
        model = new_model(config, preparation, needs)
    model.engine.load_state_dict(tensors)
    model.engine.eval()
    return model


def as_written_before_preparations(described: dict[str, Any]) -> dict[str, Any]:
    """What the file of a model says since preparations are named, of what it said before: all sizes in one."""
    needs = {name: value for name, value in described["sizes"].items() if name in Needs.__dataclass_fields__}
    sizes = {name: value for name, value in described["sizes"].items() if name not in needs}
    return {"model": described["model"], "preparation": {**sizes, "words": described["words"]}, "needs": needs}
