"""One judgement of one person about one pair, and what several people come to."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any, Literal

from truepair.errors import InputError

Judgement = Literal["match", "mismatch", "unsure"]
VERDICTS: tuple[Judgement, ...] = ("match", "mismatch", "unsure")
Left = Literal["changed", "taken back", "unknown"]
"""Why a decision was not taken back: the person decided the pair anew since, or has taken it back already; or no
decision of the person has this name.
"""
CLOCK = "%Y-%m-%dT%H:%M:%S.%fZ"
"""Times as `Decision.at` has them: UTC, of one length, so that their order is that of the texts."""
_LONGEST = {"pair_id": 10_000, "person": 200, "chosen_by": 200, "caption": 100_000, "partner": 10_000, "at": 64}


@dataclass(frozen=True, kw_only=True)
class Decision:
    """A judgement about a pair.

    Attributes:
        pair_id: the pair, as pairs.parquet has it.
        verdict: "match", "mismatch" or "unsure"; None takes an earlier one back.
        caption: a corrected caption of the image; with "match" or "mismatch" it stands in the caption's place.
        partner: pair_id of the pair whose caption was accepted instead.
        person: who judged.
        chosen_by: how the pair came before the person: an order of review ("gain", "worst", "facet"), or any other way.
        probability_chosen: probability of the draw among all pairs that were undecided then, in (0, 1]; None where
            nothing was drawn.
        seconds: how long the person looked.
        at: when, UTC in ISO 8601 with microseconds; the store sets it.
        number: row of the history; the store sets it.
        undoes: row of the history that this one takes back.
    """

    pair_id: str
    verdict: Judgement | None
    person: str
    chosen_by: str
    caption: str | None = None
    partner: str | None = None
    probability_chosen: float | None = None
    seconds: float | None = None
    at: str | None = None
    number: int | None = None
    undoes: int | None = None

    @property
    def drawn(self) -> bool:
        """Whether the pair was drawn at random."""
        return self.probability_chosen is not None


@dataclass(frozen=True)
class Undone:
    """What became of a decision that was to be taken back.

    Attributes:
        name: that it was kept under.
        decision: it; None where it is unknown.
        left: why it stands as it was; None where it was taken back.
    """

    name: str
    decision: Decision | None
    left: Left | None


def checked(decision: Decision) -> Decision:
    """The decision itself; raises InputError where a value is not one that can be kept."""
    if decision.verdict is not None and decision.verdict not in VERDICTS:
        raise InputError(f"a verdict is {_shown(decision.verdict)}; expected {', '.join(VERDICTS)}, or none to undo")
    for name, longest in _LONGEST.items():
        value = getattr(decision, name)
        if value is None and name in ("caption", "partner", "at"):
            continue
        _check_text(name, value, longest)
    if decision.at is not None:
        _check_time(decision.at)
    for name, most in (("probability_chosen", 1.0), ("seconds", math.inf)):
        value = getattr(decision, name)
        if value is None:
            continue
        number = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
        if not number or value < 0 or value > most or (name == "probability_chosen" and value == 0):
            expected = "a number above 0, at most 1" if most == 1 else "a number of seconds, 0 or more"
            raise InputError(f"{name} of a decision is {_shown(value)}; expected {expected}")
    return decision


def _check_text(name: str, value: Any, longest: int) -> None:
    if not isinstance(value, str) or not value.strip() or "\0" in value:
        raise InputError(f"{name} of a decision is {_shown(value)}; expected text that is not blank")
    if len(value) > longest:
        raise InputError(f"{name} of a decision has {len(value):,} characters; expected at most {longest:,}")
    try:
        value.encode("utf-8")
    except UnicodeEncodeError as error:
        raise InputError(f"{name} of a decision is {_shown(value)}, which is no UTF-8; write it anew") from error


def _check_time(at: str) -> None:
    try:
        time = datetime.strptime(at, CLOCK).replace(tzinfo=UTC)
        if time.strftime(CLOCK) == at and time < datetime.now(UTC) + timedelta(days=1):
            return
    except ValueError:
        pass
    raise InputError(f"at of a decision is {_shown(at)}; expected a time like 2026-01-31T12:00:00.000000Z that is past")


def majority(decisions: Iterable[Decision]) -> Decision | None:
    """What several people come to of one pair: the most frequent verdict, "unsure" where none is the most frequent.

    Args:
        decisions: the latest of each person, oldest first; verdicts that were taken back count for nothing.

    Returns:
        The latest decision of that verdict, with the latest corrected caption or partner that came with it, and the
        names of all who judged. None where nobody has a verdict.
    """
    standing = [decision for decision in decisions if decision.verdict is not None]
    if not standing:
        return None
    counts = Counter(decision.verdict for decision in standing).most_common()
    tied = len(counts) > 1 and counts[0][1] == counts[1][1]
    agreed = [decision for decision in standing if decision.verdict == counts[0][0]]
    last = standing[-1] if tied else agreed[-1]
    correction = next((d for d in reversed(agreed) if d.caption is not None or d.partner is not None), None)
    return replace(
        last,
        verdict="unsure" if tied else last.verdict,
        caption=None if tied or correction is None else correction.caption,
        partner=None if tied or correction is None else correction.partner,
        person=", ".join(dict.fromkeys(decision.person for decision in standing)),
    )


def current_of(history: Iterable[Decision], person: str | None = None) -> dict[str, Decision]:
    """What is thought of every decided pair, from a history in its order; see `DecisionStore.current`."""
    latest: dict[str, dict[str, Decision]] = {}
    first: dict[str, Decision] = {}
    for decision in history:
        if person is None or decision.person == person:
            people = latest.setdefault(decision.pair_id, {})
            people.pop(decision.person, None)  # so that the people stand in the order of their latest words
            people[decision.person] = decision
            if decision.verdict is not None:
                first.setdefault(decision.pair_id, decision)
    found = {}
    for pair_id, people in latest.items():
        agreed = majority(people.values())
        if agreed is not None:
            chosen = first[pair_id]
            found[pair_id] = replace(agreed, chosen_by=chosen.chosen_by, probability_chosen=chosen.probability_chosen)
    return found


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}…"
