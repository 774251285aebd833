"""`/decisions`: what people decide about the pairs of an audit, what comes next, and how far it is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Depends, Query
from pydantic import BaseModel, Field

from truepair.decisions.decision import Decision, Left, Undone
from truepair.errors import InputError
from truepair.serve.errors import Problem
from truepair.serve.routes.pairs import FAR, Body, Pair, wanted_of
from truepair.serve.service import Service
from truepair.serve.table import Wanted

MOST = 1000
"""Decisions of one request."""
SCREEN = 100
"""Pairs of one answer."""
Verdict = Literal["match", "mismatch", "unsure"]
Named = Annotated[str | None, Query(max_length=200, description="name of an audit; the first by default")]
Person = Annotated[str, Query(max_length=200, description="who reviews")]
Digest = Annotated[
    str | None,
    Field(
        max_length=100, description="digest of the audit's pairs, as /decisions/next says: that of others is refused"
    ),
]
Name = Annotated[
    str, Field(min_length=1, max_length=100, description="of this request, drawn at random: sent again, it counts once")
]


class Judgement(Body):
    """A decision about a pair."""

    id: Name
    pair_id: str = Field(min_length=1, max_length=10_000)
    verdict: Verdict | None = Field(description="null takes an earlier one of the person back")
    person: str = Field(min_length=1, max_length=200)
    chosen_by: str = Field(
        "page", min_length=1, max_length=200, description="how the pair was chosen: as /decisions/next says"
    )
    probability_chosen: float | None = Field(None, gt=0, le=1, description="as /decisions/next says; null: not drawn")
    caption: str | None = Field(None, max_length=100_000, description="a corrected caption")
    partner: str | None = Field(None, max_length=10_000, description="pair whose caption was accepted instead")
    seconds: float | None = Field(None, ge=0, le=1e9, description="how long the person looked")


class Judgements(Body):
    """Decisions, kept all or not at all."""

    source: str | None = Field(None, max_length=200, description="name of an audit; the first by default")
    audit: Digest = None
    decisions: list[Judgement] = Field(min_length=1, max_length=MOST)


class Recorded(BaseModel):
    """What was kept."""

    numbers: list[int] = Field(description="rows of the history")
    latest: int = Field(description="row that was written last by anybody")


class TakingBack(Body):
    """Taking back decisions of a person: those that are named, or the last ones."""

    source: str | None = Field(None, max_length=200, description="name of an audit; the first by default")
    audit: Digest = None
    id: Name
    person: str = Field(min_length=1, max_length=200)
    decisions: list[Name] | None = Field(
        None,
        min_length=1,
        max_length=MOST,
        description="ids of the decisions, as they were sent; without it the last `count` of the person, wherever made",
    )
    count: int = Field(1, ge=1, le=MOST, description="how many decisions; not beside `decisions`")


class Kept(BaseModel):
    """A row of the history."""

    number: int
    pair_id: str
    verdict: Verdict | None = Field(description="null: taken back")
    caption: str | None
    partner: str | None
    person: str = Field(description="several where all people's decisions are put together")
    chosen_by: str
    probability_chosen: float | None
    seconds: float | None
    at: str = Field(description="UTC")
    undoes: int | None = Field(description="row that this one takes back")


class NotTakenBack(BaseModel):
    """A decision that was named and not taken back."""

    id: str
    pair_id: str | None = Field(description="null where it is unknown")
    why: Left = Field(description="the person decided anew since; or took it back already; or none has this id")


class TakenBack(BaseModel):
    """What was taken back, the last one first."""

    taken_back: list[Kept]
    not_taken_back: list[NotTakenBack] = Field(description="of those that were named; the others are taken back")
    latest: int


class KeptPair(Kept):
    """A decision with its pair."""

    pair: Pair


class Standing(BaseModel):
    """Decided pairs, the latest decision first."""

    total: int
    latest: int
    decisions: list[KeptPair]


class History(BaseModel):
    """Rows of the history, oldest first."""

    latest: int
    decisions: list[Kept]


class Coming(BaseModel):
    """A pair to review."""

    pair: Pair
    place: int = Field(description="in the table of the audit, from 0: what `skip` is given")
    chosen_by: str
    probability_chosen: float | None = Field(description="of the draw; null where the order draws nothing")


class ComingPairs(BaseModel):
    """What to review next."""

    source: str
    audit: str = Field(description="digest of the audit's pairs; sent back, decisions reach no other audit of the name")
    left: int = Field(description="undecided pairs in this order")
    pairs: list[Coming]


class Agreeing(BaseModel):
    """Where the verdict of the audit and people agree; "unsure" is left out."""

    pairs: int
    agreed: int
    missed: int = Field(description="called mismatched, not flagged")
    mistaken: int = Field(description="called matched, but flagged")


class Estimate(BaseModel):
    """The share of mismatched pairs in the whole audit, by all decisions."""

    share: float
    low: float = Field(description="lower end of the interval of 95 %, valid at all times")
    high: float
    drawn: int = Field(description="decided pairs that were drawn at random: only these tell of the others")
    mismatched: int
    unsure: int
    note: str


class Worker(BaseModel):
    """A person who reviews."""

    person: str
    decided: int


class State(BaseModel):
    """How far a review is."""

    source: str
    audit: str = Field(description="digest of the audit's pairs")
    latest: int
    pairs: int
    decided: int
    people: list[Worker]
    agreement: Agreeing
    estimate: Estimate


def router(service: Service) -> APIRouter:
    routes = APIRouter(tags=["decisions"])

    @routes.post("/decisions")
    def record(given: Judgements) -> Recorded:
        """Keep decisions. When the answer comes, they are on the disk; without an answer, send the same again."""
        review = service.review(given.source)
        review.require(given.audit)
        requests = [each.id for each in given.decisions]
        if len(set(requests)) < len(requests):
            raise Problem(400, "same-id", "two decisions have one id; draw an id for each")
        decisions = [Decision(**each.model_dump(exclude={"id"})) for each in given.decisions]
        return Recorded(numbers=review.record(decisions, requests), latest=review.latest)

    @routes.post("/decisions/undo")
    def undo(given: TakingBack) -> TakenBack:
        """Take back decisions of a person: what was thought before counts again."""
        review = service.review(given.source)
        review.require(given.audit)
        if given.decisions is None:
            requests = [f"{given.id}/{place}" for place in range(given.count)]
            taken_back = review.undo(given.person, requests)
            return TakenBack(taken_back=_kept(taken_back), not_taken_back=[], latest=review.latest)
        if "count" in given.model_fields_set:
            raise InputError("a count says nothing of decisions that are named; give either decisions or count")
        undone = review.undo_named(given.person, list(dict.fromkeys(given.decisions)), given.id)
        return TakenBack(
            taken_back=_kept([each.decision for each in undone if each.decision is not None and each.left is None]),
            not_taken_back=_left(undone),
            latest=review.latest,
        )

    @routes.get("/decisions")
    def standing(
        source: Named = None,
        person: Annotated[str | None, Query(max_length=200, description="of one person; of all by default")] = None,
        offset: Annotated[int, Query(ge=0, le=FAR)] = 0,
        limit: Annotated[int, Query(ge=1, le=SCREEN)] = 20,
    ) -> Standing:
        """What is thought of the decided pairs: of several people the majority counts, a tie is unsure."""
        review = service.review(source)
        current = sorted(review.current(person).values(), key=lambda each: each.number or 0, reverse=True)
        some = current[offset : offset + limit]
        rows = [review.population.rows[each.pair_id] for each in some]
        both = zip(some, review.told(rows), strict=True)
        return Standing(
            total=len(current),
            latest=review.latest,
            decisions=[KeptPair(**asdict(each), pair=Pair(**pair)) for each, pair in both],
        )

    @routes.get("/decisions/history")
    def history(
        source: Named = None,
        pair_id: Annotated[str | None, Query(max_length=10_000, description="of one pair alone")] = None,
        after: Annotated[int, Query(ge=0, le=FAR, description="rows with a larger number alone")] = 0,
        limit: Annotated[int, Query(ge=1, le=MOST)] = MOST,
    ) -> History:
        """Every decision ever made, those that were taken back as well."""
        review = service.review(source)
        rows = [each for each in review.history() if (each.number or 0) > after and pair_id in (None, each.pair_id)]
        return History(latest=review.latest, decisions=_kept(rows[:limit]))

    @routes.get("/decisions/next")
    def coming(
        wanted: Annotated[Wanted, Depends(wanted_of)],
        skip: Annotated[
            list[int], Query(default_factory=list, max_length=MOST, description="places of pairs on the screen")
        ],
        source: Named = None,
        order: Annotated[
            Literal["gain", "worst", "facet"], Query(description="expected gain, worst first, or worst of some pairs")
        ] = "gain",
        person: Person = "",
        again: Annotated[bool, Query(description="those that others decided, too")] = False,
        limit: Annotated[int, Query(ge=1, le=SCREEN)] = 10,
    ) -> ComingPairs:
        """What to review next. Send `chosen_by` and `probability_chosen` back with the decision."""
        review = service.review(source)
        aside = [row for row in skip if 0 <= row < FAR]
        found, left = review.coming(order, limit, person=person, wanted=wanted, skip=aside, again=again)
        chosen_by = "second opinion" if again else order
        told = review.told([row for row, _ in found])
        pairs = [
            Coming(pair=Pair(**pair), place=place, chosen_by=chosen_by, probability_chosen=probability)
            for pair, (place, probability) in zip(told, found, strict=True)
        ]
        return ComingPairs(source=review.source.name, audit=review.source.digest, left=left, pairs=pairs)

    @routes.get("/decisions/progress")
    def progress(source: Named = None) -> State:
        """How many pairs are decided, where people and the verdict agree, and the share of mismatched pairs."""
        review = service.review(source)
        found = review.progress()
        agreement: dict[str, Any] = asdict(found.agreement)
        estimate: dict[str, Any] = asdict(found.estimate)
        return State(
            source=review.source.name,
            audit=review.source.digest,
            latest=found.latest,
            pairs=found.pairs,
            decided=found.estimate.decided,
            people=[Worker(person=name, decided=count) for name, count in found.people.items()],
            agreement=Agreeing(**{name: agreement[name] for name in Agreeing.model_fields}),
            estimate=Estimate(**{name: estimate[name] for name in Estimate.model_fields}),
        )

    return routes


def _left(undone: Sequence[Undone]) -> list[NotTakenBack]:
    return [
        NotTakenBack(id=each.name, pair_id=None if each.decision is None else each.decision.pair_id, why=each.left)
        for each in undone
        if each.left is not None
    ]


def _kept(decisions: Sequence[Decision]) -> list[Kept]:
    return [Kept(**asdict(each)) for each in decisions]
