"""Classes of labelled pairs: how many pairs each has, and leaving out the small ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from truepair.data.pairs import BoolArray, IntArray, Pairs
from truepair.errors import InputError


def class_sizes(pairs: Pairs) -> IntArray:
    """(K,) the number of pairs of each class, by the true labels where they are known.

    Raises:
        InputError: the pairs have no labels.
    """
    return np.bincount(_truth(pairs), minlength=len(pairs.class_names)).astype(np.int64)


def keep_classes(train: Pairs, others: Sequence[Pairs | None], *, least: int) -> tuple[Pairs, list[Pairs | None]]:
    """All splits without the classes that have fewer than `least` (>= 1) training pairs, and classes numbered anew.

    Sizes are counted by the true labels where they are known, so this belongs before label noise; the order of the
    classes stays. Images and texts in no pair any more go too, so that nothing is retrieved among them. Splits that
    lose a pair have what stays of their features copied into memory. `None` among `others` stays `None`.

    Raises:
        InputError: `least` is below 1; the splits have no labels, or differ in their classes; fewer than two classes
            are left, or no pair of a split; a given label that is wrong belongs to a class that is left out.
    """
    if least < 1:
        raise InputError(f"least is {least} pairs a class; expected at least 1")
    sizes = class_sizes(train)
    kept = sizes >= least
    if kept.sum() < 2:
        raise InputError(
            f"{train.name}: {kept.sum()} of {len(kept)} classes have at least {least} training pairs (the largest has "
            f"{sizes.max(initial=0)}); expected two or more. Ask for fewer pairs a class"
        )
    for pairs in others:
        if pairs is not None and pairs.class_names != train.class_names:
            raise InputError(
                f"{pairs.name} and {train.name} have different classes ({len(pairs.class_names)} and "
                f"{len(train.class_names)}); expected splits of one source, loaded with the same label column"
            )
    return _keep(train, kept), [None if pairs is None else _keep(pairs, kept) for pairs in others]


def _keep(pairs: Pairs, kept: BoolArray) -> Pairs:
    inside = kept[_truth(pairs)]
    if not inside.any():
        raise InputError(f"{pairs.name}: none of its {len(pairs)} pairs is of a class that stays; ask for fewer pairs")
    number = np.where(kept, np.cumsum(kept) - 1, -1)
    rest = pairs if inside.all() else pairs.take(np.flatnonzero(inside)).compact()
    renamed = tuple(name for name, keep in zip(pairs.class_names, kept, strict=True) if keep)
    given, truth = (None if labels is None else number[labels] for labels in (rest.labels, rest.true_labels))
    if given is not None and (given < 0).any():
        raise InputError(
            f"{pairs.name}: {(given < 0).sum()} pairs of classes that stay have wrong labels of classes that are left "
            "out; leave out small classes before adding label noise"
        )
    return replace(rest, labels=given, true_labels=truth, class_names=renamed)


def _truth(pairs: Pairs) -> IntArray:
    labels = pairs.labels if pairs.true_labels is None else pairs.true_labels
    if labels is None:
        raise InputError(f"{pairs.name} has no labels; name the column that holds them (label, --label)")
    return labels
