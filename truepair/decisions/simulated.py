"""A person who knows the truth, and now and then is mistaken: what a review would come to, before anybody reviews."""

from __future__ import annotations

import numpy as np

from truepair.data.pairs import BoolArray
from truepair.decisions.decision import Decision
from truepair.decisions.order import ReviewOrder
from truepair.seeding import generator


class SimulatedReviewer:
    """Decides pairs by the truth.

    The same pair gets the same answer however often it is asked about: a mistake is a pair that the person misreads.
    """

    def __init__(self, mismatched: BoolArray, *, mistakes: float = 0.05, seed: int = 0) -> None:
        """Args:
        mismatched: (N,) the truth, in the order of the audit's table.
        mistakes: probability of each answer to be wrong, in [0, 1].
        """
        wrong = generator(seed, "simulated reviewer").random(len(mismatched)) < mistakes
        self.says_mismatched: BoolArray = np.asarray(mismatched) ^ wrong

    def review(self, order: ReviewOrder, count: int) -> list[Decision]:
        """The first `count` decisions in an order of review."""
        return [
            Decision(
                pair_id=order.pairs.ids[row],
                verdict="mismatch" if self.says_mismatched[row] else "match",
                person="simulated reviewer",
                chosen_by=order.by,
                probability_chosen=probability,
            )
            for row, probability in order.next(count)
        ]
