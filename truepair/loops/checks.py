"""What a criterion refuses, before anything is remembered of a batch."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from truepair.errors import InputError


def checked_features(images: Tensor, texts: Tensor) -> None:
    """Raises InputError: they are not two finite float tensors of one shape (B, D), B ≥ 2."""
    for side, features in (("image_features", images), ("text_features", texts)):
        if not isinstance(features, Tensor) or features.ndim != 2 or not features.is_floating_point():
            found = f"{features.dtype} {tuple(features.shape)}" if isinstance(features, Tensor) else type(features)
            raise InputError(f"{side} are {found}; expected a float tensor (B, D), one vector a pair")
        finite = torch.isfinite(features).all(dim=1)
        if not bool(finite.all()):
            raise InputError(
                f"{side}: row {int((~finite).nonzero()[0])} of the batch is not finite; look for a learning rate that "
                "is too high, or broken input of that pair"
            )
    if len(images) != len(texts):
        raise InputError(f"{len(images)} image features and {len(texts)} text features; expected one of each a pair")
    if images.shape[1] != texts.shape[1]:
        raise InputError(
            f"image features have width {images.shape[1]}, text features {texts.shape[1]}; project both into one space"
        )
    if len(images) < 2:
        raise InputError("a batch of one pair: there is nothing to tell it from. Use drop_last, or another batch size")


def checked_ids(ids: Tensor | Sequence[int] | None, count: int, seen: Tensor) -> Tensor:
    """(B,) int64 on the CPU. Raises InputError: missing, of another number, out of range, or not new this epoch."""
    if ids is None:
        raise InputError("ids are missing; give the place of each pair in the data set, or call eval() to only score")
    given = torch.as_tensor(ids).detach().cpu()
    if given.shape != (count,) or given.is_floating_point() or given.dtype == torch.bool:
        raise InputError(f"ids are {given.dtype} {tuple(given.shape)}; expected {count} whole numbers, one a pair")
    given = given.long()
    outside = (given < 0) | (given >= len(seen))
    if bool(outside.any()):
        raise InputError(
            f"id {int(given[outside][0])} is not in 0 … {len(seen) - 1}, the {len(seen)} pairs of the criterion; give "
            "the place of each pair in the data set"
        )
    ordered = given.sort().values
    twice = ordered[1:] == ordered[:-1]
    if bool(twice.any()):
        raise InputError(f"id {int(ordered[1:][twice][0])} comes twice in one batch; each pair has an id of its own")
    again = seen[given]
    if bool(again.any()):
        raise InputError(
            f"id {int(given[again][0])} was seen in this epoch already; call end_epoch() after every pass, and use a "
            "sampler without replacement or padding"
        )
    return given


def checked_scale(scale: Tensor | float) -> Tensor | float:
    """Raises InputError: it is no finite number above 0."""
    value = scale.detach() if isinstance(scale, Tensor) else torch.as_tensor(scale)
    if value.numel() != 1 or not bool(torch.isfinite(value).all()) or not float(value) > 0:
        raise InputError(f"scale is {value.tolist()}; expected one finite number above 0 (logit_scale.exp() of CLIP)")
    return scale.reshape(()) if isinstance(scale, Tensor) else float(scale)
