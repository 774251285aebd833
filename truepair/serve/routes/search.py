"""`/search`: by words, by a picture, or by the image or the caption of a pair; of several sources side by side."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from fastapi import APIRouter, Depends, Query, UploadFile
from fastapi.responses import JSONResponse
from pydantic import BaseModel, Field

from truepair.errors import InputError
from truepair.serve.errors import Problem
from truepair.serve.routes.pairs import FAR, Body, Count, Pair, Verdict, counts_of, wanted_of
from truepair.serve.search import Asked, together
from truepair.serve.service import Service
from truepair.serve.table import Wanted

MOST = 200
MOST_QUERIES = 64
MOST_SOURCES = 16
LONGEST = 2000
Find = Literal["images", "captions"]
Found = Annotated[Find | None, Query(description="images or captions; by default what the query is not")]
Names = Annotated[
    list[str], Query(default_factory=list, max_length=MOST_SOURCES, description="sources; the first by default")
]
Offset = Annotated[int, Query(ge=0, le=FAR)]
Limit = Annotated[int, Query(ge=1, le=MOST)]


class Said(BaseModel):
    """A caption, and what is believed of its pair."""

    pair_id: str
    caption: str
    p_match: float | None
    verdict: str | None
    label: str | None


class Hit(BaseModel):
    """An image or a caption that was found."""

    rank: int = Field(description="from 1")
    score: float = Field(description="similarity: a cosine, or a local engine's probability")
    closely: bool = Field(description="compared by the model itself, not by vectors that stand in for it")
    pair: Pair = Field(description="a pair with that image or caption, one that was chosen")
    captions: list[Said] = Field(description="of an image, some of its captions; of a caption, itself")


class Result(BaseModel):
    """What one source found."""

    source: str
    find: Find
    total: int = Field(description="hits of all pages")
    offset: int
    seconds: float
    exact: bool = Field(description="whether every vector was compared")
    hits: list[Hit]
    facets: dict[str, list[Count]] = Field(description="pairs of each kind, each facet as if it were not chosen by")
    notice: str | None = Field(description="why this source found nothing, where others did")


class Answer(BaseModel):
    """What one query found in every source that was asked."""

    results: list[Result]


class One(Body):
    """A query: words, or a pair of the data."""

    text: str | None = Field(None, max_length=LONGEST, description="words")
    pair: str | None = Field(None, max_length=LONGEST, description="id of a pair")
    side: Literal["image", "caption"] = Field("image", description="what of the pair")
    find: Find | None = Field(None, description="images or captions; by default what the query is not")


class Batch(Body):
    """Several queries, each to all the sources named."""

    queries: list[One] = Field(min_length=1, max_length=MOST_QUERIES)
    sources: list[str] = Field(default_factory=list, max_length=MOST_SOURCES)
    offset: int = Field(0, ge=0, le=FAR)
    limit: int = Field(24, ge=1, le=MOST)
    label: list[str] = Field(default_factory=list, max_length=50)
    verdict: list[Verdict] = Field(default_factory=list, max_length=50)
    origin: list[str] = Field(default_factory=list, max_length=50)
    division: list[str] = Field(default_factory=list, max_length=50)
    duplicate: list[str] = Field(default_factory=list, max_length=50)


class Answers(BaseModel):
    """What several queries found, in their order."""

    answers: list[Answer]


def router(service: Service) -> APIRouter:
    routes = APIRouter(tags=["search"])

    def found(asked: Asked, names: list[str], wanted: Wanted, offset: int, limit: int) -> dict[str, Any]:
        sources = [service.source(name) for name in names] or [service.source(None)]
        results: list[dict[str, Any] | InputError] = []
        for source in sources:
            try:
                result = source.searcher_or_refuse().search(asked, wanted, offset, limit)
                facets = counts_of(result["facets"])
                results.append({**result, "facets": facets})
            except InputError as error:
                results.append(error)
        return {"results": together(results, [source.name for source in sources])}

    @routes.get("/search", response_model=Answer)
    def search(
        wanted: Annotated[Wanted, Depends(wanted_of)],
        source: Names,
        text: Annotated[str | None, Query(max_length=LONGEST, description="words to look for")] = None,
        pair: Annotated[
            str | None, Query(max_length=LONGEST, description="id of a pair to look for the like of")
        ] = None,
        side: Annotated[Literal["image", "caption"], Query(description="what of the pair")] = "image",
        find: Found = None,
        offset: Offset = 0,
        limit: Limit = 24,
    ) -> JSONResponse:
        """The best images or captions for words, or for the image or the caption of a pair."""
        return JSONResponse(found(asked_of(text, pair, side, find), source, wanted, offset, limit))

    @routes.post("/search", response_model=Answers)
    def searches(batch: Batch) -> JSONResponse:
        """Several queries at once."""
        asked = [asked_of(one.text, one.pair, one.side, one.find) for one in batch.queries]
        names = ("label", "verdict", "origin", "division", "duplicate")
        wanted = Wanted({name: getattr(batch, name) for name in names})
        answers = [found(one, batch.sources, wanted, batch.offset, batch.limit) for one in asked]
        return JSONResponse({"answers": answers})

    @routes.post("/search/picture", response_model=Answer)
    def by_picture(
        picture: UploadFile,
        wanted: Annotated[Wanted, Depends(wanted_of)],
        source: Names,
        find: Found = None,
        offset: Offset = 0,
        limit: Limit = 24,
    ) -> JSONResponse:
        """The best captions (or, with find=images, the most similar images) for a picture that is sent."""
        data = picture.file.read()
        return JSONResponse(found(Asked(picture=data, find=find), source, wanted, offset, limit))

    return routes


def asked_of(text: str | None, pair: str | None, side: Literal["image", "caption"], find: Find | None) -> Asked:
    """The query of a request. Raises Problem: it has not one of the two things to look for."""
    if (text is None) == (pair is None):
        raise Problem(400, "no-query", "give either text=words or pair=ID to look for")
    return Asked(text=text, pair=pair, side=side, find=find)
