"""Better partners for suspicious pairs, and pairs that exchanged their captions. A pair is told by its row."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from truepair.audit.rematch.same_items import same_items
from truepair.audit.result import Rematch, Verdict
from truepair.audit.scoring.scored_pairs import ScoredPairs, Space
from truepair.data.collection import Collection
from truepair.data.pairs import Array, BoolArray, IntArray

BETTER = 1e-6
SUSPICIOUS_AT_ONCE = 16_384
"""Pairs that are compared at a time; for each so many all pairs are read once."""


@dataclass(frozen=True)
class Items:
    """Which of the M scored pairs, of ascending rows, have the same image, and which the same caption: pairs with the
    same number, (M,) int64 each.
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


def rematch_flagged(collection: Collection, scored: ScoredPairs, verdict: Verdict, most: int) -> Rematch:
    """Better partners of the flagged pairs, of the most suspicious ones where there are very many."""
    flagged = np.flatnonzero(verdict.flagged)
    order = flagged[np.argsort(verdict.p_match[flagged], kind="stable")][:most]
    if len(order) == 0:
        return rematch(order, [], Items(order, order, order))
    return rematch(scored.rows[order], scored.spaces, Items(scored.rows, *same_items(collection, scored.rows)))


def best_partners(asked: IntArray, space: Space, items: Items) -> tuple[IntArray, IntArray]:
    """(n,) the pair whose caption is most similar to the image of each asked pair (ascending rows), and the pair whose
    image is to its caption; −1 where nothing new is more similar than its own partner. The first of equals.
    """
    own = space.similarity(asked)
    image_of, caption_of = items.images(asked), items.captions(asked)
    known = np.flatnonzero(places_in(items.image_of, image_of)[1] | places_in(items.caption_of, caption_of)[1])
    pairs = items.image_of[known], items.caption_of[known]  # all that is nothing new to any of them
    best: dict[tuple[str, int], Best] = {}
    for offer in space.offers(asked):
        place = offer.side, offer.asked.start
        if place not in best:
            asking, given = (image_of, pairs) if offer.side == "caption" else (caption_of, pairs[::-1])
            best[place] = Best(own[offer.asked], asking[offer.asked], *given)
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


class Best:
    """The best new partner met so far: of images that are asked about among captions, say, or the other way round.

    Args:
        own: (n,) similarity of each asked pair's own image and text, which a partner has to exceed.
        asked: (n,) numbers of the items asked about.
        items, others: (M,) numbers of the items of all given pairs, and of what each is paired with.
    """

    def __init__(self, own: Tensor, asked: IntArray, items: IntArray, others: IntArray) -> None:
        from scipy.sparse import coo_array

        self.similarity = own + BETTER
        self.partner = torch.full((len(own),), -1, dtype=torch.int64)
        distinct, self.place = np.unique(asked, return_inverse=True)
        at, mine = places_in(items, distinct)
        self.numbers, number = np.unique(others[mine], return_inverse=True)
        pairs, shape = (at[mine], number), (len(distinct), len(self.numbers))
        self.has = coo_array((np.ones(len(number), dtype=bool), pairs), shape=shape).tocsc()

    def had(self, offered: IntArray) -> tuple[IntArray, IntArray]:
        """Places (asked, offered) at which the asked one has already what is offered, numbered `offered` (k,)."""
        at, known = places_in(offered, self.numbers)
        column = np.flatnonzero(known)
        row, found = self.has[:, at[column]].tocsr()[self.place].nonzero()
        return row, column[found]

    def meet(self, similarity: Tensor, rows: IntArray, offered: IntArray) -> None:
        """Similarities (n, k) to what the pairs of `rows` (k,) have, numbered `offered` (k,). Overwritten."""
        row, column = self.had(offered)
        similarity[torch.from_numpy(row), torch.from_numpy(column)] = -torch.inf
        value, place = similarity.max(dim=1)
        better = value > self.similarity
        self.similarity[better], self.partner[better] = value[better], torch.from_numpy(rows)[place[better]]


def fit(space: Space, image_rows: IntArray, caption_rows: IntArray) -> Array:
    """(n,) matching probability of the images of some pairs with the captions of others; 0 where either is −1."""
    found = np.zeros(len(image_rows), dtype=np.float32)
    known = (image_rows >= 0) & (caption_rows >= 0)
    if known.any():
        found[known] = space.scores(image_rows[known], caption_rows[known])["matching"]
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
