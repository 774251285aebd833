"""The figures of a retrieval table: recall at k both ways, their sum, median and mean ranks, the k-fold protocol."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from truepair.data.pairs import Array, IntArray
from truepair.errors import InputError
from truepair.evaluation.ranks import UNDESCRIBED, ranks

ArrayLike = Tensor | Array

FIELD_KS = (1, 5, 10)
"""The k every table of the field reports."""
TABLE_FIGURES = (*(f"{way}_r{k}" for way in ("i2t", "t2i") for k in FIELD_KS), "rsum")


def recall(similarity: ArrayLike, image_of_text: ArrayLike, *, ks: Sequence[int] = FIELD_KS) -> dict[str, float]:
    """The figures of one similarity matrix, as `recall_from_ranks` names them.

    Args:
        similarity: (images, texts) floats.
        image_of_text: (texts,) integers, the image each text belongs to. Images without a text are no queries, but
            stay candidates for every text.
        ks: the k of recall at k.

    Raises:
        InputError: a shape, dtype or index does not fit, a similarity is NaN, or there is nothing to rank.
    """
    image_ranks, text_ranks = ranks(_as_tensor("similarity", similarity), _as_index(image_of_text))
    return recall_from_ranks(image_ranks, text_ranks, ks=ks)


def recall_from_ranks(
    image_ranks: ArrayLike, text_ranks: ArrayLike, *, ks: Sequence[int] = FIELD_KS
) -> dict[str, float]:
    """The figures of ranks counted from 0, as `ranks` gives them.

    Keys: `i2t_r{k}` and `t2i_r{k}`, the percentage [0, 100] of images (texts) whose right text (image) is among the
    first k; `rsum`, the sum of all of these; `i2t_median_rank`, `i2t_mean_rank`, `t2i_median_rank`,
    `t2i_mean_rank`, counted from 1. A median between two ranks is rounded down, as the field does.

    Args:
        image_ranks: (images,) integers; -1 marks images without a text, which are left out.
        text_ranks: (texts,) integers.
        ks: the k of recall at k.

    Raises:
        InputError: a k is not positive or given twice, a rank is negative, or one side has no ranks.
    """
    if not ks or min(ks) < 1 or len(set(ks)) != len(ks):
        raise InputError(f"ks is {tuple(ks)}; expected positive numbers, each once, such as {FIELD_KS}")
    image_side = _as_tensor("image_ranks", image_ranks).cpu().numpy()
    text_side = _as_tensor("text_ranks", text_ranks).cpu().numpy()
    sides = {"i2t": image_side[image_side != UNDESCRIBED], "t2i": text_side}
    for name, side in sides.items():
        if side.ndim != 1 or not len(side) or not np.issubdtype(side.dtype, np.integer) or side.min() < 0:
            raise InputError(
                f"{name} ranks are {side.dtype} of shape {side.shape}; expected at least one, integers of rank 1, "
                "counted from 0"
            )
    figures = {f"{name}_r{k}": 100.0 * float((side < k).mean()) for name, side in sides.items() for k in ks}
    figures["rsum"] = sum(figures.values())
    for name, side in sides.items():
        figures[f"{name}_median_rank"] = float(np.floor(np.median(side))) + 1
        figures[f"{name}_mean_rank"] = float(side.mean()) + 1
    return figures


class Fold(NamedTuple):
    """One fold of an evaluation set: what to encode and compare, and which belong together within the fold."""

    images: IntArray
    """(images of the fold,) their numbers in the whole set."""
    texts: IntArray
    """(texts of the fold,) their numbers in the whole set."""
    image_of_text: IntArray
    """(texts of the fold,) the position within `images` of each text's image."""


