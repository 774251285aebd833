"""A bank of reference pairs that every pair of a collection is compared with.

A batch compares a pair with the few others that happen to stand beside it; a bank compares all pairs with the same m
others, so that scores mean the same everywhere and the cost grows with the number of pairs alone.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache, partial

import torch
from torch import Tensor
from torch.nn.functional import softplus

from truepair.errors import InputError

SHARPEST, SOFTEST = 0.005, 1.0
"""The temperatures that are searched, a tenth of CRCL's 0.05 and twenty times as much."""
USUAL_TEMPERATURE = 0.07
FITTED_PAIRS = 2048
TIE = 1e-6
"""Similarities that differ by no more are equal: float32 products of the same vectors differ by a few 1e-7."""

_GOLDEN = (math.sqrt(5) - 1) / 2
_LOG_TOLERANCE = 0.01
_UNIT_TOLERANCE = 1e-3
_BLOCK_ROWS = 1024

Block = tuple[Tensor, tuple[Tensor, Tensor]]
"""Similarities of some images to all texts, and the places in them that are an image's own: not of unrelated pairs."""


@dataclass(frozen=True)
class Bank:
    """m reference pairs of one embedding space; made by `Bank.of`.

    Attributes:
        images: (m, D) float32, unit rows.
        texts: (m, D) float32, unit rows; text j was given with image j, rightly or wrongly.
        rows: (m,) int64, ascending: which rows of the collection they are.
        temperature: τ of the matching probability.
        trust: (m,) float32 in [0, 1], how far each entry is believed to be a matched pair: its mutual rank in the bank.
            At 60 % noise most entries are not, and what they say has to be weighted.
        background: log of the mean of exp(s/τ) over the bank's images with the texts of other entries: the evidence
            that unrelated pairs find in each other.
        neighbours: k, how many nearest entries are asked.
        same: cosine from which two images, or two texts, are the same. Pairs that share one are related: they are
            not compared with each other. Infinity: only their rows tell pairs apart.
    """

    images: Tensor
    texts: Tensor
    rows: Tensor
    trust: Tensor
    temperature: float
    background: float
    neighbours: int
    same: float = math.inf

    @staticmethod
    def of(
        images: Tensor,
        texts: Tensor,
        rows: Tensor,
        *,
        temperature: float | None = None,
        neighbours: int = 30,
        same: float = math.inf,
    ) -> Bank:
        """The bank of m given pairs, up to half of which may be mismatched; arguments as in the class.

        Args:
            rows: at least 0, distinct, in any order.
            temperature: None estimates it (`fitted_temperature`).

        Raises:
            InputError: the sides are not (m, D) unit rows, a row repeats or is negative, τ ≤ 0 or k < 1.
        """
        check_sides(images, texts, rows, what="bank")
        if temperature is not None and not 0 < temperature < math.inf:
            raise InputError(f"temperature is {temperature}; expected a value above 0, or none to have it estimated")
        if neighbours < 1:
            raise InputError(f"neighbours is {neighbours}; expected at least 1")
        rows, order = rows.sort()
        if not len(rows) or int(rows[0]) < 0 or bool((rows[1:] == rows[:-1]).any()):
            raise InputError(
                f"the rows of the bank are {len(rows)}, from {int(rows[0]) if len(rows) else 'none'} on; expected at "
                "least one, distinct and not negative"
            )
        images, texts = images[order].float().contiguous(), texts[order].float().contiguous()
        tau = fitted_temperature(images, texts, same) if temperature is None else float(temperature)
        background = background_of(((block, own) for _, block, own in _blocks(images, texts, same)), tau)
        return Bank(images, texts, rows, _trust(images, texts, same), tau, background, neighbours, same)

    def __len__(self) -> int:
        return len(self.rows)

    def fit(self) -> Tensor:
        """(m,) similarity of the bank's own given pairs, in [−1, 1]."""
        return (self.images * self.texts).sum(dim=1).clamp(-1, 1)


def fitted_temperature(images: Tensor, texts: Tensor, same: float = math.inf) -> float:
    """The temperature at which the given pairs choose each other best, in [0.005, 1].

    Golden-section search over log τ for the smallest mean of the better half of the pairs' two-way InfoNCE losses,
    −(log p_ii + log pᵀ_ii)/2 (CRCL eq. 3; GSC eq. 3). The better half is chosen anew at every τ: up to half of the
    pairs may be mismatched and pull it nowhere. At most 2,048 pairs are used, evenly spaced; of one pair nothing can be
    learned, and 0.07 is returned. Pairs with images or texts of the cosine `same` are not chosen between.
    """
    count = min(len(images), FITTED_PAIRS)
    spaced = torch.arange(count) * len(images) // count
    images, texts = images[spaced], texts[spaced]
    similarity = images @ texts.T
    given = similarity.diagonal().clone()
    for first in range(0, count if same <= 1 else 0, _BLOCK_ROWS):
        row, column = _own(images, texts, same, first)
        similarity[first + row, column] = -torch.inf
    similarity.diagonal().copy_(given)
    return temperature_for(similarity)


def temperature_for(similarity: Tensor) -> float:
    """The same, from the similarities (m, m) of the given pairs' images and texts, of any scale; minus infinity where
    two pairs are not to be compared.
    """
    if len(similarity) == 1:
        return USUAL_TEMPERATURE
    loss = cache(partial(_better_half_loss, similarity))
    low, high = math.log(SHARPEST), math.log(SOFTEST)
    left, right = high - _GOLDEN * (high - low), low + _GOLDEN * (high - low)
    while high - low > _LOG_TOLERANCE:
        if loss(left) <= loss(right):
            high, right = right, left
            left = high - _GOLDEN * (high - low)
        else:
            low, left = left, right
            right = low + _GOLDEN * (high - low)
    return math.exp((low + high) / 2)


