"""Better partners for suspicious pairs, and pairs that exchanged their captions."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from truepair.audit.indicators import score
from truepair.audit.result import Rematch
from truepair.audit.witnessed import Judge
from truepair.data.pairs import Array, IntArray

BETTER = 1e-6
SUSPICIOUS_AT_ONCE = 4096


def rematch(suspicious: IntArray, judges: Sequence[Judge], image_of: IntArray, caption_of: IntArray) -> Rematch:
    """The best other caption and the best other image of each suspicious pair, and the swaps among them.

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
    caption; −1 where none is more similar than its own partner. The first of equals.
    """
    images, texts = judge.vectors(asked)
    own = (images * texts).sum(dim=1)
    captions, pictures = Best(own, caption_of[asked]), Best(own, image_of[asked])
    for start, block_images, block_texts in judge.blocks():
        here = np.arange(start, start + len(block_images), dtype=np.int64)
        captions.meet(images @ block_texts.T, here, caption_of[here])
        pictures.meet(texts @ block_images.T, here, image_of[here])
    return captions.partner.numpy(), pictures.partner.numpy()


class Best:
    """The best partner met so far that is not what a pair has already.

    Args:
        own: (n,) similarity of each pair's own image and text, which a partner has to exceed.
        have: (n,) number of what each pair has.
    """

    def __init__(self, own: Tensor, have: IntArray) -> None:
        self.similarity, self.have = own + BETTER, torch.from_numpy(have)
        self.partner = torch.full((len(own),), -1, dtype=torch.int64)

    def meet(self, similarity: Tensor, positions: IntArray, offered: IntArray) -> None:
        """Similarities (n, k) to what the pairs at `positions` (k,) have, numbered `offered` (k,). Overwritten."""
        similarity[self.have[:, None] == torch.from_numpy(offered)] = -torch.inf
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
