"""Who may ask: the names the service answers to, where requests come from, the token, and how much is taken in.

A page of anybody can make the browser of a user send requests to this machine. So the `Host` must be a name of the
service (else a foreign name could be pointed here: DNS rebinding), requests that a foreign page began are refused, no
other origin may read what comes back, and where other machines can reach the service it wants a token.
"""

from __future__ import annotations

import hashlib
import hmac
import ipaddress
import json
import re
import secrets
import socket
from collections.abc import Awaitable, Callable, MutableMapping
from dataclasses import dataclass
from http.cookies import CookieError, SimpleCookie
from typing import Any
from urllib.parse import parse_qsl, urlencode

from truepair.errors import InputError
from truepair.serve.errors import MEDIA_TYPE, problem

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]

COOKIE = "truepair_token"
MOST_BYTES = 16 << 20
"""Bytes of the body of one request: an upload of a picture."""
SHORTEST_TOKEN = 16
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob:; connect-src 'self'; "
    "base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
)
HEADERS = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-resource-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
}
_LOCAL = ("localhost", "127.0.0.1", "::1")


@dataclass(frozen=True)
class Access:
    """Who may ask.

    Attributes:
        hosts: names that the service answers to, without ports, in lower case.
        any_address: whether it answers to every IP address as well: it listens on all of them. Rebinding needs a name.
        token: what every request must bring; None asks for none.
        most_bytes: of the body of a request.
    """

    hosts: frozenset[str] = frozenset(_LOCAL)
    any_address: bool = False
    token: str | None = None
    most_bytes: int = MOST_BYTES

    @staticmethod
    def of(host: str, token: str | None = None, also: tuple[str, ...] = ()) -> Access:
        """That of a service which listens on `host`: beyond this machine a token is needed, and made where none is
        given. `also` are further names it is reached by.

        Raises:
            InputError: the token is too short to be safe, or cannot be sent.
        """
        if token is not None and not re.fullmatch(f"[A-Za-z0-9._~-]{{{SHORTEST_TOKEN},200}}", token):
            raise InputError(
                f"the token is too short or holds other signs; expected {SHORTEST_TOKEN} to 200 letters, digits and "
                "-._~ . Leave it out for one drawn at random"
            )
        here, everywhere = is_local(host), host in ("0.0.0.0", "::", "")
        names = {*_LOCAL, host.lower(), *(name.lower() for name in also)} - {""}
        if everywhere:
            names.add(socket.gethostname().lower())
        return Access(
            frozenset(names), everywhere, token or (None if here else secrets.token_urlsafe(24)), most_bytes=MOST_BYTES
        )

    @property
    def cookie(self) -> str:
        """Name of the cookie that keeps the token. Cookies know no ports: services beside each other need two names."""
        return f"{COOKIE}_{hashlib.sha256((self.token or '').encode()).hexdigest()[:12]}"

    def answers_to(self, host: str) -> bool:
        """Whether a `Host` header, port included, names this service."""
        name = _without_port(host)
        return name in self.hosts or (self.any_address and _is_address(name))


def is_local(host: str) -> bool:
    """Whether only this machine reaches a service that listens there."""
    if host.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


def _without_port(host: str) -> str:
    if host.startswith("["):
        return host[1:].partition("]")[0].lower()
    return host.rpartition(":")[0].lower() if host.count(":") == 1 else host.lower()


