"""Batches larger than the memory: encoded in pieces, with the loss and the gradient of the whole batch.

First all pieces are encoded without a graph, and the loss is that of all their encodings together: what it needs of
memory are the encodings and the similarity matrix. Its gradient is known by encoding. Then piece after piece is encoded
once more, now with a graph, and hands the gradient of its encodings on to the parameters. Methods see the first pass
alone, so what they remember of each pair is what they would remember of the whole batch.

Several processes share a batch by its pieces: each encodes its own, hears the encodings of the others, and hands on the
gradients of its own; those of the parameters are added up.

Random parts (dropout) are the same in both passes: each piece has a generator of its own. Only batch normalisation has
no pieces, since it looks at the whole batch.

Source: Gao et al., "Scaling Deep Contrastive Learning Batch Size under Memory Limited Setup" (RepL4NLP 2021).
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, fields
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
from truepair.training.team import Team
from truepair.training.trees import floats_of, with_floats

SIDES = ("split_images", "split_texts")


class ForwardInPieces(Forward):
    """The views of a batch whose images and texts are encoded in pieces.

    Args:
        size: pairs of a piece.
        place: (seed, stage, epoch, step), by which random parts are drawn.
        precision: of every encoding; see `Training`.
        prepare: see `Forward`; pairs beside the batch are encoded whole.
        team: the processes that share the pieces.
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
        team: Team | None = None,
    ) -> None:
        super().__init__(engine, batch, auxiliary, prepare)
        self.size, self.place, self.precision = size, place, precision
        self.team = team or Team()

    def again(self) -> Forward:
        size, place, precision = self.size, self.place, self.precision
        return ForwardInPieces(self.engine, self.batch, self.auxiliary, size, place, precision, self.prepare, self.team)

    @cached_property
    def networks(self) -> list[NetworkForward]:
        return [
            NetworkInPieces(network, self, (*self.place, number))
            for number, network in enumerate(self.engine.networks())
        ]

    def through(self, network: ScoringEngine[Any]) -> NetworkForward:
        return NetworkInPieces(network, self, (*self.place, len(self.networks)))

    def gradient(self, loss: Tensor) -> dict[nn.Parameter, Tensor]:
        parameters = self._parameters()
        before = [parameter.grad for parameter in parameters]
        for parameter in parameters:
            parameter.grad = None
        self._hand_on(loss, retain_graph=True)
        found = {parameter: parameter.grad for parameter in parameters if parameter.grad is not None}
        for parameter, gradient in zip(parameters, before, strict=True):
            parameter.grad = gradient
        return found

    def backward(self, loss: Tensor) -> None:
        self._hand_on(loss, retain_graph=False)

    def _parameters(self) -> list[nn.Parameter]:
        return [parameter for parameter in self.engine.parameters() if parameter.requires_grad]

    def _hand_on(self, loss: Tensor, *, retain_graph: bool) -> None:
        """Backward, from the loss to the encodings and from these to the parameters."""
        loss.backward(retain_graph=retain_graph)  # type: ignore[no-untyped-call]
        if self.team.size == 1:
            self._replay()
            return
        # What the loss asks of parameters itself is the same in every process; what comes by way of pieces adds up.
        parameters = self._parameters()
        direct = [parameter.grad for parameter in parameters]
        for parameter in parameters:
            parameter.grad = None
        self._replay()
        self.team.add_gradients(parameters)
        for parameter, gradient in zip(parameters, direct, strict=True):
            if gradient is not None:
                parameter.grad = gradient if parameter.grad is None else parameter.grad + gradient

    def _replay(self) -> None:
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
        size, team, device = self.forward.size, self.forward.team, next(self.engine.parameters()).device
        encoders = {
            number: self.encoder(side, number, items.piece(slice(start, start + size)))
            for number, start in enumerate(range(0, len(items), size))
            if team.owns(number)
        }
        with torch.no_grad():
            own = [encoders[n]() if n in encoders else None for n in range(-(-len(items) // size))]
        made = []
        for number, encodings in enumerate(team.exchanged(own, device)):
            leaves = [tensor.detach().requires_grad_() for tensor in floats_of(encodings)]
            if number in encoders:
                self.pieces.append(Piece(encoders[number], leaves))
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


def check_pieces(engine: nn.Module, processes: int = 1) -> None:
    """Raises InputError: the engine looks at a batch as a whole."""
    if any(isinstance(module, nn.modules.batchnorm._BatchNorm) and module.training for module in engine.modules()):
        if processes > 1:
            raise InputError(
                f"{processes} processes share a batch by its pieces, and this engine normalises over the whole batch "
                "(batch normalisation); train it in one process, or take an engine that can (pretrained)"
            )
        raise InputError(
            "piece_size: this engine normalises over the batch (batch normalisation), so that a batch in pieces is not "
            f"the same as a whole one; {_REMEDY}"
        )


_REMEDY = "leave piece_size out, or take an engine that can (pretrained)"