def check_sides(images: Tensor, texts: Tensor, rows: Tensor, *, what: str) -> None:
    """Refuse, with an InputError, sides that are not (n, D) unit rows of one space with one int64 number each."""
    shapes = f"{tuple(images.shape)} {images.dtype} and {tuple(texts.shape)} {texts.dtype}"
    if images.ndim != 2 or images.shape != texts.shape or not images.shape[1]:
        raise InputError(f"the {what}'s images and texts are {shapes}; expected (n, D) twice, D ≥ 1")
    if not (images.is_floating_point() and texts.is_floating_point()):
        raise InputError(f"the {what}'s images and texts are {shapes}; expected floats")
    if rows.shape != images.shape[:1] or rows.dtype != torch.int64:
        raise InputError(f"the {what}'s rows are {tuple(rows.shape)} {rows.dtype}; expected ({len(images)},) int64")
    for side, vectors in (("image", images), ("text", texts)):
        length = torch.linalg.vector_norm(vectors.float(), dim=1)
        odd = ~((length - 1).abs() < _UNIT_TOLERANCE)  # true for NaN
        if bool(odd.any()):
            row = int(odd.nonzero()[0])
            raise InputError(
                f"the {what}'s {side} {row} has length {length[row].item():.3g}; expected rows of length 1. Leave out "
                "rows of zeros and NaN, and divide the others by their length"
            )


def _better_half_loss(similarity: Tensor, log_temperature: float) -> float:
    scaled = similarity / math.exp(log_temperature)
    given = scaled.diagonal().clone()
    scaled.fill_diagonal_(-torch.inf)
    # From the log odds of the matching probability: losses far below the rounding of 1 still differ.
    odds = (given - torch.logsumexp(scaled, dim=1), given - torch.logsumexp(scaled, dim=0))
    loss = (softplus(-odds[0].double()) + softplus(-odds[1].double())) / 2
    return float(loss.sort().values[: (len(loss) + 1) // 2].mean())


def background_of(blocks: Iterable[Block], temperature: float) -> float:
    """log mean exp(s_jk/τ) over the cells that are not a pair's own; over those where there are no others. Overwrites
    the blocks.
    """
    sums: tuple[list[Tensor], list[Tensor]] = [], []
    counts = [0, 0]
    for similarity, own in blocks:
        scaled = similarity / temperature
        sums[1].append(torch.logsumexp(scaled[own].double(), dim=0))
        scaled[own] = -torch.inf
        sums[0].append(torch.logsumexp(scaled.double().flatten(), dim=0))
        counts[0] += scaled.numel() - len(own[0])
        counts[1] += len(own[0])
    which = 0 if counts[0] else 1
    return float(torch.logsumexp(torch.stack(sums[which]), dim=0)) - math.log(counts[which])


def _trust(images: Tensor, texts: Tensor, same: float) -> Tensor:
    ranks, others = [], []
    for side, other in ((images, texts), (texts, images)):
        parts = []
        for first, similarity, own in _blocks(side, other, same):
            given = similarity[:, first:].diagonal().clone()
            similarity[own] = -torch.inf
            parts.append(rank_among(given, similarity))
            others.append(len(images) - own[0].bincount(minlength=len(similarity)))
        ranks.append(torch.cat(parts))
    return mutual_rank(ranks[0], ranks[1], torch.cat(others)[: len(images)].float())


def _blocks(side: Tensor, other: Tensor, same: float) -> Iterator[tuple[int, Tensor, tuple[Tensor, Tensor]]]:
    """The first of some rows, their similarities to all of the other side, the places in them that are a row's own."""
    for first in range(0, len(side), _BLOCK_ROWS):
        yield first, side[first : first + _BLOCK_ROWS] @ other.T, _own(side, other, same, first)


def _own(side: Tensor, other: Tensor, same: float, first: int) -> tuple[Tensor, Tensor]:
    """Places, in the block of rows from `first` on, of the given pairs and of those that share something with them."""
    at = torch.arange(min(_BLOCK_ROWS, len(side) - first), device=side.device)
    if same > 1:
        return at, first + at
    alike = [vectors[first : first + _BLOCK_ROWS] @ vectors.T >= same for vectors in (side, other)]
    alike[0][at, first + at] = True
    row, column = (alike[0] | alike[1]).nonzero(as_tuple=True)
    return row, column


def rank_among(similarity: Tensor, others: Tensor) -> Tensor:
    """(b,) float32: 1 + how many of the others (b, m) are larger than the similarity (b,), equal ones half.

    Minus infinity among the others stands for nobody.
    """
    own = similarity[:, None]
    # Counted in float32, exact up to 2^24 entries: summing booleans takes forty times as long.
    counted = torch.empty_like(others)
    larger = torch.gt(others, own + TIE, out=counted).sum(dim=1)
    at_least = torch.ge(others, own - TIE, out=counted).sum(dim=1)
    return 1 + (larger + at_least) / 2


def mutual_rank(first: Tensor, second: Tensor, others: Tensor) -> Tensor:
    """1 − log √(r₁ r₂) / log(others + 1), of two ranks in 1 … others + 1: 1 for mutual best, 0 for last twice.

    0.5 where there are no others: nothing is known there.
    """
    score = 1 - (first * second).log() / (2 * (others + 1).log())
    return torch.where(others == 0, 0.5, score).clamp(0, 1)
