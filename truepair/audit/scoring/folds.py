"""Which pairs a model may not train on because it is to score them, and the mismatches mixed in to measure by."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from truepair.audit.scoring.synthetic_mismatches import KINDS, described_pairs, mismatched_pairs
from truepair.correspondence.mixture_proportion import LEAST_SYNTHETIC
from truepair.data.pairs import IntArray, Pairs
from truepair.errors import InputError
from truepair.seeding import generator

LEAST_PAIRS = 60
LEAST_MISMATCHES, LARGEST_SHARE = 300, 0.1
SOME_TO_SPARE = 1.2


@dataclass(frozen=True)
class Folds:
    """The given pairs, and behind them the synthetic mismatches: pairs that were mismatched on purpose.

    Attributes:
        pairs: N given pairs and P of the synthetic mismatches, one table.
        given: N.
        fold: (N + P,) int64, the fold of every pair. All pairs of an image are in one fold, and a pair of the
            synthetic is made of an image and a caption of the same fold.
        image_of, caption_of: (N + P,) int64, the given pair whose image (caption) a pair has; its own number for given
            pairs.
        kind: (N + P,) int64, 0 for given pairs, else 1 + the place of its kind in `synthetic_mismatches.KINDS`.
    """

    pairs: Pairs
    given: int
    fold: IntArray
    image_of: IntArray
    caption_of: IntArray
    kind: IntArray

    def trained_on(self, fold: int) -> IntArray:
        """The pairs that the model of a fold is trained on: all of the other folds, synthetic included."""
        return np.flatnonzero(self.fold != fold)

    def held_out(self, fold: int) -> IntArray:
        return np.flatnonzero(self.fold == fold)

    def of_kind(self, kind: str) -> IntArray:
        return np.flatnonzero(self.kind == 1 + KINDS.index(kind))


def make_folds(pairs: Pairs, *, folds: int, synthetic_share: float, seed: int) -> Folds:
    """Deal the images out to the folds, and mix synthetic mismatches among the pairs.

    Args:
        pairs: the given pairs; what is known of their truth is dropped.
        synthetic_share: how many synthetic mismatches of each kind are added, as a share of the given pairs; of few
            pairs more (`share_added`).

    Raises:
        InputError: fewer than 60 pairs, too few images for the folds, or so few pairs or captions so alike that there
            are not the 20 random mismatches that a verdict needs.
    """
    if folds < 2:
        raise InputError(f"{folds} folds; expected at least 2: a pair is scored by a model that did not train on it")
    if not 0 < synthetic_share < 1:
        raise InputError(f"synthetic_share is {synthetic_share}; expected a share above 0 and below 1")
    if len(pairs) < LEAST_PAIRS:
        raise InputError(
            f"{pairs.name}: {len(pairs)} pairs are too few to train on and to score (at least {LEAST_PAIRS}); "
            "audit them by a finished run (--run) or by embeddings (--embeddings)"
        )
    images = np.unique(pairs.image_index)
    if len(images) < 2 * folds:
        raise InputError(f"{pairs.name}: {len(images)} images cannot be dealt out to {folds} folds; use fewer folds")
    dealt = np.full(len(pairs.images), -1, dtype=np.int64)
    dealt[images] = generator(seed, "audit folds").permutation(len(images)) % folds
    fold = dealt[pairs.image_index]
    described = described_pairs(pairs, seed=seed)
    drawn = []
    for kind in KINDS:
        share = share_added(kind, len(pairs), synthetic_share)
        for k in range(folds):  # of one fold each, so that its model has seen neither side
            rows = np.flatnonzero(fold == k)
            rng = generator(seed, "audit yardstick", KINDS.index(kind), k)  # the name is part of the numbers
            count = max(1, round(share * len(rows)))
            drawn.append(mismatched_pairs(pairs, rows, kind, count, described[rows], rng))
    found = sum(len(mismatches) for mismatches in drawn if mismatches.kind == "random")
    if not any(len(mismatches) for mismatches in drawn):
        raise InputError(
            f"{pairs.name}: the captions all say the same, so that no pair can be told from a mismatched one; expected "
            "captions that differ"
        )
    if found < LEAST_SYNTHETIC:  # refused before anything is trained
        raise InputError(
            f"{pairs.name}: of {len(pairs)} pairs only {found} could be mismatched on purpose, at least "
            f"{LEAST_SYNTHETIC} are needed to measure by: too few pairs, or too many that say the same. Use fewer "
            "folds, or audit more pairs"
        )
    own = np.arange(len(pairs), dtype=np.int64)
    image_of = np.concatenate([own, *(mismatches.image_of for mismatches in drawn)])
    caption_of = np.concatenate([own, *(mismatches.caption_of for mismatches in drawn)])
    kinds = [0, *(1 + KINDS.index(mismatches.kind) for mismatches in drawn)]
    kind_of = np.repeat(kinds, [len(own), *map(len, drawn)])
    mixed = replace(
        pairs.without_truth().take(image_of), text_index=pairs.text_index[caption_of], labels=None, class_names=()
    )
    return Folds(mixed, len(pairs), fold[image_of], image_of, caption_of, kind_of)


def share_added(kind: str, pairs: int, synthetic_share: float) -> float:
    """How many mismatched pairs of a kind are added, as a share of the given ones.

    Of few pairs up to 10 %, so that there are 300 of each kind; of very few as many random ones as a verdict needs.
    """
    share = max(synthetic_share, min(LEAST_MISMATCHES / pairs, LARGEST_SHARE))
    return max(share, SOME_TO_SPARE * LEAST_SYNTHETIC / pairs) if kind == "random" else share
