"""`EnsembleModel`: finished models that answer together, such as SGR and SAF (SGRAF), or A and B of two runs."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence

import numpy as np
import torch
from torch import Tensor

from truepair.data.pairs import IntArray, Pairs
from truepair.engines.retrieval_model import RetrievalModel, SimilarityBlocks
from truepair.errors import InputError

LEAST_TEMPERATURE = 0.025
"""τ of the evidence: below, that of opposite scores is not told from 0 in float32."""


class EnsembleModel:
    """The mean of several models' similarities, each in the form it retrieves with, all with the same weight.

    Members may read different vocabularies, and have engines and block sizes of their own. They must speak on one
    scale: all cosines (global engines) or all σ(r) (local engines). A mean of both is refused: a local engine's σ(r)
    spreads over most of [0, 1], the cosines of a trained global one over a fraction of [−1, 1], so that equal weights
    would not be equal votes; and which weights were, only held-out data could tell.

    Args:
        models: at least one; one alone is the model itself.
        names: what messages call each member, such as the folder of its run; None counts them.
        evidence: τ > 0; the members' evidence exp(tanh(r)/τ) is averaged in place of their σ(r), as DECL does with
            τ = 0.1. Of local engines alone. A similarity is 1 + (τ/2) log ē then, in [0, 1], ē the mean in units of
            the largest there can be.

    Raises:
        InputError: no models, another number of names, models on different scales, or evidence of cosines.

    Example:
        SGRAF from two runs::

            both = EnsembleModel([sgr_run.model, saf_run.model], names=["runs/sgr", "runs/saf"])
            figures = truepair.evaluate(both, truepair.load("my_data", "test"))
    """

    def __init__(
        self, models: Sequence[RetrievalModel], names: Sequence[str] | None = None, *, evidence: float | None = None
    ) -> None:
        self.models, self.evidence = tuple(models), evidence
        self.names = tuple(names or (f"model {number} of {len(models)}" for number in range(1, len(models) + 1)))
        if not self.models or len(self.names) != len(self.models):
            raise InputError(
                f"an ensemble of {len(self.models)} models with {len(self.names)} names; expected at least one model "
                "and one name for each"
            )
        by_scale: dict[str, str] = {}
        for name, model in zip(self.names, self.models, strict=True):
            by_scale.setdefault("cosines" if gives_cosines(model) else "σ(r)", name)
        if len(by_scale) > 1:
            described = ", ".join(f"{name} gives {scale}" for scale, name in by_scale.items())
            raise InputError(
                f"{described}: their mean has no meaning, since the two spread over different ranges; put global "
                "models together with global ones and local with local, or let the global one propose what the local "
                "one ranks (evaluate_two_stage; on the command line --propose)"
            )

        if evidence is not None and (not LEAST_TEMPERATURE <= evidence < math.inf or "cosines" in by_scale):
            raise InputError(
                f"evidence with τ = {evidence} of {', '.join(by_scale)}; expected τ of at least {LEAST_TEMPERATURE}, "
                "and local engines, which give σ(r). Leave it out for the mean of the similarities"
            )

    def __repr__(self) -> str:
        return f"EnsembleModel({', '.join(self.names)})"

    def similarity_blocks(
        self, pairs: Pairs, image_rows: IntArray, text_rows: IntArray, *, memory_bytes: int = 256 << 20
    ) -> EnsembleBlocks:
        """The similarity matrix of some images (rows) to some texts (columns), to be iterated in blocks of rows.

        Args:
            memory_bytes: budget of one block of all members together, working memory included.

        Raises:
            InputError: a member does not fit the data; the message names it.
        """
        return EnsembleBlocks(
            [
                self._member_blocks(member, pairs, image_rows, text_rows, memory_bytes // len(self.models))
                for member in range(len(self.models))
            ],
            self.evidence,
        )

    def similarity(self, pairs: Pairs) -> Tensor:
        """Similarity of every image to every text of `pairs`, (images, texts) float32, on the CPU.

        Member after member is added to one matrix, so that only one at a time holds its encodings.

        Raises:
            InputError: as `similarity_blocks`.
        """
        rows, columns = np.arange(len(pairs.images)), np.arange(len(pairs.texts))
        total = torch.zeros(len(rows), len(columns))
        for member in range(len(self.models)):
            start = 0
            for block in self._member_blocks(member, pairs, rows, columns, 256 << 20):
                total[start : start + len(block)] += counted_as(block, self.evidence)
                start += len(block)
        return scored(total.div_(len(self.models)), self.evidence)

    def _member_blocks(
        self, member: int, pairs: Pairs, image_rows: IntArray, text_rows: IntArray, memory_bytes: int
    ) -> SimilarityBlocks:
        try:
            return self.models[member].similarity_blocks(pairs, image_rows, text_rows, memory_bytes=memory_bytes)
        except InputError as error:
            raise InputError(f"{self.names[member]}: {error}") from error


class EnsembleBlocks:
    """The mean of several similarity matrices, computed again, block by block, every time it is iterated."""

    def __init__(self, members: Sequence[SimilarityBlocks], evidence: float | None = None) -> None:
        self._members, self._evidence = members, evidence
        self.costly = any(member.costly for member in members)

    def __iter__(self) -> Iterator[Tensor]:
        return (_mean(parts, self._evidence) for parts in aligned(self._members))

    def cells(self, image_index: Tensor, text_index: Tensor) -> Iterator[Tensor]:
        """The mean similarity of single cells, in order, as `SimilarityBlocks.cells` gives them."""
        members = [member.cells(image_index, text_index) for member in self._members]
        return (_mean(parts, self._evidence) for parts in zip(*members, strict=True))


def aligned(members: Sequence[Iterable[Tensor]]) -> Iterator[list[Tensor]]:
    """Rows first … last of every member at a time, however each cuts its rows into blocks; one block of each is held.

    Args:
        members: each gives the same number of rows altogether.
    """
    sources = [iter(member) for member in members]
    heads = [next(source, None) for source in sources]
    while not any(head is None for head in heads):
        blocks = [head for head in heads if head is not None]
        rows = min(len(block) for block in blocks)
        if rows:
            yield [block[:rows] for block in blocks]
        heads = [
            block[rows:] if len(block) > rows else next(source, None)
            for block, source in zip(blocks, sources, strict=True)
        ]


def gives_cosines(model: RetrievalModel) -> bool:
    """Whether the model retrieves by cosines; else by σ of a free logit."""
    two = torch.tensor(2.0)
    return all(bool(network.as_similarity(two) == two) for network in model.engine.networks())


def counted_as(similarity: Tensor, evidence: float | None) -> Tensor:
    """What is averaged: the similarity σ(r), or e^((tanh(r) − 1)/τ), the evidence in units of the largest."""
    if evidence is None:
        return similarity
    square, rest = similarity.square(), (1 - similarity).square()
    return torch.exp(((square - rest) / (square + rest) - 1) / evidence)  # tanh(r), by σ(r)


def scored(mean: Tensor, evidence: float | None) -> Tensor:
    """The similarity that a mean stands for."""
    return mean if evidence is None else (1 + evidence * mean.log() / 2).clamp(min=0)


def _mean(parts: Sequence[Tensor], evidence: float | None) -> Tensor:
    """The sum in the order of the members, over their number: bit for bit what `EnsembleModel.similarity` gives."""
    total = counted_as(parts[0], evidence)
    for part in parts[1:]:
        total = total + counted_as(part, evidence)
    return scored(total / len(parts), evidence)
