"""An audit with the decisions of people: decided pairs are fixed, the others judged in their light."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from truepair.audit.result import Share, Verdict
from truepair.audit.scoring.row_ranges import words_at
from truepair.audit.scoring.scored_pairs import ScoredPairs
from truepair.audit.verdict.by_people import learned, within
from truepair.audit.verdict.score import NO_SIGN
from truepair.data.collection import Collection
from truepair.data.pairs import Array, BoolArray
from truepair.decisions import Decision
from truepair.decisions.agreement import Agreement, agreement_with
from truepair.decisions.estimate import MISTAKES, NoiseEstimate, noise_estimate
from truepair.decisions.population import Population
from truepair.decisions.sources import Decided

_FEW = "people found hardly any mismatched pair among those drawn at random"


@dataclass(frozen=True)
class People:
    """What people decided of the pairs of an audit.

    Attributes:
        decisions: place among the scored pairs → what is thought of the pair, in the order in which they were chosen.
        captions: place → the caption that people put in the place of the given one.
        p_match: (M,) float32, what the audit believes without them.
        noise: the share of mismatched pairs by people, and whether the verdict has taken it over.
        agreement: of people and the verdict without them.
    """

    decisions: Mapping[int, Decision]
    captions: Mapping[int, str]
    p_match: Array
    noise: NoiseEstimate
    taken_over: bool
    agreement: Agreement

    def facts(self) -> dict[str, Any]:
        """For `summary.json`."""
        agreed = self.agreement
        return {
            "decided": self.noise.decided,
            "drawn": self.noise.drawn,
            "mismatched": self.noise.mismatched,
            "unsure": self.noise.unsure,
            "corrected": len(self.captions),
            "noise_rate": self.noise.share,
            "noise_rate_low": self.noise.low,
            "noise_rate_high": self.noise.high,
            "taken_over": self.taken_over,
            "note": self.noise.note,
            "agreed": agreed.agreed,
            "missed": agreed.missed,
            "mistaken": agreed.mistaken,
            "calibration": agreed.bins,
        }


def check_decisions(collection: Collection, decided: Decided) -> None:
    """Raises InputError: the decisions are about other pairs than these, or than those that noise has made of them."""
    everything = np.arange(len(collection))
    places = decided.places_in(words_at(collection.ids, everything), words_at(collection.captions, everything))
    mismatched = collection.mismatched()
    if mismatched is not None:
        images = words_at(collection.image_names, everything)
        for name, place in places.items():
            decided.check_image(name, images[place], mismatched=bool(mismatched[place]))


def with_decisions(
    verdict: Verdict, scored: ScoredPairs, collection: Collection, decided: Decided
) -> tuple[Verdict, People]:
    """The verdict in the light of decisions, and what they come to.

    Decided pairs get p_match 1 or 0, "unsure" ones what the others get: the verdict weighed anew (`by_people`), as far
    as the interval of the share of mismatched pairs allows. That share is the one of the decisions once its interval is
    narrower than the audit's own; until then it is the audit's, within what the decided pairs alone leave possible.

    Raises:
        InputError: the decisions are about other data.
    """
    ids, captions = words_at(collection.ids, scored.rows), words_at(collection.captions, scored.rows)
    current = decided.among(ids, captions)
    pairs = Population(ids, verdict.p_match.astype(np.float64))
    noise, agreement = noise_estimate(pairs, current.values()), agreement_with(pairs, current.values())
    sure = {place: decision.verdict == "match" for place, decision in current.items() if decision.verdict != "unsure"}
    rows, matched = np.array(list(sure), dtype=np.int64), np.array(list(sure.values()), dtype=bool)
    p_match, weights = learned(verdict.p_match, scored.given.similarity, scored.given.indicators, rows, matched)
    p_match[rows] = matched
    narrower = noise.drawn > 0 and noise.high - noise.low < verdict.noise_rate_high - verdict.noise_rate_low
    own = verdict.share
    share = _clipped(noise.share, noise.low, noise.high) if narrower else allowed(own, matched, len(ids))
    if len(rows):
        p_match = within(p_match, np.isin(np.arange(len(p_match)), rows), share.low, share.high)
    changed = replace(
        verdict,
        p_match=p_match.astype(np.float32),
        flagged=p_match.astype(np.float32) < 0.5,
        details={**verdict.details, "weights_by_people": weights},
    )
    if share != own:
        two_groups = share.share > NO_SIGN and (share.low > 0 or verdict.two_groups)
        changed = replace(
            changed,
            noise_rate=share.share,
            noise_rate_low=share.low,
            noise_rate_high=share.high,
            two_groups=two_groups,
            doubt=None if two_groups else _FEW if narrower else verdict.doubt,
            details={**changed.details, "noise_rate_undecided": verdict.noise_rate},
        )
    people = People(current, _corrections(current, pairs, captions), verdict.p_match, noise, narrower, agreement)
    return changed, people


def allowed(own: Share, matched: BoolArray, pairs: int) -> Share:
    """The audit's own estimate within what the decided pairs alone leave possible, `MISTAKES` of them wrong; where its
    interval lies outside, they refute it, and what is possible stands in its place.

    Args:
        matched: (D,) what people say of the decided pairs.
        pairs: number of all.
    """
    wrong = MISTAKES * len(matched)
    low = max(0.0, float((~matched).sum()) - wrong) / pairs
    high = 1 - max(0.0, float(matched.sum()) - wrong) / pairs
    if low <= own.high and own.low <= high:
        low, high = max(low, own.low), min(high, own.high)
    return _clipped(own.share, low, high)


def digest_of(decided: Decided) -> str:
    """Of all that was decided; an export that was made with other decisions is told by it."""
    import hashlib
    import json

    rows = [[row.pair_id, row.verdict, row.caption, row.partner, row.person, row.at] for row in decided.history]
    return hashlib.blake2b(json.dumps(rows).encode(), digest_size=8).hexdigest()


def _clipped(share: float, low: float, high: float) -> Share:
    return Share(min(max(share, low), high), low, high)


def _corrections(current: Mapping[int, Decision], pairs: Population, captions: list[str]) -> dict[int, str]:
    """What people wrote, or the caption of the partner they accepted; of pairs they are not unsure of."""
    found = {}
    for place, decision in current.items():
        if decision.verdict == "unsure":
            continue
        if decision.caption is not None:
            found[place] = decision.caption
        elif decision.partner is not None and decision.partner in pairs.rows:
            found[place] = captions[pairs.rows[decision.partner]]
    return found
