"""Average precision: how early the items of a query's own class come, whoever its partner is.

The places of the right items in a query's ranking decide every figure here, so `right_places` alone looks at
similarities. Places count from 1, and ties count against the model: of equally similar items the wrong ones come first,
so that a model whose similarities are all equal ranks every right item last.

Places are counted by searching in sorted values; no order of items is made, which would take several times as long.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import numpy as np
import torch
from torch import Tensor

from truepair.data.pairs import Array, IntArray
from truepair.errors import InputError
from truepair.evaluation.ranks import not_a_number
from truepair.evaluation.retrieval import ArrayLike

STRIP_BYTES = 512 << 20
"""Default memory for columns of a similarity matrix: 20,000 × 20,000 then takes four passes over its blocks."""

SORTED_BYTES = 8 << 20  # of a sorted copy of some rows, a few of which stay in the cache

Score = Callable[[IntArray], Array]
"""From the places of a query's right items, (m,) ascending from 1, to figures of the query, (F,) float64."""


def mean_average_precision(
    similarity: ArrayLike, query_labels: ArrayLike, item_labels: ArrayLike, *, at: int | None = None
) -> float:
    """mAP in [0, 1]: the mean of `average_precisions` over the queries that have a right item; others are left out.

    MRL's released code counts such queries as 0. Where every query has a right item, both are the same.

    Args:
        similarity, query_labels, item_labels, at: as `average_precisions`.

    Raises:
        InputError: as `average_precisions`, or no query has a right item.
    """
    found = average_precisions(similarity, query_labels, item_labels, at=at)
    answerable = found[~np.isnan(found)]
    if not len(answerable):
        raise InputError(
            f"none of {len(found)} queries has an item of its own class; check that query and item labels are "
            "numbered alike"
        )
    return float(answerable.mean())


def average_precisions(
    similarity: ArrayLike, query_labels: ArrayLike, item_labels: ArrayLike, *, at: int | None = None
) -> Array:
    """Average precision of every query, (queries,) float64 in [0, 1]; NaN where no item is of its class.

    With m right items at places r_1 < … < r_m: AP = (1/m) Σ_i i/r_i. With `at` = k only places up to k count:
    AP@k = Σ_{r_i ≤ k} i/r_i / min(k, m), which is 1 just where the first min(k, m) items are all right. MRL's
    released code divides by the number of right items found within k instead; a query that finds a single one, at the
    first place, would then score 1. Over all items the two agree.

    Args:
        similarity: (queries, items) floats; infinite values are fine.
        query_labels: (queries,) integers.
        item_labels: (items,) integers.
        at: k of AP@k, at least 1; None for all items.

    Raises:
        InputError: a shape or dtype does not fit, `at` is below 1, there is nothing to rank, or a similarity is NaN.
    """
    queries, items = as_labels("query_labels", query_labels), as_labels("item_labels", item_labels)
    check_at(at)
    if tuple(similarity.shape) != (len(queries), len(items)) or not len(queries) or not len(items):
        raise InputError(
            f"similarity has shape {tuple(similarity.shape)} for {len(queries)} query labels and {len(items)} item "
            "labels; expected one row per query, one column per item, and at least one of each"
        )
    return scores(similarity, queries, items, lambda places: np.array([average_precision(places, at=at)]))[:, 0]


def average_precision(places: IntArray, *, at: int | None = None) -> float:
    """AP or AP@k of one query from the places of its right items, (m,) ascending from 1; NaN without any."""
    if not len(places):
        return float("nan")
    precision = np.arange(1, len(places) + 1) / places
    if at is None:
        return float(precision.mean())
    return float(precision[places <= at].sum()) / min(at, len(places))