def folds_of(image_of_text: ArrayLike, images: int, folds: int) -> Iterator[Fold]:
    """Consecutive, equally many images per fold, each fold with the texts of its images.

    Args:
        image_of_text: (texts,) integers, the image each text belongs to.
        images: number of images.
        folds: number of folds; must divide `images`.

    Raises:
        InputError: the images do not divide, an index is outside, or a fold has no text.

    Example:
        The figures of "5 × 1K" without the 5K × 25K matrix, one fold's similarity at a time::

            mean_over_folds(
                recall(encoded_images[fold.images] @ encoded_texts[fold.texts].T, fold.image_of_text)
                for fold in folds_of(image_of_text, len(encoded_images), folds=5)
            )
    """
    image = _as_index(image_of_text).cpu().numpy()
    if folds < 1 or images < 1 or images % folds:
        raise InputError(
            f"{images} images do not divide into {folds} equal folds; choose a number of folds that divides them, or "
            "evaluate the whole set at once"
        )
    outside = np.flatnonzero((image < 0) | (image >= images))
    if len(outside):
        raise InputError(f"image_of_text[{outside[0]}] is {image[outside[0]]}; expected 0 … {images - 1}")
    size = images // folds
    texts_of_fold = [np.flatnonzero(image // size == fold) for fold in range(folds)]
    for fold, texts in enumerate(texts_of_fold):
        if not len(texts):
            raise InputError(
                f"fold {fold} (images {fold * size} … {(fold + 1) * size - 1}) has no text; use fewer folds, or leave "
                "the images without a text out"
            )
    return (
        Fold(np.arange(fold * size, (fold + 1) * size), texts, image[texts] - fold * size)
        for fold, texts in enumerate(texts_of_fold)
    )


def mean_over_folds(figures: Iterable[dict[str, float]]) -> dict[str, float]:
    """The mean of each figure over folds, every fold with the same weight.

    Raises:
        InputError: there are no folds, or they do not report the same figures.
    """
    rows = list(figures)
    if not rows or any(row.keys() != rows[0].keys() for row in rows):
        raise InputError(f"{len(rows)} folds to average; expected at least one, all with the same figures")
    return {name: sum(row[name] for row in rows) / len(rows) for name in rows[0]}


def fold_recall(
    similarity: ArrayLike, image_of_text: ArrayLike, *, folds: int = 5, ks: Sequence[int] = FIELD_KS
) -> dict[str, float]:
    """The figures of the field's k-fold protocol ("5 × 1K"): `recall` within each fold, averaged over the folds.

    Args:
        similarity: (images, texts) floats.
        image_of_text: (texts,) integers, the image each text belongs to.
        folds: number of consecutive, equal folds of images; each text goes with its image.
        ks: the k of recall at k.

    Raises:
        InputError: as `recall` and `folds_of`.

    See Also:
        folds_of: the folds alone, to compute the similarity of one at a time.
    """
    whole = _as_tensor("similarity", similarity)
    index = _as_index(image_of_text)
    if whole.ndim != 2 or whole.shape[1] != len(index):
        raise InputError(
            f"similarity has shape {tuple(whole.shape)}; expected (images, {len(index)}): one column per text"
        )
    return mean_over_folds(
        recall(
            whole[fold.images[0] : fold.images[-1] + 1].index_select(1, torch.from_numpy(fold.texts).to(whole.device)),
            fold.image_of_text,
            ks=ks,
        )
        for fold in folds_of(index, len(whole), folds)
    )


def _as_index(image_of_text: ArrayLike) -> Tensor:
    index = _as_tensor("image_of_text", image_of_text)
    if index.is_floating_point() or index.is_complex() or index.dtype == torch.bool or index.ndim != 1:
        raise InputError(
            f"image_of_text is {index.dtype} of shape {tuple(index.shape)}; expected integers of shape (texts,)"
        )
    return index.to(torch.int64)


def _as_tensor(name: str, values: ArrayLike) -> Tensor:
    """The values as a tensor, sharing the memory of an array; nobody here writes to it."""
    if isinstance(values, Tensor):
        return values
    with warnings.catch_warnings():
        # Memory-mapped arrays are often read-only, which torch warns of.
        warnings.filterwarnings("ignore", message=".*not writable", category=UserWarning)
        try:
            return torch.from_numpy(np.ascontiguousarray(values))
        except TypeError as error:
            raise InputError(f"{name} is an array of {np.asarray(values).dtype}, which torch does not know") from error
