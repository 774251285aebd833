"""`/pairs`: the pairs of a source, filtered, ordered, page by page, with how many there are of each kind."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Depends, Query
from fastapi.responses import JSONResponse
from pydantic import BaseModel, ConfigDict, Field

from truepair.serve.errors import not_found
from truepair.serve.service import Service
from truepair.serve.table import Wanted

Named = Annotated[str | None, Query(max_length=200, description="name of a source; the first by default")]
MOST = 200
"""Pairs of a page."""
FAR = 2**40
Values = Annotated[list[str], Query(default_factory=list, max_length=50)]
Verdict = Literal["match", "mismatch"]
Verdicts = Annotated[list[Verdict], Query(default_factory=list, max_length=50)]


class Body(BaseModel):
    """What is sent; a misspelt name is refused, not left out."""

    model_config = ConfigDict(extra="forbid")


class Proposal(BaseModel):
    """A caption of another pair that fits the image."""

    caption: str
    pair_id: str
    fit: float | None = Field(description="how well it fits, 0 to 1")


class Pair(BaseModel):
    """A pair as docs/pairs.md describes it; null where a run or an audit does not say."""

    pair_id: str
    row: int = Field(description="place in the source, from 0")
    image: str = Field(description="name of the image")
    image_number: int | None = Field(description="number of the image in the data that are served")
    picture: str | None = Field(description="address of the picture; ?width=… for its size")
    caption: str
    p_match: float | None
    similarity: float | None
    label: str | None
    verdict: str | None
    origin: str | None
    division: str | None
    reason: str | None
    duplicates: str | None
    proposed: list[Proposal]


class Count(BaseModel):
    """A value of a facet, and how many pairs have it."""

    value: str
    pairs: int


class PairsPage(BaseModel):
    """Some pairs, and how many there are in all."""

    source: str
    total: int
    offset: int
    pairs: list[Pair]
    facets: dict[str, list[Count]]


def wanted_of(
    label: Values, verdict: Verdicts, origin: Values, division: Values, duplicate: Values,
    words: Annotated[str, Query(max_length=1000, description="what the caption must hold")] = "",
    p_low: Annotated[float | None, Query(description="least p_match")] = None,
    p_high: Annotated[float | None, Query(description="largest p_match")] = None,
) -> Wanted:  # fmt: skip
    """Which pairs a request asks for; a dependency of several endpoints."""
    facets: dict[str, Sequence[str]] = {
        "label": label,
        "verdict": verdict,
        "origin": origin,
        "division": division,
        "duplicate": duplicate,
    }
    return Wanted(facets, words, p_low, p_high)


def counts_of(counts: dict[str, list[tuple[str, int]]], most: int = 100) -> dict[str, list[dict[str, Any]]]:
    """The counts of facets as they are told, of the most frequent values."""
    return {
        name: [{"value": value, "pairs": pairs} for value, pairs in values[:most]] for name, values in counts.items()
    }


def router(service: Service) -> APIRouter:
    routes = APIRouter(tags=["pairs"])

    @routes.get("/pairs", response_model=PairsPage)
    def pairs(
        wanted: Annotated[Wanted, Depends(wanted_of)],
        source: Annotated[
            str | None, Query(max_length=200, description="name of a source; the first by default")
        ] = None,
        order: Annotated[
            str, Query(max_length=20, description="row, p_match or similarity; -row turns it round")
        ] = "row",
        offset: Annotated[int, Query(ge=0, le=FAR)] = 0,
        limit: Annotated[int, Query(ge=1, le=MOST)] = 50,
    ) -> JSONResponse:
        """The pairs of a source that have all that is asked for."""
        found = service.source(source)
        rows = found.table.rows(wanted, order)
        return JSONResponse(
            {
                "source": found.name,
                "total": len(rows),
                "offset": offset,
                "pairs": found.told(rows[offset : offset + limit].tolist()),
                "facets": counts_of(found.table.counts(wanted)),
            }
        )

    @routes.get("/pairs/{pair_id:path}", response_model=Pair)
    def pair(
        pair_id: str, source: Annotated[str | None, Query(max_length=200, description="name of a source")] = None
    ) -> JSONResponse:
        """One pair by its id."""
        found = service.source(source)
        try:
            row = found.table.row_of(pair_id)
        except KeyError:
            raise not_found("pair", pair_id, "see /pairs for those there are") from None
        return JSONResponse(found.told([row])[0])

    return routes
