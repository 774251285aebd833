"""The service as an ASGI application."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

from truepair import __version__
from truepair.serve.sources import Source

ABOUT = """Search the images and captions of runs and audits, look at their pairs, and decide about them. Errors are
JSON objects of type `application/problem+json` with `type`, `title`, `status` and `detail`."""

THREADS = 4 + 2 * (os.cpu_count() or 1)
"""Requests that are worked on at once: nearly all compute, and each thread keeps memory of its own."""


@asynccontextmanager
async def few_threads(_app: Any) -> AsyncIterator[None]:
    """While the service runs, its endpoints have `THREADS` threads."""
    from anyio.to_thread import current_default_thread_limiter

    current_default_thread_limiter().total_tokens = THREADS
    yield


def create_app(sources: Sequence[Source], access: Any = None) -> Any:
    """The service of some sources, one at least (`truepair.serve.opening.open_sources`).

    Args:
        access: who may ask (`truepair.serve.security.Access`); None: this machine alone, without a token.

    Returns:
        An application for an ASGI server; its description is at /openapi.json.
    """
    from fastapi import FastAPI

    from truepair.serve.errors import PROBLEMS, add_handlers
    from truepair.serve.metrics import Counting
    from truepair.serve.routes import decisions, health, page, pairs, pictures, search
    from truepair.serve.security import Access, Guard
    from truepair.serve.service import Service

    service = Service(sources)
    app = FastAPI(
        title="truepair",
        version=__version__,
        description=ABOUT,
        docs_url=None,
        redoc_url=None,
        responses=PROBLEMS,
        lifespan=few_threads,
    )
    for part in (health, search, pairs, decisions, pictures, page):
        app.include_router(part.router(service))
    add_handlers(app)
    app.state.service = service
    app.add_middleware(Guard, access=access or Access())  # within: what is refused is counted, too
    app.add_middleware(Counting, metrics=service.metrics)
    return app
