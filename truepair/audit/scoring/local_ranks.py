"""Whether an image prefers its caption to the captions most like it: evidence of any mismatch, near or random.

A caption taken from a similar pair scores better than a random one, but among the captions most like itself it is one
of many, wherever it came from: the image has no reason to rank it high. A right caption is ranked high there where a
model can tell such captions apart at all. So each pair gets two ranks,

    the caption's among the `NEIGHBOURS` captions most like it, by their similarity to the image,
    the image's among the `NEIGHBOURS` images most like it, by their similarity to the caption.

Asked is only where models see well: for the `BEST` share of captions whose like rank highest. That depends on the
caption and not on the image it stands beside, so that mismatches are as frequent there as anywhere.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from truepair.data.pairs import Array

NEIGHBOURS, LIKE = 15, 50
"""How many neighbours ranks are among, and how many captions tell how well models see captions like one."""

BEST = 0.3
SYNTHETIC_EACH = 4
LEAST_PAIRS, MOST_PAIRS = 1000, 4000
SAME = 1 - 1e-6
"""Cosine from which two captions, or two images, are the same: no neighbours, and no mismatch."""

ROWS_AT_ONCE = 512


@dataclass(frozen=True)
class LocalRanks:
    """Sums of two ranks in [0, 2], where models see well.

    Attributes:
        given: (n,) of the given pairs.
        synthetic: (k,) of random mismatches of their captions.
    """

    given: Array
    synthetic: Array


def ranks_of_spaces(
    spaces: Iterable[tuple[Tensor, Tensor]], rng: np.random.Generator, *, same: float = SAME
) -> list[LocalRanks]:
    """The local ranks of each space that has at least 1,000 pairs.

    Args:
        spaces: unit vectors of the images and texts of some given pairs, (n, D) each: a space each model has.
        rng: of the synthetic mismatches.
        same: as `SAME`.
    """
    return [local_ranks(images, texts, rng, same=same) for images, texts in spaces if len(images) >= LEAST_PAIRS]


def local_ranks(images: Tensor, texts: Tensor, rng: np.random.Generator, *, same: float = SAME) -> LocalRanks:
    """The ranks of pairs of one space.

    Args:
        images, texts: (n, D) unit vectors; row i is a pair, n ≥ 2.
    """
    count = len(images)
    more = min(max(NEIGHBOURS, LIKE), count - 1)
    near_images, near_texts = neighbours(images, texts, more, same)
    beside = near_images[:, :NEIGHBOURS], near_texts[:, :NEIGHBOURS]
    own = torch.arange(count)
    given = ranks_of(own, own, images, texts, *beside)
    seen = torch.where(near_texts[:, :LIKE] >= 0, given[near_texts[:, :LIKE].clamp(min=0)], torch.nan).nanmean(dim=1)
    best = seen.nan_to_num(-1.0).argsort(descending=True, stable=True)[: math.ceil(BEST * count)].sort().values
    captions = best.repeat(SYNTHETIC_EACH)
    others = torch.from_numpy(rng.integers(0, count, len(captions)))
    likeness = [(side[others] * side[captions]).sum(dim=1) for side in (images, texts)]
    unrelated = (likeness[0] < same) & (likeness[1] < same)
    others, captions = others[unrelated], captions[unrelated]
    synthetic = ranks_of(others, captions, images, texts, *beside)
    return LocalRanks(given[best].double().numpy(), synthetic.double().numpy())


def neighbours(images: Tensor, texts: Tensor, count: int, same: float = SAME) -> tuple[Tensor, Tensor]:
    """(n, count) the rows whose images (whose texts) are most like each row's, best first; −1 where there are no more.

    Rows with the same image or the same text are no neighbours.
    """
    found: tuple[list[Tensor], list[Tensor]] = ([], [])
    for start in range(0, len(images), ROWS_AT_ONCE):
        likeness = [side[start : start + ROWS_AT_ONCE] @ side.T for side in (images, texts)]
        alike = (likeness[0] >= same) | (likeness[1] >= same)
        for side, nearest in zip(likeness, found, strict=True):
            value, place = side.masked_fill_(alike, -torch.inf).topk(count, dim=1)
            nearest.append(place.masked_fill(value == -torch.inf, -1))
    return torch.cat(found[0]), torch.cat(found[1])


def ranks_of(
    image: Tensor, caption: Tensor, images: Tensor, texts: Tensor, near_images: Tensor, near_texts: Tensor
) -> Tensor:
    """(m,) sum of two ranks in [0, 1]: of each caption among those like it, of each image among those like it.

    Args:
        image, caption: (m,) rows of the image and of the caption of each pair.
        near_images, near_texts: (n, K) as `neighbours` finds them.
    """
    sums = [images.new_empty(0)]
    for start in range(0, len(image), ROWS_AT_ONCE):
        rows, columns = image[start : start + ROWS_AT_ONCE], caption[start : start + ROWS_AT_ONCE]
        own = (images[rows] * texts[columns]).sum(dim=1)
        sums.append(
            rank(own, images[rows], texts, near_texts[columns]) + rank(own, texts[columns], images, near_images[rows])
        )
    return torch.cat(sums)


def rank(own: Tensor, asking: Tensor, side: Tensor, near: Tensor) -> Tensor:
    """(m,) how many of the neighbours are less similar to the asking vector than its own is; equals count half.

    0.5 for one without neighbours.
    """
    similarity = torch.einsum("md,mkd->mk", asking, side[near.clamp(min=0)])
    margin = own[:, None] - similarity
    ahead = (margin > 1e-6).float() + (margin.abs() <= 1e-6).float() / 2
    known = near >= 0
    ranked = (ahead * known).sum(dim=1) / known.sum(dim=1)
    return ranked.nan_to_num(0.5)
