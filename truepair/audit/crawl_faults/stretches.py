"""Stretches of pairs whose captions are shifted against their images, or shuffled among them.

A crawl that loses one line, or is packed anew by a program that sorts images and captions in different ways, gives
wrong captions to all pairs of a stretch at once. Such a stretch is nearly all flagged; if at some offset the images fit
the captions again, it was shifted, and if the captions that fit are all in the stretch, it was shuffled.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import numpy as np

from truepair.audit.crawl_faults.alignment import BLOCK, Alignment
from truepair.audit.crawl_faults.segments import high_segments, met_segment
from truepair.data.pairs import Array, IntArray

LEAST_LENGTH = 20
MOST_EVIDENCE, CAUTION = 5.0, 7.0
"""Of a single pair, and what a stretch needs beyond the logarithm of all places it could begin at (in nats)."""
REACH = 256
"""Offsets that are always tried; further ones where proposals of better captions point to them."""
SAMPLED = 2000
ERRORS = 7.0
"""Standard errors by which an offset, or an order, must stand out."""
MOST_ORDERED = 3000
"""Pairs of a stretch that are put into order: the time grows with the third power."""
LEAST_VOTES = 5
MOSTLY, ELSEWHERE = 0.3, 0.35
"""Mean 1 − p_match in a stretch that is mismatched as a whole, and the most that of all others may be of it."""
RECOVERED = 0.5
"""Of the matching of pairs that are not flagged, what that of reordered ones must reach."""
LEAST_BETTER = 0.6
"""Of the images, how many must fit the caption at an offset better than their own; by chance it is one half."""
LEAST_GAIN = 0.25
"""Of the usual gain, what a place must gain to belong to a shifted stretch: beside it may be one of another offset."""
ROUGH = 6
"""Places by which the ends of a stretch may be off."""


@dataclass(frozen=True)
class Stretch:
    """Places [start, stop) of a stretch, and what was found of it.

    Attributes:
        offset: how many places further on the caption of an image stands; None where it is not one offset.
        caption_from: (n,) place of the caption that belongs to each image, −1 where none is known; None for no repair.
        better: share of the images that fit the repaired caption better than the given one; NaN without a repair.
    """

    start: int
    stop: int
    offset: int | None = None
    caption_from: IntArray | None = None
    better: float = float("nan")

    def __len__(self) -> int:
        return self.stop - self.start


def find_stretches(p_match: Array, matching: Array, caption_from: IntArray, alignment: Alignment) -> list[Stretch]:
    """The stretches of pairs that are mismatched as a whole, in order.

    Args:
        p_match: (M,) probability of the scored pairs.
        matching: (M,) their indicator of that name.
        caption_from: (M,) place of the pair whose caption was proposed; −1 without a proposal.
    """
    doubt = 1 - p_match.astype(np.float64)
    trusted = matching[p_match >= 0.5]
    wanted = RECOVERED * float(np.mean(trusted)) if len(trusted) >= LEAST_LENGTH else 0.0
    found: list[Stretch] = []
    for first, stop in mismatched_stretches(doubt):
        start = max(first, found[-1].stop) if found else first
        parts = rotations(explained(start, stop, caption_from, alignment, wanted), alignment)
        inside = float(doubt[first:stop].mean())
        outside = (doubt.sum() - doubt[first:stop].sum()) / max(1, len(doubt) - (stop - first))
        as_a_whole = inside >= MOSTLY and outside <= ELSEWHERE * inside and 2 * (stop - first) < len(doubt)
        if not parts and start == first and as_a_whole:
            parts = [Stretch(start, stop)]
        found += parts
    return found


def mismatched_stretches(doubt: Array) -> list[tuple[int, int]]:
    """Stretches [start, stop) that look mismatched as a whole; all pairs together where most are mismatched.

    With the share of mismatched pairs π and f₀ the distribution of their scores, 1 − p_match is π f₀/f: what a pair
    says for a stretch of nothing but mismatched pairs, against one like all others, is log((1 − p_match)/π).

    Args:
        doubt: (M,) 1 − p_match.
    """
    share = float(doubt.mean())
    if share == 0:
        return []
    evidence = np.clip(np.log(np.maximum(doubt, 1e-9) / share), -MOST_EVIDENCE, MOST_EVIDENCE)
    found = high_segments(evidence, least_sum=np.log(len(doubt)) + CAUTION, least_length=LEAST_LENGTH)
    return found or ([(0, len(doubt))] if share > 0.5 else [])


def explained(start: int, stop: int, proposed: IntArray, alignment: Alignment, wanted: float) -> list[Stretch]:
    """The shifted parts of a stretch, and what is left of it between them where that was shuffled."""
    if stop - start < LEAST_LENGTH:
        return []
    part = shifted(start, stop, proposed, alignment)
    if part is None:
        part = shuffled(start, stop, alignment, wanted)
        return [] if part is None else [part]
    left = explained(start, min(part.start, stop), proposed, alignment, wanted)
    return [*left, part, *explained(max(part.stop, start), stop, proposed, alignment, wanted)]


def shifted(start: int, stop: int, proposed: IntArray, alignment: Alignment) -> Stretch | None:
    """The part of a stretch that matches at one offset; None where there is no such offset.

    It begins and ends where the images begin and cease to fit the captions at the offset better than their own.
    """
    places, count = np.arange(start, stop), len(alignment.rows)
    offset = standing_out(places, alignment) or voted(places, proposed, alignment)
    if not offset:
        return None
    wide = np.arange(max(0, start - SAMPLED, -offset), min(count, count - offset, stop + SAMPLED))
    gain = np.nan_to_num(alignment.pairs(wide, wide + offset) - alignment.pairs(wide, wide))
    usual = np.median(gain[gain > 0]) if (gain > 0).any() else 0.0
    first, last = met_segment(gain - LEAST_GAIN * usual, start - int(wide[0]), stop - int(wide[0]))
    if last - first < LEAST_LENGTH:
        return None
    better = float((gain[first:last] > 0).mean())
    if better < LEAST_BETTER:
        return None
    images = wide[first:last]
    return Stretch(int(images[0]), int(images[-1]) + 1, offset, images + offset, better)


def rotations(parts: list[Stretch], alignment: Alignment) -> list[Stretch]:
    """The same, but the two parts of a stretch that was rotated as one; and what stands at the open end of a shift.

    Rotated by o > 0 among n, the first n − o images have their captions o places further on, the last o of them n − o
    places before: two parts side by side, whose offsets differ by n.
    """
    found: list[Stretch] = []
    for part in parts:
        before = found[-1] if found else None
        if before is not None and part.offset is not None and before.offset is not None:
            size = before.offset - part.offset
            if size > 0 and abs(size - (part.stop - before.start)) <= ROUGH:
                found[-1] = rotated(before.start, size, before.offset, alignment)
                continue
        found.append(part)
    return [closed(part, alignment) for part in found]


def closed(part: Stretch, alignment: Alignment) -> Stretch:
    """A shifted part, with the few images at its end whose captions stand at its beginning, if they do."""
    if part.offset is None or part.caption_from is None or len(part) <= 2 * abs(part.offset):
        return part
    size = len(part) + abs(part.offset)
    start = part.start if part.offset > 0 else part.start + part.offset
    if start < 0 or start + size > len(alignment.rows):
        return part
    whole = rotated(start, size, part.offset if part.offset > 0 else size + part.offset, alignment)
    assert whole.caption_from is not None
    images = np.arange(start, start + size)
    loose = (images < part.start) | (images >= part.stop)
    gains = [
        np.nanmean(
            alignment.pairs(images[some], whole.caption_from[some]) - alignment.pairs(images[some], images[some])
        )
        for some in (loose, ~loose)
    ]
    return whole if gains[0] > gains[1] / 2 else part


def rotated(start: int, size: int, by: int, alignment: Alignment) -> Stretch:
    """`size` images whose captions were rotated: those of the first stand `by` places further on, 0 < by < size."""
    places = np.arange(size)
    images, captions = start + places, start + (places + by) % size
    gain = alignment.pairs(images, captions) - alignment.pairs(images, images)
    offset = by if 2 * by <= size else by - size
    return Stretch(start, start + size, offset, captions, float(np.nanmean(gain > 0)))


def standing_out(places: IntArray, alignment: Alignment) -> int | None:
    """The offset within reach at which the images fit far better than at any other, itself included."""
    some = places
    if len(places) > SAMPLED:  # neighbours, so that few captions serve many images
        some = np.concatenate([piece[:BLOCK] for piece in np.array_split(places, SAMPLED // BLOCK)])
    mean, error = alignment.profile(some, REACH)
    best = int(np.nanargmax((mean - np.nanmedian(mean)) / error))
    if mean[best] - max(np.nanmedian(mean), mean[REACH]) < ERRORS * error[best]:
        return None
    return best - REACH


def voted(places: IntArray, proposed: IntArray, alignment: Alignment) -> int | None:
    """The offset, out of reach, that most proposals of better captions agree in."""
    asked = places[proposed[places] >= 0]
    votes = Counter((proposed[asked] - asked).tolist())
    offset, count = votes.most_common(1)[0] if votes else (0, 0)
    chance = len(asked) / len(alignment.rows)
    if not offset or count < LEAST_VOTES or count < ERRORS**2 * chance:
        return None
    there = places[(places + offset >= 0) & (places + offset < len(alignment.rows))]
    gain = alignment.pairs(there, there + offset) - alignment.pairs(there, there)
    return offset if np.nanmean(gain) > ERRORS * np.nanstd(gain) / np.sqrt(len(there)) else None


def shuffled(start: int, stop: int, alignment: Alignment, wanted: float) -> Stretch | None:
    """A stretch in which the images fit captions of the stretch far more often than as many captions of elsewhere."""
    inside = np.arange(start, stop)
    others = np.concatenate([np.arange(0, start), np.arange(stop, len(alignment.rows))])
    outside = others[np.linspace(0, len(others) - 1, min(len(others), len(inside))).astype(np.int64)]
    if len(inside) > MOST_ORDERED or len(outside) < LEAST_LENGTH:
        return None  # without others there is nothing to compare with
    similarity = np.full((len(inside), len(inside)), -np.inf)
    hits = asked = 0
    for space, images in alignment.blocks(inside):
        here = alignment.matrix(space, images, inside)
        similarity[images - start] = here
        there = alignment.matrix(space, images, outside).max(axis=1, initial=-np.inf)
        hits, asked = hits + int((here.max(axis=1) > there).sum()), asked + len(images)
    if asked < len(inside):
        return None
    chance = len(inside) / (len(inside) + len(outside))
    if hits - asked * chance < ERRORS * np.sqrt(asked * chance * (1 - chance)):
        return None
    from scipy.optimize import linear_sum_assignment

    _, order = linear_sum_assignment(-similarity)
    if not np.nanmean(alignment.matching(inside, start + order)) > wanted:
        return None
    given = similarity.diagonal()
    return Stretch(start, stop, None, start + order, float((similarity[inside - start, order] > given).mean()))
