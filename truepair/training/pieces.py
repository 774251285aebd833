"""Batches larger than the memory: encoded in pieces, with the loss and the gradient of the whole batch.

First all pieces are encoded without a graph, and the loss is that of all their encodings together: what it needs of
memory are the encodings and the similarity matrix. Its gradient is known by encoding. Then piece after piece is encoded
once more, now with a graph, and hands the gradient of its encodings on to the parameters. Methods see the first pass
alone, so what they remember of each pair is what they would remember of the whole batch.

Random parts (dropout) are the same in both passes: each piece has a generator of its own. Only batch normalisation has
no pieces, since it looks at the whole batch.

Source: Gao et al., "Scaling Deep Contrastive Learning Batch Size under Memory Limited Setup" (RepL4NLP 2021).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass, fields, is_dataclass, replace
from functools import cached_property
from typing import Any

import torch
from torch import Tensor, nn

from truepair.data.batch import PairBatch
from truepair.engines.similarity import ScoringEngine, SimilarityEngine
from truepair.engines.subspaces import Parts
from truepair.errors import InputError
from truepair.methods.base import Forward, NetworkForward
from truepair.seeding import torch_seeded

SIDES = ("split_images", "split_texts")


class ForwardInPieces(Forward):
    """The views of a batch whose images and texts are encoded in pieces.

    Args:
        size: pairs of a piece.
        place: (seed, stage, epoch, step), by which random parts are drawn.
        precision: of every encoding; see `Training`.
        prepare: see `Forward`; pairs beside the batch are encoded whole.
    """

    def __init__(
        self,
        engine: SimilarityEngine[Any],
        batch: PairBatch,
        auxiliary: nn.Module | None,
        size: int,
        place: tuple[int, ...],
        precision: Callable[[], AbstractContextManager[Any]],
        prepare: Callable[[Tensor], PairBatch] | None = None,
    ) -> None:
        super().__init__(engine, batch, auxiliary, prepare)
        self.size, self.place, self.precision = size, place, precision

    @cached_property
    def networks(self) -> list[NetworkForward]:
        return [
            NetworkInPieces(network, self, (*self.place, number))
            for number, network in enumerate(self.engine.networks())
        ]

    def through(self, network: ScoringEngine[Any]) -> NetworkForward:
        return NetworkInPieces(network, self, (*self.place, len(self.networks)))

    def gradient(self, loss: Tensor) -> dict[nn.Parameter, Tensor]:
        parameters = [parameter for parameter in self.engine.parameters() if parameter.requires_grad]
        before = [parameter.grad for parameter in parameters]
        for parameter in parameters:
            parameter.grad = None
        loss.backward(retain_graph=True)  # type: ignore[no-untyped-call]
        for network in self.networks:
            assert isinstance(network, NetworkInPieces)
            network.replay()
        found = {parameter: parameter.grad for parameter in parameters if parameter.grad is not None}
        for parameter, gradient in zip(parameters, before, strict=True):
            parameter.grad = gradient
        return found

    def backward(self, loss: Tensor) -> None:
        super().backward(loss)
        for network in self.networks:
            assert isinstance(network, NetworkInPieces)
            network.replay()


@dataclass(frozen=True)
class Piece:
    """Some items of one side: how they are encoded again, and the leaves of the graph that stand for them."""

    encode: Callable[[], Any]
    leaves: list[Tensor]


class NetworkInPieces(NetworkForward):
    """The views of a batch through one network, from encodings that are leaves of the graph."""

    def __init__(self, engine: ScoringEngine[Any], forward: ForwardInPieces, place: tuple[int, ...]) -> None:
        super().__init__(engine, forward.batch)
        self.forward, self.place = forward, place
        self.pieces: list[Piece] = []

    @cached_property
    def _split_images(self) -> tuple[Any, Parts | None]:
        return self.encoded(0, self.batch.images)

    @cached_property
    def _split_texts(self) -> tuple[Any, Parts | None]:
        return self.encoded(1, self.batch.texts)

    def encoded(self, side: int, items: Any) -> tuple[Any, Parts | None]:
        """Encodings (and parts) of one side, made of pieces that the graph begins with."""
        if not hasattr(items, "piece"):
            raise AttributeError("piece_size: the batches of this engine cannot be cut; give them `piece` (data.Batch)")
        size, made = self.forward.size, []
        for number, start in enumerate(range(0, len(items), size)):
            encode = self.encoder(side, number, items.piece(slice(start, start + size)))
            with torch.no_grad():
                encodings = encode()
            leaves = [tensor.detach().requires_grad_() for tensor in floats_of(encodings)]
            self.pieces.append(Piece(encode, leaves))
            made.append(with_floats(encodings, iter(leaves)))
        parts = [part for _, part in made if part is not None]
        together = Parts(*(torch.cat([getattr(part, name) for part in parts]) for name in _PARTS)) if parts else None
        return self.engine.concatenate([encodings for encodings, _ in made]), together

    def encoder(self, side: int, number: int, items: Any) -> Callable[[], Any]:
        """What encodes one piece, whenever it is called with the same random parts."""
        seed, *place = self.place
        device = next(self.engine.parameters()).device

        def encode() -> Any:
            with torch_seeded(seed, "piece", *place, side, number, device=device), self.forward.precision():
                return getattr(self.engine, SIDES[side])(items)

        return encode

    def replay(self) -> None:
        """Hand the gradients of the encodings on to the parameters, piece by piece; then forget them."""
        for piece in self.pieces:
            wanted = [(place, leaf.grad) for place, leaf in enumerate(piece.leaves) if leaf.grad is not None]
            if not wanted:
                continue
            with torch.enable_grad():
                encodings = floats_of(piece.encode())
            known = [(encodings[place], gradient) for place, gradient in wanted if encodings[place].requires_grad]
            if known:
                torch.autograd.backward([tensor for tensor, _ in known], [gradient for _, gradient in known])
            for leaf in piece.leaves:
                leaf.grad = None


_PARTS = tuple(field.name for field in fields(Parts))


def check_pieces(engine: nn.Module) -> None:
    """Raises InputError: the engine looks at a batch as a whole."""
    if any(isinstance(module, nn.modules.batchnorm._BatchNorm) and module.training for module in engine.modules()):
        raise InputError(
            "piece_size: this engine normalises over the batch (batch normalisation), so that a batch in pieces is not "
            f"the same as a whole one; {_REMEDY}"
        )


_REMEDY = "leave piece_size out, or take an engine that can (pretrained)"


def floats_of(tree: Any) -> list[Tensor]:
    """All tensors of floats in tuples, lists and dataclasses, in a fixed order."""
    if isinstance(tree, Tensor):
        return [tree] if tree.is_floating_point() else []
    return [tensor for part in children(tree) for tensor in floats_of(part)]


def with_floats(tree: Any, tensors: Iterator[Tensor]) -> Any:
    """The same tree with other tensors of floats, in the order of `floats_of`."""
    if isinstance(tree, Tensor):
        return next(tensors) if tree.is_floating_point() else tree
    parts = [with_floats(part, tensors) for part in children(tree)]
    if isinstance(tree, tuple | list):
        return type(tree)(parts)
    if is_dataclass(tree) and not isinstance(tree, type):
        return replace(tree, **dict(zip((field.name for field in fields(tree)), parts, strict=True)))
    return tree


def children(tree: Any) -> list[Any]:
    if isinstance(tree, tuple | list):
        return list(tree)
    if is_dataclass(tree) and not isinstance(tree, type):
        return [getattr(tree, field.name) for field in fields(tree)]
    return []
