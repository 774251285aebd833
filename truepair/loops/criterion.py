"""`Criterion`: a method of pairs as the loss of anybody's training loop."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from truepair.correspondence import CorrespondenceMemory
from truepair.data.batch import PairBatch
from truepair.errors import InputError
from truepair.loops.checks import checked_features, checked_ids, checked_scale
from truepair.loops.criterion_state import load_criterion, save_criterion
from truepair.loops.given_vectors import GivenVectors
from truepair.loops.refused import check_drivable
from truepair.methods import METHODS, build_method
from truepair.methods.base import EpochPosition, Forward

logger = logging.getLogger(__name__)

FEW, HARDLY_ANY = 0.5, 0.05


class Criterion(nn.Module):
    """The loss of a method, and what it comes to believe of every pair, for a loop that is not truepair's.

    It drives the same methods as `truepair train`, batch by batch: on the same vectors in the same order it gives the
    same losses and labels. It has no parameters; what it remembers of the pairs stays on the CPU and is in its
    `state_dict`. In evaluation mode (`eval()`) the pairs of a batch count as matched and nothing is remembered.

    Example::

        criterion = truepair.Criterion("crcl", pairs=len(dataset), epochs=10)
        for epoch in range(10):
            for images, texts, ids in loader:  # ids: the place of each pair in the data set, 0 … N−1
                loss = criterion(model.encode_image(images), model.encode_text(texts), ids)
                ...
            criterion.end_epoch()
        suspicious = criterion.belief.argsort()[:100]

    Args:
        method: one of `truepair.methods.METHODS` that needs nothing but pairs and one network: crcl, gsc, infonce,
            rcl, rince, triplet.
        pairs: N ≥ 2, the pairs of the data set.
        epochs: E ≥ 1, passes over the pairs. With stages that start from a fresh network (`pieces` of CRCL; by default
            there are none here) it is the length of the last one, as in training, and `all_epochs` counts all.
        options: those of the method.

    Raises:
        InputError: an unknown method or option, or a method that needs more than a loss; the message says what.
    """

    def __init__(self, method: str, *, pairs: int, epochs: int, **options: Any) -> None:
        super().__init__()
        for name, value, least in (("pairs", pairs, 2), ("epochs", epochs, 1)):
            if isinstance(value, bool) or not isinstance(value, int) or value < least:
                raise InputError(f"{name} is {value!r}; expected a whole number, at least {least}")
        single_stage = METHODS[method].method.single_stage if method in METHODS else {}
        self.method = build_method(method, {**single_stage, **options})
        self.stages = self.method.stages(epochs, None)
        check_drivable(self.method, self.stages)
        self.memory = CorrespondenceMemory(pairs)
        self.method.prepare(self.memory)
        self.seen = torch.zeros(pairs, dtype=torch.bool)  # on the CPU, as the memory is: no buffer
        self.stage, self.epoch, self.started = 0, 1, False
        self.warned = False
        self.begun: dict[str, float] = {}  # figures of the running epoch, from before its first batch

    @property
    def position(self) -> EpochPosition:
        """Where training stands: stage, and the epoch of it that is running or comes next."""
        return EpochPosition(self.stage, self.epoch, self.stages)

    @property
    def all_epochs(self) -> int:
        """Passes over the pairs, of all stages."""
        return sum(stage.epochs for stage in self.stages)

    @property
    def finished(self) -> bool:
        """Whether all epochs are over."""
        return self.stage == len(self.stages)

    @property
    def starts_afresh(self) -> bool:
        """Whether the next epoch starts from a newly initialised network and optimizer, which the loop has to make."""
        return not self.finished and self.stage > 0 and self.epoch == 1 and not self.started

    @property
    def belief(self) -> Tensor:
        """How probably each pair is held to match, (N,) float32 in [0, 1], on the CPU."""
        return self.method.belief(self.memory)

    @property
    def taken_as_matched(self) -> Tensor:
        """Which pairs the method takes as matched, (N,) bool, on the CPU."""
        return self.method.taken_as_matched(self.memory)

    def forward(
        self,
        image_features: Tensor,
        text_features: Tensor,
        ids: Tensor | Sequence[int] | None = None,
        *,
        scale: Tensor | float | None = None,
    ) -> Tensor:
        """The mean loss of a batch, 0-d float32; image i and text i are pair `ids[i]`.

        Args:
            image_features: (B, D) float, of any length: they are L2-normalised here.
            text_features: (B, D) float, as `image_features`.
            ids: (B,) places of the pairs in the data set, 0 … N−1; each once an epoch. Needed but in evaluation mode.
            scale: what the model multiplies cosines by before a softmax (`logit_scale.exp()` of CLIP), in place of the
                1/τ of the method; a tensor gets its gradient.

        Raises:
            InputError: shapes differ, a value is not finite, an id is missing, out of range, or comes twice an epoch;
                nothing is remembered of the batch.
        """
        checked_features(image_features, text_features)
        engine = GivenVectors(self._factor(scale))
        if not self.training:
            return self._as_matched(engine, image_features, text_features)
        if self.finished:
            raise InputError(
                f"the criterion was made for {self.all_epochs} epochs, and all are over; make it with more epochs"
            )
        where = checked_ids(ids, len(image_features), self.seen)
        self._start_epoch()
        forward = Forward(engine, PairBatch(where, image_features, text_features))
        loss = self.method.batch_loss(forward, self.position, self.memory).per_pair.mean()
        self.seen[where] = True
        return loss

    def end_epoch(self) -> dict[str, float]:
        """Close a pass over the pairs: labels are updated from what it saw; call it after the last batch.

        Returns: figures of the epoch by name, as `truepair train` logs them.

        Raises:
            InputError: no batch came since the last call.
        """
        if not bool(self.seen.any()):
            raise InputError("end_epoch: no batch was seen since the epoch before; call it once after every pass")
        share = float(self.seen.float().mean())
        if share < FEW:
            logger.warning(
                "%d of %d pairs were seen in epoch %d; the others keep what was last seen of them",
                int(self.seen.sum()),
                len(self.seen),
                self.position.overall,
            )
        figures = {"seen": share, **self.begun, **self.method.finish_epoch(self.position, self.memory)}
        self.seen.zero_()
        self.begun, self.started = {}, False
        self.epoch += 1
        if self.epoch > self.stages[self.stage].epochs:
            self.stage, self.epoch = self.stage + 1, 1
        return figures

    def extra_repr(self) -> str:
        return f"{self.method.name}, pairs={self.memory.count}, epochs={self.all_epochs}"

    def _start_epoch(self) -> None:
        if self.started:
            return
        self.begun, self.started = self.method.start_epoch(self.position, self.memory), True
        matched = float(self.taken_as_matched.float().mean())
        if matched < HARDLY_ANY and "label" in self.memory and not self.warned:  # else nothing is learned by it
            self.warned = True
            logger.warning(
                "%.1f %% of the pairs are taken as matched in epoch %d: the model had learned too little when they "
                "were judged. Start from a trained model, or have them judged later (freeze_epochs of crcl)",
                100 * matched,
                self.position.overall,
            )

    def _factor(self, scale: Tensor | float | None) -> Tensor | float | None:
        """What cosines are multiplied by, so that the method's division by τ leaves cosine times scale."""
        if scale is None:
            return None
        temperature = self.method.similarity_temperature
        if temperature is None:
            raise InputError(
                f"method {self.method.name} compares cosines themselves and has no temperature that a scale could "
                "replace; leave scale out"
            )
        return checked_scale(scale) * temperature

    def _as_matched(self, engine: GivenVectors, images: Tensor, texts: Tensor) -> Tensor:
        """The loss of pairs that are not those of the data set, all taken as matched."""
        memory = CorrespondenceMemory(len(images))
        self.method.prepare(memory)
        forward = Forward(engine, PairBatch(torch.arange(len(images)), images, texts))
        return self.method.batch_loss(forward, EpochPosition(0, 1, self.stages), memory).per_pair.mean()

    def _save_to_state_dict(self, destination: dict[str, Any], prefix: str, keep_vars: bool) -> None:
        destination.update({prefix + name: tensor for name, tensor in save_criterion(self).items()})

    def _load_from_state_dict(self, state_dict: dict[str, Any], prefix: str, *arguments: Any) -> None:
        load_criterion(self, {name[len(prefix) :]: t for name, t in state_dict.items() if name.startswith(prefix)})
