"""What goes wrong, as the service says it: one JSON object (RFC 9457) with a type, a sentence and what to do."""

from __future__ import annotations

from typing import Any

from truepair.errors import InputError, RunFolderError, TruepairError
from truepair.phrases import printable

MEDIA_TYPE = "application/problem+json"
_TEXT = {"type": "string"}
_SCHEMA = {
    "title": "Problem",
    "type": "object",
    "required": ["type", "title", "status", "detail"],
    "properties": {"type": _TEXT, "title": _TEXT, "status": {"type": "integer"}, "detail": _TEXT},
}
PROBLEMS: dict[int | str, dict[str, Any]] = {
    status: {"description": "a problem, with what to do", "content": {MEDIA_TYPE: {"schema": _SCHEMA}}}
    for status in ("4XX", "507")
}
"""What every endpoint may answer beside what it promises, for the description of the service."""


class Problem(InputError):
    """A request that cannot be answered.

    Args:
        status: the HTTP status, 4xx.
        kind: the type, in words joined by hyphens; programs tell problems apart by it.
        detail: what was found and what to do, in a sentence.
    """

    def __init__(self, status: int, kind: str, detail: str) -> None:
        super().__init__(detail)
        self.status, self.kind, self.detail = status, kind, detail


def not_found(what: str, name: object, remedy: str) -> Problem:
    return Problem(404, f"no-such-{what}", f"there is no {what} {str(name)[:200]!r}; {remedy}")


def problem(status: int, kind: str, detail: str, **more: Any) -> dict[str, Any]:
    """The body of a problem."""
    return {"type": kind, "title": kind.replace("-", " "), "status": status, "detail": printable(detail), **more}


def status_and_kind(error: TruepairError) -> tuple[int, str]:
    """What an error of truepair is to somebody who asks over HTTP."""
    if isinstance(error, Problem):
        return error.status, error.kind
    if isinstance(error, InputError):
        return 400, "bad-input"
    return (409, "run-folder") if isinstance(error, RunFolderError) else (507, "cannot-be-done")


def add_handlers(app: Any) -> None:
    """Have every error leave the service as a problem."""
    from fastapi.exceptions import RequestValidationError
    from fastapi.responses import JSONResponse
    from starlette.exceptions import HTTPException

    def answer(status: int, kind: str, detail: str, **more: Any) -> JSONResponse:
        return JSONResponse(problem(status, kind, detail, **more), status, media_type=MEDIA_TYPE)

    def of_truepair(_request: Any, error: Exception) -> JSONResponse:
        assert isinstance(error, TruepairError)
        return answer(*status_and_kind(error), str(error))

    def of_request(_request: Any, error: Exception) -> JSONResponse:
        assert isinstance(error, RequestValidationError)
        found = [
            {
                "place": printable(".".join(str(part) for part in entry["loc"])[:200]),
                "detail": printable(entry["msg"][:500]),
            }
            for entry in error.errors()[:20]
        ]
        places = "; ".join(f"{entry['place']}: {entry['detail']}" for entry in found[:3])
        return answer(422, "bad-request", f"{places}. See /openapi.json for what is expected", errors=found)

    def of_http(_request: Any, error: Exception) -> JSONResponse:
        assert isinstance(error, HTTPException)
        kind = {404: "no-such-page", 405: "no-such-method"}.get(error.status_code, "bad-request")
        response = answer(error.status_code, kind, f"{error.detail}; see /openapi.json for what there is")
        response.headers.update(error.headers or {})
        return response

    app.add_exception_handler(TruepairError, of_truepair)
    app.add_exception_handler(RequestValidationError, of_request)
    app.add_exception_handler(HTTPException, of_http)
