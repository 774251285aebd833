"""Who teaches: the moving averages of the weights that the stages before have left."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from typing import Any, cast

import torch
from torch import Tensor, nn

from truepair.device import memory_of
from truepair.engines.similarity import ScoringEngine
from truepair.methods.auxiliary import AuxiliaryNetworks, ParameterGroups
from truepair.methods.base import EpochPosition, Forward
from truepair.methods.truepair.options import TEACHERS, TruePairConfig

START = 4
"""Of the steps done so far the average looks back at most at a fourth: it begins with the first and forgets it soon."""

KEPT = 0.25
"""Share of the memory of the machine that vectors by the teachers may take; where all pairs need more, each batch is
encoded anew."""


class Teachers(nn.Module):
    """Networks like the engine, none of which learns.

    Attributes:
        average: the moving average of the weights of the engine that is trained; the model, or a teacher to come.
        before: the averages that the stages before have left, the last one first. There are as many as the last stage
            will have; earlier, those that are yet to come are no averages, and nothing is learned of them.
    """

    average: ScoringEngine[Any]

    def __init__(self, average: ScoringEngine[Any], before: Sequence[ScoringEngine[Any]]) -> None:
        super().__init__()
        self.average, self.before = average, nn.ModuleList(before)

    def teaching(self) -> Iterator[ScoringEngine[Any]]:
        """Those of the stages before."""
        for network in self.before:
            yield cast("ScoringEngine[Any]", network)


class TeacherVectors:
    """The vectors of pairs by M teachers, side by side and divided by √M: their products are the means of the teachers'
    products. Eight bytes for each pair, teacher and dimension.

    Args:
        count: N, how many pairs.
    """

    def __init__(self, count: int) -> None:
        self.count = count
        self.images = self.texts = torch.zeros(0, 0)

    def add(self, rows: Tensor, images: Tensor, texts: Tensor) -> None:
        """Those of some pairs, of `vectors_by`: n rows in [0, N), (n, M·D), (n, M·D)."""
        if not len(self.images):
            self.images, self.texts = (torch.zeros(self.count, side.shape[1]) for side in (images, texts))
        self.images[rows], self.texts[rows] = images.float().cpu(), texts.float().cpu()

    def similarity(self, rows: Tensor, device: torch.device) -> Tensor:
        """The mean similarity of the teachers, images × texts, of n pairs, (n, n)."""
        return self.images[rows].to(device) @ self.texts[rows].to(device).T


def vectors_fit(count: int, dimensions: int) -> bool:
    """Whether `TeacherVectors` of so many pairs, of both sides together so long, may be kept in memory."""
    held = memory_of()
    return held is None or 4 * count * dimensions <= KEPT * held


def vectors_by(teachers: Teachers, forward: Forward) -> tuple[Tensor, Tensor]:
    """The vectors of a batch as `TeacherVectors` has them, images and texts, (B, M·D) each."""
    views = [forward.through(teacher) for teacher in teachers.teaching()]
    share = len(views) ** -0.5
    images = torch.cat([share * view.engine.image_vectors(view.images) for view in views], dim=1)
    return images, torch.cat([share * view.engine.text_vectors(view.texts) for view in views], dim=1)


class AuxiliaryTeachers(AuxiliaryNetworks):
    """The average of the running stage and those of the ones before, all in evaluation mode."""

    follows = True

    def __init__(self, config: TruePairConfig) -> None:
        self.config = config
        self.teachers = TEACHERS if config.pieces is None else len(config.pieces)
        self.copies = 1 + self.teachers

    def build(self, engine: Any, before: nn.Module | None = None) -> nn.Module:
        left = [before.average, *before.before] if isinstance(before, Teachers) else []
        left += [like(engine) for _ in range(self.teachers - len(left))]
        return Teachers(like(engine), left[: self.teachers]).eval()

    def parameter_groups(self, engine: Any, networks: nn.Module | None) -> ParameterGroups:
        """The engine alone."""
        return [([*engine.parameters()], 1.0)]

    @torch.no_grad()
    def follow(self, engine: Any, networks: nn.Module | None, position: EpochPosition) -> None:
        """θ̄ ← θ̄ + (θ − θ̄)/h, h steps in `average_epochs`, and at first a fourth of the steps done.

        What is no weight (the statistics of batch norms) is taken over.
        """
        assert isinstance(networks, Teachers)
        done = (position.epoch - 1) * position.steps + position.step
        horizon = max(1.0, min(self.config.average_epochs * position.steps, 1 + done / START))
        for mean, weight in zip(networks.average.parameters(), engine.parameters(), strict=True):
            if weight.requires_grad:
                mean.lerp_(weight, 1 / horizon)
        for kept, buffer in zip(networks.average.buffers(), engine.buffers(), strict=True):
            kept.copy_(buffer)

    def model(self, engine: Any, networks: nn.Module | None) -> Any:
        """The average."""
        assert isinstance(networks, Teachers)
        return networks.average


def like(engine: ScoringEngine[Any]) -> ScoringEngine[Any]:
    """A copy of an engine, weights included; those that are frozen are not copied but shared."""
    shared = {id(weight): weight for weight in engine.parameters() if not weight.requires_grad}
    return copy.deepcopy(engine, shared)
