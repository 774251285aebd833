"""`/health` and `/metrics`: what is served, and how it does."""

from __future__ import annotations

import time

from fastapi import APIRouter
from fastapi.responses import PlainTextResponse
from pydantic import BaseModel, Field

from truepair import __version__
from truepair.serve.metrics import resident_bytes
from truepair.serve.service import Service


class SourceState(BaseModel):
    """A run or an audit that is served."""

    name: str = Field(description="what requests know it by")
    kind: str = Field(description="run or audit")
    data: str | None = Field(description="name of its data; null where these are not at hand")
    audit: str | None = Field(description="digest of an audit's pairs, by which decisions know it; null for a run")
    pairs: int
    images: int | None
    pictures: bool = Field(description="whether pictures can be shown")
    search: str | None = Field(description="ready, waiting (built when first asked), building, failed; null for none")
    words: bool = Field(description="whether any words can be looked for")
    why_not: str | None = Field(description="why it cannot be searched")
    facets: list[str]
    orders: list[str]
    notices: list[str] = Field(description="what to know, in sentences")


class Health(BaseModel):
    """The state of the service."""

    status: str
    version: str
    seconds: float = Field(description="since the service began")
    sources: list[SourceState]


def router(service: Service) -> APIRouter:
    routes = APIRouter(tags=["service"])

    @routes.get("/health")
    def health() -> Health:
        """What is served, and that it is."""
        states = [
            SourceState(
                name=source.name,
                kind=source.kind,
                data=None if source.pairs is None else source.pairs.name,
                audit=source.digest if source.kind == "audit" else None,
                pairs=len(source.table),
                images=None if source.pairs is None else len(source.pairs.images),
                pictures=source.pictures is not None and source.pictures.any,
                search=None if source.searcher is None else source.searcher.state,
                words=source.searcher is not None and source.reads_words,
                why_not=source.why_not if source.searcher is None else None,
                facets=list(source.table.facets),
                orders=["row", *(name for name in ("p_match", "similarity") if name in source.table)],
                notices=source.notices,
            )
            for source in service.sources.values()
        ]
        return Health(status="ok", version=__version__, seconds=time.time() - service.metrics.began, sources=states)

    @routes.get("/metrics", response_class=PlainTextResponse)
    def metrics() -> str:
        """Counts and times in the exposition format of Prometheus."""
        cache = service.pictures
        return service.metrics.text(
            {
                "truepair_resident_bytes": ("memory of the process", resident_bytes()),
                "truepair_uptime_seconds": ("since the service began", time.time() - service.metrics.began),
                "truepair_pictures_bytes": ("pictures kept in memory", cache.bytes),
                "truepair_pictures_hits": ("pictures found in memory", cache.hits),
                "truepair_pictures_misses": ("pictures made", cache.misses),
                "truepair_pairs": ("pairs of all sources", sum(len(s.table) for s in service.sources.values())),
            }
        )

    return routes
