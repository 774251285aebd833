"""The options of training that every method shares; importable without torch, so that `--help` is instant."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from truepair.device import DEVICE_HELP
from truepair.files import check_values
from truepair.option import Options, option

if TYPE_CHECKING:
    import torch

RATE_SCALE = "rate_scale"
"""Key of a parameter group of the optimizer: its learning rate in units of that of training."""


@dataclass(frozen=True)
class TrainingConfig(Options):
    """How a model is trained, whatever the method."""

    epochs: int = option(20, "epochs of the last (or only) stage, which gives the model", least=1)
    seed: int = option(0, "seed of initialisation, order, augmentation", least=0)
    batch_size: int = option(
        128, "pairs a batch (128 in CRCL, GSC, UGNCL, DisNCL; UOT-RCL: 100, or 500 on NUS-WIDE)", least=2
    )
    learning_rate: float | None = option(
        None,
        "learning rate; default: 1.024 / width, at most 0.004 (at width 1024, CRCL has 0.0005, GSC, UGNCL and DisNCL "
        "0.0002; UOT-RCL 0.0001 at 512)",
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
    optimizer: Literal["adamw", "adam"] = option("adamw", "optimizer (CRCL: AdamW; GSC, UGNCL, DisNCL, UOT-RCL: Adam)")
    weight_decay: float = option(1e-4, "weight decay (VSE∞, CRCL; the other papers name none)", least=0)
    clip: float = option(2.0, "largest gradient norm; 0 = no clipping (VSE++; the five papers name none)", least=0)
    minimum_count: int = option(4, "words seen less often become <unk> (the field's 4)", least=1)
    precision: Literal["float32", "bf16"] = option("float32", "bf16 runs the encoders under automatic mixed precision")
    workers: int = option(0, "processes that prepare batches; 0 = in the training process", least=0)
    device: str = option("auto", DEVICE_HELP)
    checkpoint_minutes: float = option(
        10.0, "within an epoch, save a resumable state this often; epochs always save", least=0
    )

    def __post_init__(self) -> None:
        check_values(TrainingConfig, vars(self), "training")
        super().__post_init__()

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

    def rate_for(self, width: int) -> float:
        """The full learning rate. Adam's best rate falls as layers grow wider, so the default does, too.

        On `fashion_precomp` (width 256, 10 epochs, dev rSum of InfoNCE on matched pairs) 0.004 beat 0.002 and 0.0005.
        """
        return self.learning_rate if self.learning_rate is not None else min(0.004, 1.024 / width)


def build_optimizer(
    config: TrainingConfig, groups: list[tuple[list[torch.nn.Parameter], float]], learning_rate: float
) -> torch.optim.Optimizer:
    """A new optimizer of groups of parameters, each with its learning rate in units of the given one."""
    import torch

    kinds: dict[str, type[torch.optim.Adam]] = {"adamw": torch.optim.AdamW, "adam": torch.optim.Adam}
    described: list[dict[str, Any]] = [{"params": parameters, RATE_SCALE: scale} for parameters, scale in groups]
    return kinds[config.optimizer](described, lr=learning_rate, weight_decay=config.weight_decay)
