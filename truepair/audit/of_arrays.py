"""The audit of embeddings in memory: nothing is trained, read or written."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from truepair.audit.result import Fault, Share, shown_verdict
from truepair.data.collection import EmbeddingCollection
from truepair.data.pairs import Array, BoolArray, IntArray
from truepair.errors import InputError

if TYPE_CHECKING:
    from torch import Tensor

LEAST_PAIRS = 60


@dataclass(frozen=True, repr=False)
class EmbeddingAudit:
    """What `audit_embeddings` found; row i of every column is pair i.

    Attributes:
        p_match: (N,) float32, probability that the pair matches.
        flagged: (N,) taken as mismatched: p_match < 0.5.
        share: of mismatched pairs, with its 95 % interval; `random` and `near` are those of random mismatches and of
            captions of similar things (None where there were fewer than 1,000 pairs).
        indicators: name (of `truepair.audit.result.INDICATORS`) → (N,) float32 in [0, 1], larger = better matched.
        similarity: (N,) float32, cosine of image and text.
        caption_from, image_from: (N,) int64, for flagged pairs the pair whose caption fits the image better and the one
            whose image fits the caption better; −1 where there is none.
        faults: what went wrong with many pairs at once, captions shifted or shuffled in a stretch among it.
    """

    p_match: Array
    flagged: BoolArray
    share: Share
    random: Share | None
    near: Share | None
    indicators: dict[str, Array]
    similarity: Array
    caption_from: IntArray
    image_from: IntArray
    faults: list[Fault]

    def __repr__(self) -> str:
        return f"EmbeddingAudit({shown_verdict(self.flagged, self.share)})"


def audit_embeddings(
    images: Array | Tensor,
    texts: Array | Tensor,
    *,
    image_ids: Sequence[object] | None = None,
    bank: int = 2048,
    rematch: int = 5000,
    seed: int = 0,
) -> EmbeddingAudit:
    """Which of the pairs of some embeddings (CLIP's, say) are mismatched.

    >>> import numpy, truepair
    >>> rng = numpy.random.default_rng(0)
    >>> images = rng.normal(size=(500, 64))
    >>> texts = images + 0.5 * rng.normal(size=(500, 64))
    >>> texts[:100] = numpy.roll(texts[:100], 1, axis=0)  # 20 % have the caption of another image
    >>> found = truepair.audit_embeddings(images, texts)
    >>> round(found.share.share, 1), found.flagged[:100].mean() > 0.95, found.flagged[100:].mean() < 0.05
    (0.2, np.True_, np.True_)
    >>> found.p_match[:100].max() < found.p_match[100:].min(), found.caption_from[1]
    (np.True_, np.int64(2))

    Args:
        images, texts: (N, D) of one space, of any length; row i is pair i, N ≥ 60. Tensors of torch may be of any
            floating type and on any device; no gradient goes through.
        image_ids: (N,) what tells images apart where several pairs have the same one. Images of equal vectors are the
            same in any case.
        bank: pairs that each pair is compared with.
        rematch: flagged pairs, the most suspicious first, to find better partners for.
        seed: of everything that is drawn.

    Raises:
        InputError: the arrays are not (N, D) floats of the same shape, have fewer than 60 rows, or a row of NaN, of
            infinite numbers or of zeros; there is not one image id a pair; an option is out of range.
    """
    from truepair.audit.crawl_faults.find import find_faults
    from truepair.audit.duplicates import find_duplicates
    from truepair.audit.options import AuditOptions, CrossFitting
    from truepair.audit.rematch.rematch import rematch_flagged
    from truepair.audit.scoring.scorers import scorer_for
    from truepair.audit.verdict.verdict import verdict_of_scored

    images, texts = checked_side("images", images), checked_side("texts", texts)
    if images.shape != texts.shape:
        raise InputError(
            f"images are {images.shape}, texts {texts.shape}; expected the same (N, D), row i being pair i"
        )
    if len(images) < LEAST_PAIRS:
        raise InputError(f"{len(images)} pairs; expected at least {LEAST_PAIRS}: fewer tell nothing of each other")
    if image_ids is not None and len(image_ids) != len(images):
        raise InputError(f"{len(image_ids)} image ids for {len(images)} pairs; expected one a pair")
    asked = AuditOptions(bank=bank, rematch=rematch, seed=seed)
    collection = ArrayPairs(images, texts, image_ids)
    with tempfile.TemporaryDirectory(prefix="truepair-audit-") as folder:
        scored = scorer_for(collection, None, asked, CrossFitting()).score(Path(folder))
        verdict = verdict_of_scored(scored, seed=seed)
        found = rematch_flagged(collection, scored, verdict, asked.rematch)
        duplicates = find_duplicates(collection, scored.rows, seed=seed)
        faults = find_faults(collection, scored, verdict, found, duplicates, seed=seed)
    caption_from, image_from = (np.full(len(images), -1, dtype=np.int64) for _ in range(2))
    caption_from[found.rows], image_from[found.rows] = found.caption_from, found.image_from
    return EmbeddingAudit(
        verdict.p_match,
        verdict.flagged,
        verdict.share,
        verdict.random,
        verdict.near,
        scored.given.indicators,
        scored.given.similarity,
        caption_from,
        image_from,
        faults,
    )


def checked_side(name: str, given: Array | Tensor) -> Array:
    """One side as (N, D) float32; errors are those of `audit_embeddings`."""
    detach = getattr(given, "detach", None)
    rows = np.asarray(given if detach is None else readable(detach()))
    if rows.ndim != 2 or rows.dtype.kind != "f" or not rows.shape[1]:
        raise InputError(f"{name} are {rows.dtype} of shape {rows.shape}; expected floats of shape (N, D)")
    largest = np.abs(rows).max(axis=1, initial=0)
    odd = np.flatnonzero(~(np.isfinite(largest) & (largest > 0)))
    if len(odd):
        raise InputError(
            f"{name}[{odd[0]}] is all zeros, or has a number that is NaN or infinite; leave out such pairs ("
            f"{len(odd)} in all)"
        )
    scaled: Array = (rows / largest[:, None]).astype(np.float32)
    return scaled


def readable(rows: Tensor) -> Tensor:
    """A tensor without gradient as numpy can read it; numpy knows no bfloat16 and no smaller floats."""
    return (rows.float() if rows.is_floating_point() and rows.element_size() <= 2 else rows).cpu()


class ArrayPairs(EmbeddingCollection):
    """Two arrays as a source."""

    def __init__(self, images: Array, texts: Array, image_ids: Sequence[object] | None) -> None:
        self.images, self.texts, self.image_ids = images, texts, image_ids
        self.name, self.problems, self.width = "arrays", (), images.shape[1]

    def __len__(self) -> int:
        return len(self.images)

    def ids(self, start: int, stop: int) -> list[str]:
        return [str(row) for row in range(start, min(stop, len(self)))]

    def image_names(self, start: int, stop: int) -> list[str]:
        return self.ids(start, stop) if self.image_ids is None else [str(name) for name in self.image_ids[start:stop]]

    def captions(self, start: int, stop: int) -> list[str]:
        return [""] * len(self.ids(start, stop))

    def read(self, start: int, stop: int) -> tuple[Array, Array]:
        return self.images[start:stop], self.texts[start:stop]

    def fingerprint(self) -> str:
        return self.name
