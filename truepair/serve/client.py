"""A small client of `truepair serve`, with nothing but the standard library."""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal
from urllib.error import HTTPError, URLError
from urllib.parse import quote, urlencode, urlsplit
from urllib.request import Request, urlopen

from truepair.errors import InputError, TruepairError

PAGE = 200
Found = Literal["images", "captions"]


class ServiceError(TruepairError):
    """The service refused a request, or did not answer.

    Attributes:
        status: of HTTP; 0 where nothing answered.
        kind: the type of the problem, such as "no-such-source".
    """

    def __init__(self, status: int, kind: str, detail: str) -> None:
        super().__init__(detail)
        self.status, self.kind = status, kind


class Client:
    """Asks a service.

    Args:
        address: what `truepair serve` printed; a token in it is taken from there.
        token: the token, where the service wants one.
        timeout: seconds to wait for an answer.

    Example:
        >>> client = truepair.Client("http://127.0.0.1:8000")           # doctest: +SKIP
        >>> for hit in client.search("red shoes", limit=10)["hits"]:    # doctest: +SKIP
        ...     print(hit["score"], hit["pair"]["image"])
    """

    def __init__(
        self, address: str = "http://127.0.0.1:8000", *, token: str | None = None, timeout: float = 60
    ) -> None:
        parts = urlsplit(address)
        if parts.scheme not in ("http", "https") or not parts.netloc:
            raise InputError(f"address is {address!r}; expected what truepair serve printed, http://HOST:PORT/")
        given = dict(pair.split("=", 1) for pair in parts.query.split("&") if "=" in pair)
        self.address, self.token, self.timeout = (
            f"{parts.scheme}://{parts.netloc}",
            token or given.get("token"),
            timeout,
        )

    def health(self) -> dict[str, Any]:
        """What is served."""
        return self._json("GET", "/health")

    def search(
        self, text: str | None = None, *, picture: Path | bytes | None = None, pair: str | None = None,
        side: Literal["image", "caption"] = "image", find: Found | None = None, source: str | None = None,
        offset: int = 0, limit: int = 24, **choice: Any,
    ) -> dict[str, Any]:  # fmt: skip
        """What one source found for words, a picture, or the image or the caption of a pair: `hits`, `total`, `facets`.

        Args:
            choice: facets and bounds as `/search` takes them: label=["red"], verdict="match", p_low=0.5, …

        Raises:
            ServiceError: the service refuses.
        """
        values = {"find": find, "source": source, "offset": offset, "limit": limit, **choice}
        if picture is not None:
            if text is not None or pair is not None:
                raise InputError("give one of text, picture and pair")
            body, kind = _form(Path(picture).read_bytes() if isinstance(picture, Path) else picture)
            answer = self._json("POST", "/search/picture", values, body, kind)
        else:
            answer = self._json("GET", "/search", {"text": text, "pair": pair, "side": side, **values})
        result: dict[str, Any] = answer["results"][0]
        return result

    def searches(self, queries: list[dict[str, Any]], **options: Any) -> list[dict[str, Any]]:
        """What several queries found, each {text} or {pair, side}, with find; `options` as POST /search takes them."""
        body = json.dumps({"queries": queries, **options}).encode()
        answers: list[dict[str, Any]] = self._json("POST", "/search", {}, body, "application/json")["answers"]
        return answers

    def pairs(self, source: str | None = None, *, order: str = "row", **choice: Any) -> Iterator[dict[str, Any]]:
        """All pairs that are chosen, page by page."""
        offset = 0
        while True:
            values = {"source": source, "order": order, "offset": offset, "limit": PAGE, **choice}
            page = self._json("GET", "/pairs", values)
            yield from page["pairs"]
            offset += PAGE
            if offset >= page["total"]:
                return

    def pair(self, pair_id: str, source: str | None = None) -> dict[str, Any]:
        """One pair by its id."""
        return self._json("GET", f"/pairs/{quote(pair_id)}", {"source": source})

    def picture(self, source: str, number: int, width: int = 192) -> bytes:
        """A picture by the number of its image, as JPEG or PNG."""
        return self._answer("GET", f"/pictures/{quote(source)}/{number}", {"width": width})

    def review(
        self, order: Literal["gain", "worst", "facet"] = "gain", *, person: str, source: str | None = None,
        limit: int = 10, **choice: Any,
    ) -> list[dict[str, Any]]:  # fmt: skip
        """What to review next: `pair`, with `chosen_by` and `probability_chosen`, which its decision brings back.

        Args:
            choice: facets with order facet, `skip`, `again`: as /decisions/next takes them.
        """
        values = {"order": order, "person": person, "source": source, "limit": limit, **choice}
        coming: list[dict[str, Any]] = self._json("GET", "/decisions/next", values)["pairs"]
        return coming

    def decide(self, decisions: list[dict[str, Any]], *, person: str, source: str | None = None) -> list[int]:
        """Keep decisions, all or none: each {pair_id, verdict}, with what else POST /decisions takes. When this
        returns, they are on the service's disk. Each gets an `id` here if it has none: after a failure, the same
        decisions may be sent again, and count once. Rows of the history.
        """
        for decision in decisions:
            decision.setdefault("id", secrets.token_hex(16))
        body = {"source": source, "decisions": [{"person": person, **decision} for decision in decisions]}
        kept: list[int] = self._posted("/decisions", body)["numbers"]
        return kept

    def undo(
        self, *, person: str, source: str | None = None, count: int = 1,
        decisions: list[dict[str, Any]] | None = None,
    ) -> list[dict[str, Any]]:  # fmt: skip
        """Take back the last decisions of a person, wherever made; what was taken back, the last one first.

        Args:
            count: how many.
            decisions: in place of the last ones the very ones that `decide` was given. Those that the person decided
                anew since stay, and are not among what was taken back.

        Raises:
            InputError: one of `decisions` was never given to `decide`.
        """
        which = {"count": count} if decisions is None else {"decisions": [_id_of(each) for each in decisions]}
        body = {"source": source, "id": secrets.token_hex(16), "person": person, **which}
        taken: list[dict[str, Any]] = self._posted("/decisions/undo", body)["taken_back"]
        return taken

    def progress(self, source: str | None = None) -> dict[str, Any]:
        """How far a review is: `decided`, `people`, `agreement`, `estimate` with its interval."""
        return self._json("GET", "/decisions/progress", {"source": source})

    def _posted(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        return self._json("POST", path, {}, json.dumps(body).encode(), "application/json")

    def _json(
        self, method: str, path: str, values: dict[str, Any] | None = None, body: bytes | None = None, kind: str = ""
    ) -> dict[str, Any]:
        answer: dict[str, Any] = json.loads(self._answer(method, path, values, body, kind))
        return answer

    def _answer(
        self, method: str, path: str, values: dict[str, Any] | None = None, body: bytes | None = None, kind: str = ""
    ) -> bytes:
        given = {name: value for name, value in (values or {}).items() if value is not None}
        address = f"{self.address}{path}" + (f"?{urlencode(given, doseq=True)}" if given else "")
        headers = {"Content-Type": kind} if kind else {}
        if self.token is not None:
            headers["Authorization"] = f"Bearer {self.token}"
        began = time.monotonic()
        try:
            while True:
                try:
                    with urlopen(Request(address, body, headers, method=method), timeout=self.timeout) as response:
                        found: bytes = response.read()
                        return found
                except HTTPError as error:
                    refusal = _refusal(error)
                    if refusal.kind != "index-building" or time.monotonic() - began > self.timeout:
                        raise refusal from error
                time.sleep(0.5)
        except (URLError, OSError) as error:
            reason = getattr(error, "reason", error)
            raise ServiceError(0, "no-answer", f"{self.address} does not answer ({reason}); is it running?") from error


def _id_of(decision: dict[str, Any]) -> str:
    if "id" not in decision:
        raise InputError(f"{decision} has no id; give the very decisions that decide was given")
    return str(decision["id"])


def _refusal(error: HTTPError) -> ServiceError:
    try:
        told = json.loads(error.read())
        return ServiceError(error.code, str(told["type"]), str(told["detail"]))
    except (ValueError, KeyError, TypeError):
        return ServiceError(error.code, "unknown", f"the service answered {error.code}")


def _form(data: bytes) -> tuple[bytes, str]:
    """A form with one file, and its type."""
    mark = secrets.token_hex(16)
    head = f'--{mark}\r\nContent-Disposition: form-data; name="picture"; filename="picture"\r\n'
    head += "Content-Type: application/octet-stream\r\n\r\n"
    return head.encode() + data + f"\r\n--{mark}--\r\n".encode(), f"multipart/form-data; boundary={mark}"
