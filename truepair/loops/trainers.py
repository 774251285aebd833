"""`Criterion` in the trainers of other libraries: Hugging Face's `Trainer`, and that of sentence-transformers.

Both take the id of a pair, its place in the data set, from the data set itself, as its label. Nothing here is needed by
truepair's own training, and the libraries are imported when they are asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from importlib import import_module
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from truepair.errors import InputError
from truepair.files import read_tensors, tensor_bytes, write_bytes_atomically
from truepair.loops.criterion import Criterion

STATE = "criterion.safetensors"
"""The state of a criterion in the folder of a trainer's checkpoint."""

Scale = Callable[[], Tensor] | float | None


class TrainerLoss:
    """The `compute_loss_func` of a `transformers.Trainer` for models that give `image_embeds` and `text_embeds` (CLIP,
    SigLIP and their like).

    Items of the data set carry their id as `labels`; `TrainingArguments` need `remove_unused_columns=False`, since the
    model itself reads no labels. Batches of accumulated gradients count as much as they hold pairs; each is compared
    within itself. Where no gradient is asked for (evaluation), pairs count as matched and nothing is remembered.

    Args:
        criterion: the loss and its memory.
        scale: what gives the model's own scale (`lambda: model.logit_scale.exp()`), a number, or None for the method's.
    """

    def __init__(self, criterion: Criterion, scale: Scale = None) -> None:
        self.criterion, self.scale = criterion, scale

    def __call__(self, outputs: Any, labels: Tensor | None, num_items_in_batch: Tensor | int | None = None) -> Tensor:
        missing = [name for name in ("image_embeds", "text_embeds") if getattr(outputs, name, None) is None]
        if missing:
            raise InputError(
                f"the model gives no {' and no '.join(missing)}; expected one of images and texts, such as CLIP"
            )
        if labels is None:
            raise InputError(
                "the batch has no labels; give every item of the data set its place as `labels`, and TrainingArguments "
                "remove_unused_columns=False"
            )
        loss = scored(self.criterion, outputs.image_embeds, outputs.text_embeds, labels, self.scale)
        if num_items_in_batch is None:
            return loss
        share: Tensor = loss * len(labels) / num_items_in_batch  # of the pairs of an accumulated step
        return share


class SentenceTransformersLoss(nn.Module):
    """The loss of a `SentenceTransformerTrainer` on a data set of two columns, an image and a text (or any two sides),
    and the column `label` with the place of each pair.

    Args:
        model: a SentenceTransformer that encodes both columns.
        criterion, scale: as in `TrainerLoss`.
    """

    def __init__(self, model: Any, criterion: Criterion, scale: Scale = None) -> None:
        super().__init__()
        self.model, self.criterion, self.scale = model, criterion, scale

    def forward(self, sentence_features: Iterable[dict[str, Tensor]], labels: Tensor | None) -> Tensor:
        """The mean loss of a batch, 0-d; raises InputError where there are not two columns and ids."""
        sides = [self.model(features)["sentence_embedding"] for features in sentence_features]
        if len(sides) != 2:
            raise InputError(f"the data set has {len(sides)} columns beside the label; expected an image and a text")
        if labels is None:
            raise InputError("the data set has no column label; put the place of each pair there, 0 … N−1")
        images, texts = sides
        return scored(self.criterion, images, texts, labels, self.scale)


def scored(criterion: Criterion, images: Tensor, texts: Tensor, ids: Tensor, scale: Scale) -> Tensor:
    """The loss of a batch: of training where gradients are recorded, else of evaluation."""
    criterion.train(torch.is_grad_enabled())
    return criterion(images, texts, ids, scale=scale() if callable(scale) else scale)  # type: ignore[no-any-return]


def epoch_callback(criterion: Criterion) -> Any:
    """A `transformers.TrainerCallback`, for either trainer: ends the criterion's epochs, keeps its state in every
    checkpoint of the trainer, and takes it from the one that a training goes on from.

    Raises:
        InputError: transformers is not installed.
    """
    try:
        base: Any = import_module("transformers").TrainerCallback
    except ImportError as error:
        raise InputError(
            f"a callback needs the library transformers: pip install 'truepair[trainer]' ({error})"
        ) from error

    class EpochCallback(base):  # type: ignore[misc]
        def on_train_begin(self, args: Any, state: Any, control: Any, **more: Any) -> None:
            kept = checkpoint(args, state) / STATE
            if state.global_step and kept.exists():
                tensors, _ = read_tensors(kept, "the state of a criterion; start training anew")
                criterion.load_state_dict(tensors)
                if bool(criterion.seen.any()) and float(state.epoch).is_integer():  # kept between the last batch and
                    criterion.end_epoch()  # the end of its epoch, which the trainer does not come back to

        def on_epoch_end(self, args: Any, state: Any, control: Any, **more: Any) -> None:
            criterion.end_epoch()

        def on_save(self, args: Any, state: Any, control: Any, **more: Any) -> None:
            if state.is_world_process_zero:
                write_bytes_atomically(checkpoint(args, state) / STATE, tensor_bytes(criterion.state_dict(), {}))

    return EpochCallback()


def checkpoint(args: Any, state: Any) -> Path:
    """The folder of the trainer's checkpoint at its present step."""
    return Path(args.output_dir) / f"checkpoint-{state.global_step}"
