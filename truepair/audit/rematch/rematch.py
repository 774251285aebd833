"""Better partners for suspicious pairs, and pairs that exchanged their captions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from truepair.audit.result import Rematch
from truepair.audit.scoring.indicators import score
from truepair.audit.scoring.witnessed import Judge
from truepair.data.pairs import Array, BoolArray, IntArray

BETTER = 1e-6
SUSPICIOUS_AT_ONCE = 16_384
"""Pairs whose vectors are in memory; for each so many all pairs are read once."""
COMPARED_AT_ONCE = 1024


def rematch(suspicious: IntArray, judges: Sequence[Judge], image_of: IntArray, caption_of: IntArray) -> Rematch:
    """The best other caption and the best other image of each suspicious pair, and the swaps among them.

    What is proposed is always news: no caption that the image has already in some given pair, and no image that the
    caption has.

    Args:
        suspicious: (S,) int64, positions of pairs, most suspicious first.
        judges: each is asked about the pairs that it may judge.
        image_of, caption_of: (M,) int64; pairs with the same number have the same image, or the same caption.
    """
    count = len(image_of)
    caption_from, image_from = (np.full(count, -1, dtype=np.int64) for _ in range(2))
    caption_fit, image_fit = (np.zeros(count, dtype=np.float32) for _ in range(2))
    for judge in judges:
        asked = judge.may_judge(np.sort(suspicious))
        for start in range(0, len(asked), SUSPICIOUS_AT_ONCE):
            some = asked[start : start + SUSPICIOUS_AT_ONCE]
            caption_from[some], image_from[some] = best_partners(some, judge, image_of, caption_of)
            caption_fit[some] = fit(judge, some, caption_from[some])
            image_fit[some] = fit(judge, image_from[some], some)
    return Rematch(
        suspicious,
        caption_from[suspicious],
        caption_fit[suspicious],
        image_from[suspicious],
        image_fit[suspicious],
        swaps(suspicious, caption_from[suspicious], caption_of),
    )


def best_partners(asked: IntArray, judge: Judge, image_of: IntArray, caption_of: IntArray) -> tuple[IntArray, IntArray]:
    """(n,) the pair whose caption is most similar to the image of each asked pair, and the pair whose image is to its
    caption; −1 where no news is more similar than its own partner. The first of equals.
    """
    images, texts = judge.vectors(asked)
    own = (images * texts).sum(dim=1)
    known = np.flatnonzero(places_in(image_of, image_of[asked])[1] | places_in(caption_of, caption_of[asked])[1])
    pairs = image_of[known], caption_of[known]  # all that can be no news to any of them
    pieces = [slice(start, start + COMPARED_AT_ONCE) for start in range(0, len(asked), COMPARED_AT_ONCE)]
    captions = [Best(own[piece], Given.of(image_of[asked[piece]], *pairs)) for piece in pieces]
    pictures = [Best(own[piece], Given.of(caption_of[asked[piece]], *pairs[::-1])) for piece in pieces]
    for start, block_images, block_texts in judge.blocks():
        here = np.arange(start, start + len(block_images), dtype=np.int64)
        for piece, caption, picture in zip(pieces, captions, pictures, strict=True):
            caption.meet(images[piece] @ block_texts.T, here, caption_of[here])
            picture.meet(texts[piece] @ block_images.T, here, image_of[here])
    caption_from, image_from = (
        np.concatenate([asked[:0], *(best.partner.numpy() for best in side)]) for side in (captions, pictures)
    )
    return caption_from, image_from


def places_in(values: IntArray, wanted: IntArray) -> tuple[IntArray, BoolArray]:
    """(M,) where each value stands among the distinct ones of `wanted`, ascending, and whether it is there at all."""
    distinct = np.unique(wanted)
    at = np.minimum(np.searchsorted(distinct, values), max(0, len(distinct) - 1))
    return at, distinct[at] == values if len(distinct) else np.zeros(len(values), dtype=bool)


@dataclass(frozen=True)
class Given:
    """What the items that are asked about (images, say) have already on the other side (captions), in any given pair.

    Attributes:
        numbers: (k,) ascending, the distinct numbers that any of them has.
        items: (k,) for each the items, numbered from 0, that have it.
        places: for each item the places among the asked that ask about it.
    """

    numbers: IntArray
    items: Lists
    places: Lists

    @classmethod
    def of(cls, asked: IntArray, items: IntArray, others: IntArray) -> Given:
        """Args:
        asked: (n,) numbers of the items asked about.
        items, others: (M,) numbers of the items of all given pairs, and of what each is paired with.
        """
        distinct, place = np.unique(asked, return_inverse=True)
        at, mine = places_in(items, distinct)
        numbers, number = np.unique(others[mine], return_inverse=True)
        number, item = np.divmod(np.unique(number * len(distinct) + at[mine]), max(1, len(distinct)))
        return cls(numbers, Lists.of(number, item, len(numbers)), Lists.of(place, np.arange(len(asked)), len(distinct)))

    def cells(self, offered: IntArray) -> tuple[IntArray, IntArray]:
        """Places (asked, offered) at which the asked one has already what is offered, numbered `offered` (k,)."""
        at, known = places_in(offered, self.numbers)
        column = np.flatnonzero(known)
        repeated, items = self.items.at(at[column])
        again, row = self.places.at(items)
        return row, column[repeated][again]


@dataclass(frozen=True)
class Lists:
    """Lists of numbers, one after the other: list k is values[starts[k] : starts[k + 1]]."""

    values: IntArray
    starts: IntArray

    @classmethod
    def of(cls, which: IntArray, values: IntArray, count: int) -> Lists:
        """`count` lists; value i goes to list `which[i]`."""
        order = np.argsort(which, kind="stable")
        return cls(values[order], np.searchsorted(which[order], np.arange(count + 1)))

    def at(self, which: IntArray) -> tuple[IntArray, IntArray]:
        """The values of some lists one after the other, and before them, for each, its place in `which`."""
        sizes = self.starts[which + 1] - self.starts[which]
        place = np.repeat(np.arange(len(which)), sizes)
        within = np.arange(len(place)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        return place, self.values[self.starts[which][place] + within]


class Best:
    """The best partner met so far that is news.

    Args:
        own: (n,) similarity of each asked pair's own image and text, which a partner has to exceed.
        given: what they have already.
    """

    def __init__(self, own: Tensor, given: Given) -> None:
        self.similarity, self.given = own + BETTER, given
        self.partner = torch.full((len(own),), -1, dtype=torch.int64)

    def meet(self, similarity: Tensor, positions: IntArray, offered: IntArray) -> None:
        """Similarities (n, k) to what the pairs at `positions` (k,) have, numbered `offered` (k,). Overwritten."""
        row, column = self.given.cells(offered)
        similarity[torch.from_numpy(row), torch.from_numpy(column)] = -torch.inf
        value, place = similarity.max(dim=1)
        better = value > self.similarity
        self.similarity[better], self.partner[better] = value[better], torch.from_numpy(positions)[place[better]]


def fit(judge: Judge, image_positions: IntArray, caption_positions: IntArray) -> Array:
    """(n,) matching probability of the images of some pairs with the captions of others; 0 where either is −1."""
    found = np.zeros(len(image_positions), dtype=np.float32)
    known = (image_positions >= 0) & (caption_positions >= 0)
    if not known.any():
        return found
    images, captions = image_positions[known], caption_positions[known]
    scores = score(
        _vectors(judge, images, 0),
        _vectors(judge, captions, 1),
        judge.bank,
        image_rows=torch.from_numpy(judge.bank_rows(images)),
        text_rows=torch.from_numpy(judge.bank_rows(captions)),
    )
    found[known] = scores.indicators["matching"].numpy()
    return found


def _vectors(judge: Judge, positions: IntArray, side: int) -> Tensor:
    """Vectors of positions in any order, with repetitions."""
    distinct, where = np.unique(positions, return_inverse=True)
    return judge.vectors(distinct)[side][torch.from_numpy(where)]


def swaps(rows: IntArray, caption_from: IntArray, caption_of: IntArray) -> IntArray:
    """(S,) the suspicious pair that each exchanged its caption with, or −1: each one's caption is the other's best."""
    best = {
        row: int(caption_of[other]) if other >= 0 else -1
        for row, other in zip(rows.tolist(), caption_from.tolist(), strict=True)
    }
    owners: dict[int, list[int]] = {}
    for row in rows.tolist():
        owners.setdefault(int(caption_of[row]), []).append(row)
    partner: dict[int, int] = {}
    for row in rows.tolist():
        for other in owners.get(best[row], []):
            if row not in partner and other not in partner and other != row and best[other] == int(caption_of[row]):
                partner[row], partner[other] = other, row
    return np.array([partner.get(row, -1) for row in rows.tolist()], dtype=np.int64)
