"""What scoring hands to the verdict and to the rematch, whatever pairs were scored by. A pair is told by its row."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from torch import Tensor

from truepair.audit.scoring.evidence import Evidence, HeldOut, NearestCopies
from truepair.audit.scoring.local_ranks import LocalRanks
from truepair.data.collection import Problem
from truepair.data.pairs import Array, BoolArray, IntArray


@dataclass(frozen=True)
class Offer:
    """Captions (or images) of some pairs, and how similar they are to the images (captions) of those asked about.

    Attributes:
        side: what is offered, "caption" or "image".
        asked: which of the asked rows, as a slice of them.
        rows: (k,) int64, the pairs that the offered ones are of, ascending.
        similarity: (n, k); whoever reads it may overwrite it.
    """

    side: str
    asked: slice
    rows: IntArray
    similarity: Tensor


class Space(Protocol):
    """Where pairs can be compared with others: a space of embeddings, or an engine of cross-attention."""

    def covers(self, rows: IntArray) -> IntArray:
        """Those of the rows, most suspicious first, that are to be compared here; ascending."""

    def similarity(self, rows: IntArray) -> Tensor:
        """(n,) of the given pairs of ascending rows."""

    def paired(self, image_rows: IntArray, caption_rows: IntArray) -> Tensor:
        """(n,) similarity of the image of each pair of the first rows with the caption of that of the second."""

    def compared(self, image_rows: IntArray, caption_rows: IntArray) -> Tensor:
        """(n, m) similarity of the images of some pairs with the captions of others, rows in any order."""

    def offers(self, rows: IntArray) -> Iterator[Offer]:
        """All captions and all images there are, compared with the pairs of ascending rows."""

    def scores(self, image_rows: IntArray, caption_rows: IntArray) -> dict[str, Array]:
        """(n,) similarity, log odds and indicators of the images of some pairs with the captions of others."""


@dataclass(frozen=True)
class ScoredPairs:
    """Attributes:
    rows: (M,) int64, the rows of the source that could be scored, ascending.
    given: evidence of these pairs.
    synthetic: kind → evidence of synthetic mismatches; empty where none can be scored in the same way.
    spaces: where suspicious pairs are rematched.
    bank: number of pairs that each was compared with.
    problems: rows that could not be scored.
    held_out: evidence by held-out models alone, of more synthetic mismatches, where there is such.
    local: ranks of pairs among their most similar captions and images, one each space that has vectors.
    nearest: copies of captions of the nearest image, where pairs have vectors.
    trained_on: (M,) whether the scoring model was trained on the pair; None where it never was. Only other pairs are
        measured by the synthetic mismatches, which no model was trained on.
    details: what else the summary should say of the scoring; JSON values.
    """

    rows: IntArray
    given: Evidence
    synthetic: dict[str, Evidence]
    spaces: Sequence[Space]
    bank: int
    problems: list[Problem] = field(default_factory=list)
    held_out: HeldOut | None = None
    local: Sequence[LocalRanks] = ()
    nearest: NearestCopies | None = None
    trained_on: BoolArray | None = None
    details: dict[str, Any] = field(default_factory=dict)
