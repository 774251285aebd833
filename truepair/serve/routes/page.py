"""The page: one HTML file with its style and modules, as they lie in the package; no build, no outside request."""

from __future__ import annotations

from pathlib import Path

from fastapi import APIRouter, Response

from truepair.serve.errors import not_found
from truepair.serve.service import Service

FOLDER = Path(__file__).parents[1] / "page"
KIT = Path(__file__).parents[2] / "pages" / "kit" / "style.css"
_TYPES = {".html": "text/html", ".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}


def files() -> dict[str, tuple[bytes, str]]:
    """Name → (content, type) of all that the page is made of; nothing else is ever read for a request."""
    paths = {path.relative_to(FOLDER).as_posix(): path for path in sorted(FOLDER.rglob("*")) if path.suffix in _TYPES}
    paths["css/kit.css"] = KIT
    return {name: (path.read_bytes(), _TYPES[path.suffix]) for name, path in paths.items()}


def router(_service: Service) -> APIRouter:
    routes, held = APIRouter(include_in_schema=False), files()

    @routes.get("/")
    def page() -> Response:
        return _answer("index.html")

    @routes.get("/page/{name:path}")
    def part(name: str) -> Response:
        return _answer(name)

    def _answer(name: str) -> Response:
        if name not in held:
            raise not_found("page", name, "open / for the page")
        content, kind = held[name]
        return Response(content, media_type=f"{kind}; charset=utf-8", headers={"cache-control": "no-cache"})

    return routes
