"""`/pictures`: a picture by the number of its image, never by a path."""

from __future__ import annotations

import hashlib
from typing import Annotated

from fastapi import APIRouter, Header, Path, Query, Response

from truepair.serve.errors import Problem, not_found
from truepair.serve.pictures import WIDTHS
from truepair.serve.service import Service

_IMAGE = {"content": {"image/jpeg": {}, "image/png": {}}, "description": "the picture"}


def router(service: Service) -> APIRouter:
    routes = APIRouter(tags=["pictures"])

    @routes.get("/pictures/{source}/{number}", response_class=Response, responses={200: _IMAGE})
    def picture(
        source: str,
        number: Annotated[int, Path(ge=0, lt=2**40)],
        width: Annotated[int, Query(description=f"most pixels of the longer side: one of {WIDTHS}")] = 192,
        if_none_match: Annotated[str | None, Header(max_length=200)] = None,
    ) -> Response:
        """A picture, scaled down."""
        found = service.source(source)
        if width not in WIDTHS:
            raise Problem(400, "no-such-width", f"width is {width}; expected one of {', '.join(map(str, WIDTHS))}")
        if found.pictures is None:
            raise not_found("picture", number, "the data of this source are not at hand; start with --data")
        shown = service.pictures.shown(source, found.pictures, number, width)
        tag = f'"{hashlib.blake2b(shown.data, digest_size=12).hexdigest()}"'
        headers = {"etag": tag, "cache-control": "private, max-age=600"}
        if if_none_match == tag:
            return Response(status_code=304, headers=headers)
        return Response(shown.data, media_type=shown.media_type, headers=headers)

    return routes