def scores_both_ways(
    blocks: Iterable[Tensor],
    image_labels: IntArray,
    text_labels: IntArray,
    score: Score,
    *,
    memory_bytes: int = STRIP_BYTES,
) -> tuple[Array, Array]:
    """Figures of every image as a query for texts, (images, F), and of every text as a query for images, (texts, F).

    Rows are scored as they come. Columns are gathered first, as many at a time as the memory holds, so the blocks are
    asked for again until all columns had their turn; once only where a cell is costly (local engines).

    Args:
        blocks: rows of the similarity matrix (images, texts) from the first to the last; can be iterated again.
        image_labels: (images,) int64, at least one.
        text_labels: (texts,) int64, at least one.
        score: figures of one query, as many for each.
        memory_bytes: for columns; one is always taken.

    Raises:
        InputError: the blocks do not fit the labels, or a similarity is NaN.
    """
    images, texts = len(image_labels), len(text_labels)
    width = texts if getattr(blocks, "costly", False) else min(texts, max(1, memory_bytes // (4 * images)))
    of_images, of_texts = [], []
    for first in range(0, texts, width):
        columns = slice(first, min(first + width, texts))
        strip = torch.empty(0)
        start = 0
        for block in blocks:
            stop = start + len(block)
            _check_block(block, start, stop, images, texts)
            if start == 0:
                strip = block.new_empty((columns.stop - first, images), device="cpu")
            strip[:, start:stop] = block[:, columns].T
            if first == 0 and len(block):
                of_images.append(scores(block, image_labels[start:stop], text_labels, score))
            start = stop
        if start != images:
            raise InputError(
                f"the blocks hold {start} images, the labels {images}; blocks must be iterable again and give every "
                "image each time"
            )
        of_texts.append(scores(strip, text_labels[columns], image_labels, score))
    return np.concatenate(of_images), np.concatenate(of_texts)


def scores(similarity: ArrayLike, query_labels: IntArray, item_labels: IntArray, score: Score) -> Array:
    """Figures of every query, (queries, F), from a matrix (queries, items); raises InputError: a similarity is NaN."""
    own = _items_by_class(item_labels)
    none: IntArray = np.empty(0, dtype=np.int64)
    rows_at_once = max(1, SORTED_BYTES // (4 * len(item_labels)))
    found = []
    for start in range(0, len(query_labels), rows_at_once):
        rows = _as_rows(similarity[start : start + rows_at_once])
        ordered = np.sort(rows, axis=1)
        if np.isnan(ordered[:, -1]).any():  # sorting puts NaN last
            row, column = np.argwhere(np.isnan(rows))[0].tolist()
            raise not_a_number(start + row, column, "query, item")
        for row, values, label in zip(rows, ordered, query_labels[start : start + rows_at_once].tolist(), strict=True):
            found.append(score(right_places(row, values, own.get(label, none))))
    return np.array(found, dtype=np.float64)


def right_places(similarity: Array, ordered: Array, right: IntArray) -> IntArray:
    """Places of the right items in one query's ranking, (m,) int64, ascending from 1.

    Args:
        similarity: (items,) of the query to every item.
        ordered: the same values in ascending order.
        right: (m,) which items are right.
    """
    values = np.sort(similarity[right])
    at_least = len(ordered) - np.searchsorted(ordered, values, side="left")
    right_at_least = len(values) - np.searchsorted(values, values, side="left")
    wrong_before = (at_least - right_at_least)[::-1]
    return wrong_before + np.arange(1, len(values) + 1)


def check_at(at: int | None) -> None:
    """Raises InputError: `at` is neither None nor at least 1."""
    if at is not None and at < 1:
        raise InputError(f"at is {at}; expected at least 1, or None for all items")


def as_labels(name: str, labels: ArrayLike | Sequence[int]) -> IntArray:
    """The labels as int64; raises InputError: they are not integers of rank 1."""
    found = labels.detach().cpu().numpy() if isinstance(labels, Tensor) else np.asarray(labels)
    if found.ndim != 1 or found.dtype.kind not in "iu":
        raise InputError(f"{name} is {found.dtype} of shape {found.shape}; expected whole numbers of rank 1")
    return found.astype(np.int64)


def _items_by_class(labels: IntArray) -> dict[int, IntArray]:
    classes, first = np.unique(np.sort(labels), return_index=True)
    groups = np.split(np.argsort(labels, kind="stable"), first[1:])
    return dict(zip(classes.tolist(), groups, strict=True))


def _as_rows(rows: ArrayLike) -> Array:
    """Contiguous rows in float32, or float64 where they are."""
    if isinstance(rows, Tensor):
        rows = rows.detach().cpu()
        rows = (rows if rows.dtype == torch.float64 else rows.float()).numpy()
    kind = rows.dtype if rows.dtype == np.float64 else np.dtype(np.float32)
    if rows.dtype.kind != "f":
        raise InputError(f"similarity is {rows.dtype}; expected floats")
    return np.ascontiguousarray(rows, dtype=kind)


def _check_block(block: Tensor, start: int, stop: int, images: int, texts: int) -> None:
    if block.ndim != 2 or block.shape[1] != texts or stop > images or not block.is_floating_point():
        raise InputError(
            f"similarity is {block.dtype} of shape {tuple(block.shape)} from image {start} on; expected floats, "
            f"{images} images (rows) altogether and {texts} texts (columns), as there are labels"
        )
