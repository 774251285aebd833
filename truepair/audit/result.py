"""What an audit found, as values: everything that is written, shown and exported is made from these."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from truepair.data.collection import Collection, Problem
from truepair.data.pairs import Array, BoolArray, IntArray
from truepair.phrases import counted, percent, percent_span

if TYPE_CHECKING:
    from truepair.audit.people import People

INDICATORS = {
    "matching": "the caption and the image choose each other among a bank of others",
    "rank": "how high each stands in the ranking of the other",
    "structure": "the image stands to other images as the caption stands to their captions",
    "neighbours": "similar images have captions that fit, and similar captions have images that fit",
    "certainty": "how much evidence there is for any partner at all",
    "others": "how much the caption has in common with the image's other captions",
    "memory": "what training came to believe of the pair",
}
"""Every indicator in [0, 1], larger = better matched. An audit has those that its scoring can tell."""


@dataclass(frozen=True)
class Share:
    """A share of the pairs with its 95 % interval, in [0, 1]."""

    share: float
    low: float
    high: float


def shown_verdict(flagged: BoolArray, share: Share) -> str:
    """What is believed of some pairs, in one line."""
    interval = f"95 % interval {percent_span(share.low, share.high)}"
    return f"{counted(len(flagged), 'pair')}, {percent(share.share)} mismatched ({interval}), {flagged.sum():,} flagged"


@dataclass(frozen=True, repr=False)
class Verdict:
    """What is believed of every scored pair, and of all together.

    Attributes:
        p_match: (M,) float32, calibrated probability that the pair matches.
        flagged: (M,) taken as mismatched.
        noise_rate, noise_rate_low, noise_rate_high: share of mismatched pairs and its 95 % interval, in [0, 1]: that of
            random ones, and of near ones what is certain.
        random: share of random mismatches; None where a mixture was fitted. Of pairs that the scoring run knows, and
            others, it is that of the others.
        near: share of near mismatches (captions of similar things); None where they could not be asked for. Right
            pairs that cannot be told from their like look the same, hence the wide interval.
        two_groups: whether the scores show a group of mismatched pairs at all; without one nothing is flagged but
            single pairs that are as bad as chance.
        doubt: why no second group is believed in, in words; None where it is.
        details: figures behind the verdict, for `summary.json` (JSON values only).
    """

    p_match: Array
    flagged: BoolArray
    noise_rate: float
    noise_rate_low: float
    noise_rate_high: float
    two_groups: bool
    doubt: str | None = None
    details: dict[str, Any] = field(default_factory=dict)
    random: Share | None = None
    near: Share | None = None

    @property
    def share(self) -> Share:
        """The share of mismatched pairs with its interval."""
        return Share(self.noise_rate, self.noise_rate_low, self.noise_rate_high)

    def __repr__(self) -> str:
        return f"Verdict({shown_verdict(self.flagged, self.share)})"


@dataclass(frozen=True)
class Rematch:
    """Better partners of suspicious pairs. All numbers are rows of the source; −1 is none.

    Attributes:
        rows: (S,) the suspicious pairs that were looked at, most suspicious first.
        caption_from: (S,) the pair whose caption fits this pair's image best.
        caption_fit: (S,) how well, [0, 1]: matching probability of the proposal.
        image_from, image_fit: the same for the image that fits this pair's caption best.
        swap_with: (S,) a suspicious pair that this one exchanged its caption with: each one's caption fits the other
            one's image best.
    """

    rows: IntArray
    caption_from: IntArray
    caption_fit: Array
    image_from: IntArray
    image_fit: Array
    swap_with: IntArray


@dataclass(frozen=True)
class DuplicateGroup:
    """Pairs that share something. `kind` is one of the keys of `DUPLICATES`; `rows` are those of the source."""

    kind: str
    rows: IntArray


DUPLICATES = {
    "same-image": "exactly the same image in several pairs of different images",
    "near-image": "images that are all but the same",
    "same-caption": "the same caption, but for case and spaces, on different images",
    "near-caption": "captions that are all but the same",
    "same-pair": "the same image with the same caption more than once",
}


@dataclass(frozen=True)
class Fault:
    """Something that went wrong with many pairs at once. `kind` is one of the keys of `FAULTS`.

    Attributes:
        rows: (n,) int64, the pairs concerned, ascending rows of the source.
        sentence: what was found, where, and what to do.
        offset: where captions are shifted, how many pairs further on the caption of an image stands (negative: before).
        caption_from: (n,) int64, the pair whose caption belongs to each image; −1 where none is known; None where
            nothing can be repaired.
    """

    kind: str
    rows: IntArray
    sentence: str
    offset: int | None = None
    caption_from: IntArray | None = None


FAULTS = {
    "shifted-captions": "in a stretch of pairs, the caption of every image stands the same number of pairs further on "
    "or before",
    "shuffled-captions": "in a stretch of pairs, the captions belong to images of the same stretch, in another order",
    "mismatched-stretch": "most pairs of a stretch are mismatched, and no offset or order was found that matches them",
    "placeholder-picture": "one picture stands under many captions, as 'image not available' does",
    "repeated-caption": "one caption stands on many images, as the name of a shop does",
    "one-colour-picture": "pictures that hold one colour and nothing else",
}


@dataclass(frozen=True, repr=False)
class AuditResult:
    """A finished audit.

    Attributes:
        collection: what was audited.
        scored_by: "cross-fitting", "run", "encoder" or "embeddings".
        rows: (M,) int64, the rows of the source that could be scored, ascending. All (M,) columns below are in this
            order; `at` says where in them a row stands.
        similarity: (M,) float32, similarity of the pair as the model or the embeddings give it.
        indicators: name (of `INDICATORS`) → (M,) float32 in [0, 1].
        reasons: (M,) in words what spoke against a pair; empty where it is not flagged.
        mismatched: (M,) the truth where it is known, else None.
        problems: those of the collection, and the rows that could not be scored.
        scores: against the truth, where it is known: auroc, average_precision, f1, calibration_error, and
            reliability: a list of {low, high, pairs, p_match, matched} per bin of p_match.
        seconds: step → time, for the summary.
        options: what the audit was asked for, complete enough to repeat it.
        people: what people decided, where decisions were given.
        identity: what tells the audit from others (`audit.folder.identity_of`), JSON values; None: made by hand.
    """

    collection: Collection
    scored_by: str
    rows: IntArray
    similarity: Array
    indicators: dict[str, Array]
    verdict: Verdict
    reasons: list[str]
    rematch: Rematch
    duplicates: list[DuplicateGroup]
    faults: list[Fault]
    problems: list[Problem]
    mismatched: BoolArray | None = None
    scores: dict[str, Any] | None = None
    seconds: dict[str, float] = field(default_factory=dict)
    options: dict[str, Any] = field(default_factory=dict)
    people: People | None = None
    identity: dict[str, Any] | None = None

    def __repr__(self) -> str:
        found = shown_verdict(self.verdict.flagged, self.verdict.share)
        return f"AuditResult({self.collection.name!r}, scored by {self.scored_by}: {found})"

    def __len__(self) -> int:
        return len(self.rows)

    def at(self, rows: IntArray) -> IntArray:
        """Places of some scored rows in the columns."""
        return np.searchsorted(self.rows, rows)

    @property
    def warnings(self) -> list[str]:
        """What to know before the estimate or the probabilities are believed, in sentences; see `audit.warnings`."""
        from truepair.audit.warnings import warnings_of  # here, as every file of the report imports this one

        return warnings_of(self)
