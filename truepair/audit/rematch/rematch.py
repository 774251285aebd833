"""Better partners for suspicious pairs, and pairs that exchanged their captions. A pair is told by its row."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from truepair.audit.result import Rematch
from truepair.audit.scoring.scored_pairs import Space
from truepair.data.pairs import Array, BoolArray, IntArray

BETTER = 1e-6
SUSPICIOUS_AT_ONCE = 16_384
"""Pairs that are compared at a time; for each so many all pairs are read once."""


@dataclass(frozen=True)
class Items:
    """Which of the M scored pairs have the same image, and which the same caption.

    Attributes:
        rows: (M,) int64, ascending.
        image_of, caption_of: (M,) int64; pairs with the same number have the same image, or the same caption.
    """

    rows: IntArray
    image_of: IntArray
    caption_of: IntArray

    def images(self, rows: IntArray) -> IntArray:
        return self.image_of[np.searchsorted(self.rows, rows)]

    def captions(self, rows: IntArray) -> IntArray:
        return self.caption_of[np.searchsorted(self.rows, rows)]


def rematch(suspicious: IntArray, spaces: Sequence[Space], items: Items) -> Rematch:
    """The best other caption and the best other image of each suspicious pair, and the swaps among them.

    Never proposed: a caption that the image has already in some given pair, and an image that the caption has.

    Args:
        suspicious: (S,) int64, rows of pairs, most suspicious first.
        spaces: each is asked about the pairs that it covers; what none covers is left out.
    """
    partners: dict[int, tuple[int, float, int, float]] = {}
    for space in spaces:
        asked = space.covers(suspicious)
        for start in range(0, len(asked), SUSPICIOUS_AT_ONCE):
            some = asked[start : start + SUSPICIOUS_AT_ONCE]
            captions, images = best_partners(some, space, items)
            fits = fit(space, some, captions), fit(space, images, some)
            columns = (captions, fits[0], images, fits[1])
            partners.update(zip(some.tolist(), zip(*(column.tolist() for column in columns), strict=True), strict=True))
    rows = suspicious[np.isin(suspicious, np.array(list(partners), dtype=np.int64))]
    found = [partners[row] for row in rows.tolist()]
    caption_from, image_from = (np.array([one[side] for one in found], dtype=np.int64) for side in (0, 2))
    caption_fit, image_fit = (np.array([one[side] for one in found], dtype=np.float32) for side in (1, 3))
    return Rematch(rows, caption_from, caption_fit, image_from, image_fit, swaps(rows, caption_from, items))


def best_partners(asked: IntArray, space: Space, items: Items) -> tuple[IntArray, IntArray]:
    """(n,) the pair whose caption is most similar to the image of each asked pair, and the pair whose image is to its
    caption; −1 where nothing new is more similar than its own partner. The first of equals.

    Args:
        asked: (n,) ascending rows.
    """
    own = space.similarity(asked)
    image_of, caption_of = items.images(asked), items.captions(asked)
    known = np.flatnonzero(places_in(items.image_of, image_of)[1] | places_in(items.caption_of, caption_of)[1])
    pairs = items.image_of[known], items.caption_of[known]  # all that is nothing new to any of them
    best: dict[tuple[str, int], Best] = {}
    for offer in space.offers(asked):
        place = offer.side, offer.asked.start
        if place not in best:
            given = (image_of, *pairs) if offer.side == "caption" else (caption_of, *pairs[::-1])
            best[place] = Best(own[offer.asked], Given.of(given[0][offer.asked], *given[1:]))
        offered = items.captions(offer.rows) if offer.side == "caption" else items.images(offer.rows)
        best[place].meet(offer.similarity, offer.rows, offered)
    partners = {side: np.full(len(asked), -1, dtype=np.int64) for side in ("caption", "image")}
    for (side, start), found in best.items():
        partners[side][start : start + len(found.partner)] = found.partner.numpy()
    return partners["caption"], partners["image"]


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
    """The best new partner met so far.

    Args:
        own: (n,) similarity of each asked pair's own image and text, which a partner has to exceed.
        given: what they have already.
    """

    def __init__(self, own: Tensor, given: Given) -> None:
        self.similarity, self.given = own + BETTER, given
        self.partner = torch.full((len(own),), -1, dtype=torch.int64)

    def meet(self, similarity: Tensor, rows: IntArray, offered: IntArray) -> None:
        """Similarities (n, k) to what the pairs of `rows` (k,) have, numbered `offered` (k,). Overwritten."""
        row, column = self.given.cells(offered)
        similarity[torch.from_numpy(row), torch.from_numpy(column)] = -torch.inf
        value, place = similarity.max(dim=1)
        better = value > self.similarity
        self.similarity[better], self.partner[better] = value[better], torch.from_numpy(rows)[place[better]]


def fit(space: Space, image_rows: IntArray, caption_rows: IntArray) -> Array:
    """(n,) matching probability of the images of some pairs with the captions of others; 0 where either is −1."""
    found = np.zeros(len(image_rows), dtype=np.float32)
    known = (image_rows >= 0) & (caption_rows >= 0)
    if known.any():
        found[known] = space.matching(image_rows[known], caption_rows[known])
    return found


def swaps(rows: IntArray, caption_from: IntArray, items: Items) -> IntArray:
    """(S,) the suspicious pair that each exchanged its caption with, or −1: each one's caption is the other's best."""
    own = dict(zip(rows.tolist(), items.captions(rows).tolist(), strict=True))
    news = items.captions(np.maximum(caption_from, items.rows[0])) if len(rows) else rows
    best = dict(zip(rows.tolist(), np.where(caption_from >= 0, news, -1).tolist(), strict=True))
    owners: dict[int, list[int]] = {}
    for row in rows.tolist():
        owners.setdefault(own[row], []).append(row)
    partner: dict[int, int] = {}
    for row in rows.tolist():
        for other in owners.get(best[row], []) if best[row] != -1 else []:
            if row not in partner and other not in partner and other != row and best[other] == own[row]:
                partner[row], partner[other] = other, row
    return np.array([partner.get(row, -1) for row in rows.tolist()], dtype=np.int64)
