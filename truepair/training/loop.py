"""The one training loop, for every method, resumable at any batch."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import torch
from tqdm import tqdm

from truepair.data.batch import EpochBatches, PairBatch, Share, batch_count, pair_batch
from truepair.data.pairs import Pairs
from truepair.data.preparation import Preparation
from truepair.engines.retrieval_model import evaluating
from truepair.errors import DivergedError, InputError, NaNError
from truepair.methods.base import EpochPosition, Forward, Method, Stage
from truepair.seeding import torch_seeded
from truepair.training.config import RATE_SCALE, TrainingConfig
from truepair.training.interruption import Interruption
from truepair.training.pieces import ForwardInPieces
from truepair.training.run_folder import RunFolder, append_line, keep_lines
from truepair.training.state import Cursor, TrainingState
from truepair.training.stopwatch import Stopwatch
from truepair.training.team import Team

Scores = dict[str, Any]

FIGURE_TITLES = {"rsum": "rSum {:.1f}", "map": "mAP {:.3f}"}


@dataclass(frozen=True)
class TrainingData:
    """What the loop reads: the pairs without their truth, and what makes batches of them."""

    pairs: Pairs
    preparation: Preparation


@dataclass(frozen=True)
class Observers:
    """What the loop asks of others at the end of each epoch.

    Attributes:
        score_dev: named dev scores of the network. None where there are no dev pairs: then the last epoch is kept.
        figure: the one of them, larger is better, that selects the best epoch.
        score_memory: named records of the method's beliefs: its division, and its detection where the truth is known.
        keep_best: called when the network is the best so far of the epochs that the method may keep.
        epoch_done: called with the number of the epoch, from 1 over all stages, and how many there are, when its
            checkpoint is written.
    """

    score_dev: Callable[[], Scores] | None
    figure: str
    score_memory: Callable[[], Scores]
    keep_best: Callable[[], None]
    epoch_done: Callable[[int, int], None] = lambda epoch, of: None


@dataclass(frozen=True)
class Trained:
    """A new engine, the method's auxiliary networks, and the optimizer of both."""

    engine: Any
    auxiliary: torch.nn.Module | None
    optimizer: torch.optim.Optimizer


