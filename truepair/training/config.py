"""The options of training that every method shares; importable without torch, so that `--help` is instant."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Literal

from truepair.device import DEVICE_HELP
from truepair.errors import InputError
from truepair.files import check_values
from truepair.option import Options, option

if TYPE_CHECKING:
    import torch

RATE_SCALE = "rate_scale"
"""Key of a parameter group of the optimizer: its learning rate in units of that of training."""


@dataclass(frozen=True)
class TrainingConfig(Options):
    """How a model is trained, whatever the method."""

    epochs: int = option(20, "epochs of the last (or only) stage", least=1)
    seed: int = option(0, "seed of initialisation, order, augmentation", least=0)
    batch_size: int = option(
        128, "pairs a batch (128 in CRCL, GSC, UGNCL, DisNCL; UOT-RCL: 100, or 500 on NUS-WIDE)", least=2
    )
    learning_rate: float | None = option(
        None,
        "learning rate; default: the engine's own, mostly 1.024 / width, at most 0.004 (at width 1024, CRCL has "
        "0.0005, GSC, UGNCL and DisNCL 0.0002; UOT-RCL 0.0001 at 512)",
        above=0,
    )
    decay_after: int | None = option(
        None,
        "epochs of the last stage, those of a warm-up included, before the learning rate first falls; default: four "
        "fifths (CRCL: 15 of 32, DisNCL: 25 after the warm-up, GSC: 15)",
        least=1,
    )
    decay_every: int | None = option(
        None, "epochs from each fall of the learning rate to the next (GSC: 15); default: it falls once", least=1
    )
    decay_factor: float = option(
        0.1, "what the learning rate is multiplied by when it falls (0.1; GSC: 0.2)", above=0, most=1
    )
    schedule: Literal["steps", "cosine"] = option(
        "steps",
        "how the learning rate falls: in steps (--decay-after), or along half a cosine to zero at the end",
    )
    warm_up: float = option(
        0.0,
        "share of a stage's batches in which the learning rate rises from zero (fine-tuning: 0.1)",
        least=0,
        below=1,
    )
    optimizer: Literal["adamw", "adam"] = option("adamw", "optimizer (CRCL: AdamW; GSC, UGNCL, DisNCL, UOT-RCL: Adam)")
    weight_decay: float = option(1e-4, "weight decay (VSE∞, CRCL; the other papers name none)", least=0)
    clip: float = option(2.0, "largest gradient norm; 0 = no clipping (VSE++; the five papers name none)", least=0)
    minimum_count: int = option(4, "words seen less often become <unk> (the field's 4)", least=1)
    precision: Literal["float32", "bf16"] = option("float32", "bf16 runs the encoders under automatic mixed precision")
    piece_size: int | None = option(
        None,
        "encode a batch in pieces of so many pairs, for batches larger than the memory (GradCache): the loss and its "
        "gradient are those of the whole batch; default: the batch at once",
        least=1,
    )
    workers: int = option(0, "processes that prepare batches; 0 = in the training process", least=0)
    device: str = option("auto", DEVICE_HELP)
    checkpoint_minutes: float = option(
        10.0, "within an epoch, save a resumable state this often; epochs always save", least=0
    )

    def __post_init__(self) -> None:
        check_values(TrainingConfig, vars(self), "training")
        super().__post_init__()
        if self.schedule == "cosine" and (self.decay_after is not None or self.decay_every is not None):
            raise InputError(
                "schedule is cosine, which falls all the time and has no epoch of decay; leave out decay_after and "
                "decay_every, or take steps"
            )

    def saved(self) -> dict[str, Any]:
        """What a run keeps; without what earlier versions did not know, where it is not used: their runs go on."""
        return {name: value for name, value in asdict(self).items() if _LATER.get(name, ...) != value}

    @property
    def decay_epoch(self) -> int:
        """Epochs of the last stage at the full learning rate.

        CRCL's 15 of 32 is too early for short training: 5 of 10 epochs gave a dev rSum of 319, 8 of 10 gave 331
        (`fashion_precomp`, 40 % noise, one piece).
        """
        return self.decay_after if self.decay_after is not None else max(1, round(self.epochs * 4 / 5))

    def decay_at(self, epoch: int, after: int | None) -> float:
        """What the full learning rate is multiplied by in an epoch of a stage, counted from 1.

        Args:
            after: epochs of the stage before the rate first falls; None: it does not.
        """
        if after is None or epoch <= after:
            return 1.0
        falls = 1 if self.decay_every is None else 1 + (epoch - after - 1) // self.decay_every
        return float(self.decay_factor**falls)

    def rate_at(self, epoch: int, step: int, steps: int, epochs: int, after: int | None) -> float:
        """What the full learning rate is multiplied by for a batch.

        Args:
            epoch: of the stage, from 1.
            step, steps: the batch of the epoch, from 0, and how many there are.
            epochs: those of the stage.
            after: as in `decay_at`.
        """
        done, total = (epoch - 1) * steps + step, epochs * steps
        rising = self.warm_up * total
        if done < rising:
            return (done + 1) / (math.floor(rising) + 1)
        if self.schedule == "cosine" and after is not None:
            return 0.5 * (1 + math.cos(math.pi * (done - rising) / (total - rising)))
        return self.decay_at(epoch, after)

    def rate_for(self, default: float) -> float:
        """The full learning rate: as asked for, or the default of the engine."""
        return self.learning_rate if self.learning_rate is not None else default


_LATER = {"schedule": "steps", "warm_up": 0.0, "piece_size": None}
"""Options that earlier versions did not have, with what they did."""


def build_optimizer(
    config: TrainingConfig, groups: list[tuple[list[torch.nn.Parameter], float]], learning_rate: float
) -> torch.optim.Optimizer:
    """A new optimizer of groups of parameters, each with its learning rate in units of the given one."""
    from truepair.optimizers import Adam, AdamW, all_at_once

    kinds: dict[str, type[Adam | AdamW]] = {"adamw": AdamW, "adam": Adam}
    described: list[dict[str, Any]] = [{"params": parameters, RATE_SCALE: scale} for parameters, scale in groups]
    together = all_at_once(values for parameters, _ in groups for values in parameters)
    return kinds[config.optimizer](described, lr=learning_rate, weight_decay=config.weight_decay, foreach=together)