class Guard:
    """ASGI middleware: refuses what `Access` does not allow, and sets the headers of every answer."""

    def __init__(self, app: Any, access: Access) -> None:
        self.app, self.access = app, access

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self.app(scope, receive, send)
            return
        headers = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in scope["headers"]}

        async def with_headers(message: MutableMapping[str, Any]) -> None:
            if message["type"] == "http.response.start":
                own = {name.lower() for name, _ in message["headers"]}
                fresh = [(name.encode(), value.encode()) for name, value in HEADERS.items() if name.encode() not in own]
                if b"cache-control" not in own:
                    fresh.append((b"cache-control", b"no-store"))
                message["headers"] = [*message["headers"], *fresh]
            await send(message)

        refusal = self._refusal(scope, headers)
        if refusal is not None:
            await _answer(with_headers, *refusal)
            return
        if self._token_in_address(scope):
            await self._welcome(scope, with_headers)
            return
        taken, too_large, began = 0, False, False

        async def counted() -> MutableMapping[str, Any]:
            nonlocal taken, too_large
            message = await receive()
            taken += len(message.get("body", b""))
            too_large = too_large or taken > self.access.most_bytes
            return {"type": "http.disconnect"} if too_large else message

        async def in_time(message: MutableMapping[str, Any]) -> None:
            nonlocal began
            began = began or not too_large
            if began:
                await with_headers(message)

        try:
            await self.app(scope, counted, in_time)
        except Exception:
            if not too_large:
                raise
        if too_large and not began:
            await _answer(with_headers, *self._too_large())

    def _refusal(self, scope: Scope, headers: dict[str, str]) -> tuple[int, str, str] | None:
        """(status, kind, sentence) of why a request is not answered; None where it is."""
        host, origin = headers.get("host", ""), headers.get("origin")
        if not self.access.answers_to(host):
            what = f"the service does not answer to the name {host[:200]!r}; use its address, or allow the name with "
            return 421, "foreign-host", f"{what}--allow-host"
        if origin is not None and origin.lower() not in (f"http://{host.lower()}", f"https://{host.lower()}"):
            return 403, "foreign-origin", "the request comes from a page of another origin; open the service's own page"
        page = scope["method"] == "GET" and scope["path"] == "/" and headers.get("sec-fetch-mode") == "navigate"
        if headers.get("sec-fetch-site") in ("cross-site", "same-site") and not page:
            return 403, "foreign-origin", "the request comes from a page of another site; open the service's own page"
        length = headers.get("content-length", "0")
        if not length.isdecimal() or len(length) > 18:
            return 400, "bad-request", "Content-Length is no number; leave it out or send the right one"
        if int(length) > self.access.most_bytes:
            return self._too_large()
        if self.access.token is not None and not self._brings_token(scope, headers):
            return (
                401,
                "no-token",
                "a token is needed: open the address that truepair serve printed, or send it as "
                "'Authorization: Bearer TOKEN'",
            )
        return None

    def _too_large(self) -> tuple[int, str, str]:
        return 413, "too-large", f"a request may hold {self.access.most_bytes >> 20} MiB; send a smaller picture"

    def _brings_token(self, scope: Scope, headers: dict[str, str]) -> bool:
        scheme, _, given = headers.get("authorization", "").partition(" ")
        if scheme.lower() == "bearer" and self._is_token(given.strip()):
            return True
        try:
            cookie = SimpleCookie(headers.get("cookie", "")).get(self.access.cookie)
        except CookieError:
            cookie = None
        return (cookie is not None and self._is_token(cookie.value)) or self._token_in_address(scope)

    def _token_in_address(self, scope: Scope) -> bool:
        """Whether the page is opened by the address that was printed, which has the token in it."""
        if self.access.token is None or scope["path"] != "/" or scope["method"] != "GET":
            return False
        return any(name == "token" and self._is_token(value) for name, value in _query(scope))

    def _is_token(self, given: str) -> bool:
        return hmac.compare_digest(given.encode("utf-8", "replace"), (self.access.token or "").encode())

    async def _welcome(self, scope: Scope, send: Send) -> None:
        """Keep the token in a cookie that no script and no other site sees, and take it out of the address."""
        rest = urlencode([(name, value) for name, value in _query(scope) if name != "token"])
        cookie = f"{self.access.cookie}={self.access.token}; HttpOnly; SameSite=Strict; Path=/"
        where = "/" + (f"?{rest}" if rest else "")
        await send(
            {
                "type": "http.response.start",
                "status": 303,
                "headers": [(b"location", where.encode()), (b"set-cookie", cookie.encode()), (b"content-length", b"0")],
            }
        )
        await send({"type": "http.response.body", "body": b""})


def _query(scope: Scope) -> list[tuple[str, str]]:
    return parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True, max_num_fields=None)


async def _answer(send: Send, status: int, kind: str, detail: str) -> None:
    body = json.dumps(problem(status, kind, detail)).encode()
    headers = [(b"content-type", MEDIA_TYPE.encode()), (b"content-length", str(len(body)).encode())]
    if status in (413, 400):
        headers.append((b"connection", b"close"))
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