@dataclass(frozen=True)
class Training:
    """One run of the loop: how, on what, with which method, seen by whom, kept where."""

    config: TrainingConfig
    learning_rate: float
    data: TrainingData
    method: Method
    observers: Observers
    folder: RunFolder
    fresh: Callable[[int, torch.nn.Module | None], Trained]  # stage, auxiliary networks before → all that starts anew
    device: torch.device
    progress: bool | None  # None: a bar on a terminal only
    team: Team  # of several processes the first alone scores, writes and shows

    def run(self, state: TrainingState) -> None:
        """Train from the state's cursor to the end.

        Raises:
            KeyboardInterrupt: asked to stop; the checkpoint is written.
            DivergedError: the loss is no longer finite; the last checkpoint stays as it was.
        """
        stages = self.method.stages(self.config.epochs, self.config.decay_epoch)
        if self.team.leads:
            keep_lines(self.folder.metrics, state.cursor.epochs_logged)
            keep_lines(self.folder.timings, state.cursor.epochs_logged)
        with Interruption() as interruption, self._bar(state.cursor, stages) as bar:
            self._survey_again(state, stages, interruption)
            while not state.cursor.finished:
                position = self._position(state.cursor, stages)
                watch = Stopwatch()
                rate = self._train_epoch(state, position, interruption, bar)
                self._finish_epoch(state, position, watch, rate)
            if self.team.any(interruption.requested):  # while the last epoch was scored; its checkpoint is written
                raise KeyboardInterrupt

    def _position(self, cursor: Cursor, stages: tuple[Stage, ...]) -> EpochPosition:
        pairs, size = len(self.data.pairs), self.config.batch_size
        steps = batch_count(pairs, size)
        return EpochPosition(
            cursor.stage, cursor.epoch, stages, cursor.step, steps, -(-pairs // steps), self.config.seed
        )

    def _bar(self, cursor: Cursor, stages: tuple[Stage, ...]) -> tqdm[Any]:
        """Progress over the batches of all stages, on a terminal only."""
        steps = self.method.turns * batch_count(len(self.data.pairs), self.config.batch_size)
        return tqdm(
            total=steps * sum(stage.epochs for stage in stages),
            initial=steps * cursor.epochs_logged + cursor.step,
            unit="batch",
            disable=(None if self.progress is None else not self.progress) if self.team.leads else True,
        )

    def _train_epoch(
        self, state: TrainingState, position: EpochPosition, interruption: Interruption, bar: tqdm[Any]
    ) -> float:
        """The remaining batches of the epoch at the cursor; returns how many pairs a second they took."""
        cursor, config = state.cursor, self.config
        place = (config.seed, position.stage, position.epoch)
        bar.set_description_str(progress_title(position, self.observers.figure, cursor.last_score), refresh=False)
        self._agree(state)
        if cursor.step == 0:
            if self.method.surveys(position):
                self._survey(state, position, interruption)
            cursor.epoch_scalars = self.method.start_epoch(position, state.memory)
        watch, saved = Stopwatch(), time.monotonic()
        seen_before = cursor.pairs_seen
        state.engine.train()
        for batch in self._turns(place, cursor.step):
            with torch_seeded(*place[:1], "step", *place[1:], cursor.step, device=self.device):
                here = replace(position, step=cursor.step)
                set_learning_rate(state.optimizer, self._rate(here))
                loss, scalars = self._train_batch(state, here, batch.to(self.device))
            cursor.loss_sum += loss * len(batch)
            cursor.pairs_seen += len(batch)
            for name, value in scalars.items():
                cursor.scalar_sums[name] = cursor.scalar_sums.get(name, 0.0) + value * len(batch)
            cursor.step += 1
            if cursor.step % position.steps == 0 and cursor.step < self.method.turns * position.steps:
                cursor.epoch_scalars |= self.method.finish_turn(here, state.memory)
            bar.set_postfix_str(f"loss {loss:.3f}", refresh=False)
            bar.update()
            self._stop_if_asked(state, interruption)
            if time.monotonic() - saved > 60 * config.checkpoint_minutes:
                self._save(state)
                saved = time.monotonic()
        seconds = watch.seconds
        return (cursor.pairs_seen - seen_before) / seconds if seconds else 0.0

    def _agree(self, state: TrainingState) -> None:
        """Several processes begin an epoch with the same numbers, to the last bit."""
        if self.team.size == 1:
            return
        fields, notes = state.memory.tensors(), state.memory.notes()
        self.team.agree(fields)
        self.team.agree(notes)
        state.memory.restore(fields, notes)
        for network in (state.engine, state.auxiliary):
            if network is not None:
                self.team.agree({name: tensor.data for name, tensor in network.state_dict(keep_vars=True).items()})

    def _save(self, state: TrainingState) -> None:
        if self.team.leads:
            state.save(self.folder.checkpoint)

    def _stop_if_asked(self, state: TrainingState, interruption: Interruption) -> None:
        if self.team.any(interruption.requested):
            self._save(state)
            raise KeyboardInterrupt

    def _rate(self, position: EpochPosition) -> float:
        """The learning rate of a batch."""
        stage, steps = position.stages[position.stage], self.method.turns * position.steps
        scale = self.config.rate_at(position.epoch, position.step, steps, stage.epochs, stage.decay_after)
        return self.learning_rate * self.method.auxiliary.rate_scale(position) * scale

    def _turns(self, place: tuple[int, int, int], first: int) -> Iterator[PairBatch]:
        """The batches of an epoch from the given one on: all pairs once for each turn of the method."""
        for turn in range(self.method.turns):
            batches = self._batches("shuffle", (*place, turn) if turn else place, augmented=True)
            if first < len(batches):
                yield from batches.loader(first=max(first, 0), workers=self.config.workers)
            first -= len(batches)

    def _batches(self, order: str, place: tuple[int, ...], *, augmented: bool) -> EpochBatches:
        return EpochBatches(
            self.data.pairs,
            self.data.preparation,
            batch_size=self.config.batch_size,
            order=order,
            position=place,
            augmented=augmented,
            share=self._share,
        )

    @property
    def _share(self) -> Share | None:
        """What of every batch this process prepares; None: all."""
        size = self.config.piece_size
        return Share(size, self.team.rank, self.team.size) if size is not None and self.team.size > 1 else None

    @torch.no_grad()
    def _survey(self, state: TrainingState, position: EpochPosition, interruption: Interruption) -> None:
        """Show the method all pairs as they are. Cut off, it starts again: the checkpoint is that before the epoch."""
        place = (self.config.seed, position.stage, position.epoch)
        batches = self._batches("survey", place, augmented=False)
        with evaluating(state.engine):
            for batch in batches.loader(first=0, workers=self.config.workers):
                try:
                    with self._precision():
                        forward = self._forward(state, position, batch.to(self.device), whole=self.team.size == 1)
                        self.method.survey(forward, position, state.memory)
                except NaNError as error:
                    raise self._diverged(state, position, str(error)) from error
                self._stop_if_asked(state, interruption)

    def _survey_again(self, state: TrainingState, stages: tuple[Stage, ...], interruption: Interruption) -> None:
        """A run that goes on within a stage: what the method saw before it, where that is in no checkpoint."""
        cursor = state.cursor
        if cursor.finished or (cursor.epoch, cursor.step) == (1, 0):
            return
        position = self._position(cursor, stages)
        if self.method.surveys_again(position):
            self._survey(state, replace(position, epoch=1, step=0), interruption)

    def _precision(self) -> torch.autocast:
        return torch.autocast(self.device.type, torch.bfloat16, enabled=self.config.precision == "bf16")

    def _train_batch(self, state: TrainingState, position: EpochPosition, batch: Any) -> tuple[float, dict[str, float]]:
        """One optimizer step; returns the mean loss and scalars."""
        forward = self._forward(state, position, batch)
        try:
            with self._precision():
                result = self.method.batch_loss(forward, position, state.memory)
        except InputError as error:  # a loss refuses similarities that are not finite
            raise self._diverged(state, position, str(error)) from error
        return self._step(state, position, result.per_pair.mean(), forward), result.scalars

    def _forward(self, state: TrainingState, position: EpochPosition, batch: Any, *, whole: bool = False) -> Forward:
        """The views of the batch; encoded in pieces where it is larger than one, unless it is asked for `whole`."""
        size = self.config.piece_size
        if whole or size is None or (size >= len(batch) and self.team.size == 1):
            return Forward(state.engine, batch, state.auxiliary, self._prepared)
        place = (self.config.seed, position.stage, position.epoch, position.step)
        return ForwardInPieces(
            state.engine, batch, state.auxiliary, size, place, self._precision, self._prepared, self.team
        )

    def _prepared(self, ids: torch.Tensor) -> PairBatch:
        """Any pairs of the training set as a batch, unaltered."""
        return pair_batch(self.data.pairs, self.data.preparation, ids.cpu().numpy()).to(self.device)

    def _step(self, state: TrainingState, position: EpochPosition, loss: torch.Tensor, forward: Forward) -> float:
        """One step of whatever has a gradient of the loss, whose value is returned."""
        value = float(loss.detach())
        if not math.isfinite(value):
            raise self._diverged(state, position, f"the loss is {value}")
        state.optimizer.zero_grad(set_to_none=True)
        forward.backward(loss)
        trained = [*state.engine.networks(), *([state.auxiliary] if state.auxiliary is not None else [])]
        for network in trained:
            norm = torch.nn.utils.clip_grad_norm_(network.parameters(), self.config.clip or math.inf)
            if not bool(torch.isfinite(norm)):  # one such step would make every parameter NaN
                raise self._diverged(state, position, f"the gradient norm is {float(norm)}")
        state.optimizer.step()
        if self.method.auxiliary.follows:
            self.method.auxiliary.follow(state.engine, state.auxiliary, position)
        return value

    def _diverged(self, state: TrainingState, position: EpochPosition, what: str) -> DivergedError:
        sound = f" {self.folder.path} holds the last sound checkpoint." if self.folder.checkpoint.exists() else ""
        return DivergedError(
            f"training diverged in epoch {position.overall}, batch {state.cursor.step}: {what}. Lower --learning-rate "
            f"(now {self.learning_rate:g}).{sound}"
        )

    def _finish_epoch(self, state: TrainingState, position: EpochPosition, watch: Stopwatch, rate: float) -> None:
        """Score, log, keep the best, and move the cursor to the next epoch (and stage).

        Args:
            watch: since the epoch began; what training costs is what was done until here, without scoring.
            rate: pairs a second, in batches alone.
        """
        cursor, observers = state.cursor, self.observers
        finished = self.method.finish_epoch(position, state.memory)
        spent = {"seconds": round(watch.seconds, 3), "cpu_seconds": round(watch.cpu_seconds, 3)}
        if self.team.leads:
            timing = {"epoch": position.overall, **spent, "pairs_per_second": round(rate, 1)}
            append_line(self.folder.timings, timing)
        try:
            dev = self.team.told(observers.score_dev) if observers.score_dev else None
        except NaNError as error:  # the last step of the epoch was one too far
            raise self._diverged(state, position, str(error)) from error
        score = None if dev is None else dev[observers.figure]
        record: Scores = {
            "epoch": position.overall,
            "stage": position.stage,
            "loss": cursor.loss_sum / cursor.pairs_seen,
            **{name: total / cursor.pairs_seen for name, total in cursor.scalar_sums.items()},
            **cursor.epoch_scalars,
            **finished,
            "learning_rate": state.optimizer.param_groups[0]["lr"],
            "dev": dev,
            **observers.score_memory(),
        }
        better = score is None or cursor.best_score is None or score > cursor.best_score
        # Of an earlier stage and the last one, which is the model unless the other is better, the last one on a tie.
        earlier = cursor.best_epoch is not None and cursor.best_epoch <= position.overall - position.epoch
        better = better or (score == cursor.best_score and position.in_last_stage and earlier)
        if better and self.method.may_keep(position):
            cursor.best_score = score
            cursor.best_epoch = position.overall
            if self.team.leads:
                observers.keep_best()
        if self.team.leads:
            append_line(self.folder.metrics, record)
        self._advance(state, position, score)
        self._save(state)
        if self.team.leads:
            observers.epoch_done(position.overall, sum(stage.epochs for stage in position.stages))

    def _advance(self, state: TrainingState, position: EpochPosition, score: float | None) -> None:
        cursor = state.cursor
        state.cursor = Cursor(
            stage=cursor.stage,
            epoch=cursor.epoch + 1,
            epochs_logged=cursor.epochs_logged + 1,
            best_score=cursor.best_score,
            best_epoch=cursor.best_epoch,
            last_score=score,
        )
        if position.epoch < position.stages[position.stage].epochs:
            return
        if position.in_last_stage:
            state.cursor.finished = True
            return
        state.cursor.stage, state.cursor.epoch = cursor.stage + 1, 1
        fresh = self.fresh(state.cursor.stage, state.auxiliary)
        if position.stages[state.cursor.stage].goes_on:
            fresh.engine.load_state_dict(state.engine.state_dict())
            if fresh.auxiliary is not None and state.auxiliary is not None:
                fresh.auxiliary.load_state_dict(state.auxiliary.state_dict())
        state.engine, state.auxiliary, state.optimizer = fresh.engine, fresh.auxiliary, fresh.optimizer


def progress_title(position: EpochPosition, figure: str, score: float | None) -> str:
    """What stands before the bar: the epoch of all epochs, and the dev figure after the last one."""
    title = f"epoch {position.overall}/{sum(stage.epochs for stage in position.stages)}"
    return title if score is None else f"{title}, dev {FIGURE_TITLES[figure].format(score)}"


def set_learning_rate(optimizer: torch.optim.Optimizer, rate: float) -> None:
    """The rate, for each group of parameters in its own units."""
    for group in optimizer.param_groups:
        group["lr"] = rate * group.get(RATE_SCALE, 1.0)
