"""The pairs of the page as people can judge them: picture, caption, probability, reason, and what would fit better."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from truepair.audit.result import AuditResult
from truepair.errors import TruepairError
from truepair.pages.kit.page import clipped
from truepair.pages.kit.pictures import Picture, thumbnail
from truepair.phrases import plain, printable

SIDE = 112  # pixels of the longer side of a picture
BUDGET = 4_500_000  # bytes that all pictures of a page may take together
LETTERS = 200


@dataclass(frozen=True)
class Shown:
    """An image and a caption as given; it is not known that they belong together."""

    pair_id: str
    picture: Picture
    caption: str


class Cards:
    """Pairs by their row.

    Attributes:
        cramped: whether a picture was left out for want of room.
    """

    def __init__(self, result: AuditResult) -> None:
        self.result = result
        self.room = BUDGET
        self.cramped = False
        self.sources: dict[int, str | None] = {}
        self.seats = {int(row): seat for seat, row in enumerate(result.rematch.rows)}

    def shown(self, row: int) -> Shown:
        collection = self.result.collection
        name, caption, image = (
            printable(read(row, row + 1)[0]) for read in (collection.ids, collection.captions, collection.image_names)
        )
        source = self.source(row)
        if source is not None and len(source) > self.room:
            source, self.cramped = None, True
        self.room -= len(source or "")
        return Shown(clipped(name, 60), Picture(clipped(image, 80), source), clipped(caption, LETTERS))

    def source(self, row: int) -> str | None:
        if row not in self.sources:
            try:
                picture = self.result.collection.picture(row)
                self.sources[row] = None if picture is None else thumbnail(picture, SIDE)
            except (TruepairError, OSError):  # a file that vanished since; its name is shown instead
                self.sources[row] = None
        return self.sources[row]

    def card(self, rank: int, row: int, *, proposals: bool = True) -> dict[str, Any]:
        """A scored pair; `mismatched` is None where the truth is unknown."""
        result, position = self.result, int(self.result.at(np.array(row)))
        return {
            "rank": rank,
            "pair": self.shown(row),
            "p_match": float(result.verdict.p_match[position]),
            "similarity": float(result.similarity[position]),
            "flagged": bool(result.verdict.flagged[position]),
            "reason": result.reasons[position],
            "indicators": [(name, plain(float(values[position]))) for name, values in result.indicators.items()],
            "mismatched": None if result.mismatched is None else bool(result.mismatched[position]),
            "caption": self.proposal(row, "caption") if proposals else None,
            "image": self.proposal(row, "image") if proposals else None,
        }

    def proposal(self, row: int, side: str) -> dict[str, Any] | None:
        """A pair to take the caption or the image from, and how well that fits, in [0, 1]."""
        seat, found = self.seats.get(row), self.result.rematch
        if seat is None:
            return None
        source, fit = getattr(found, f"{side}_from")[seat], getattr(found, f"{side}_fit")[seat]
        return None if source < 0 or source == row else {"pair": self.shown(int(source)), "fit": float(fit)}
