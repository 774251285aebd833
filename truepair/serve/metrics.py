"""What the service counts of itself, as Prometheus reads it."""

from __future__ import annotations

import os
import time
from collections import defaultdict
from collections.abc import Mapping, MutableMapping
from pathlib import Path
from threading import Lock
from typing import Any

BOUNDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
"""Seconds: upper ends of the buckets of a histogram."""


class Metrics:
    """Requests by endpoint, method and status, with how long they took."""

    def __init__(self) -> None:
        self.began = time.time()
        self._lock = Lock()
        self._requests: dict[tuple[str, str, int], int] = defaultdict(int)
        self._buckets: dict[str, list[int]] = defaultdict(lambda: [0] * (len(BOUNDS) + 1))
        self._seconds: dict[str, float] = defaultdict(float)

    def add(self, endpoint: str, method: str, status: int, seconds: float) -> None:
        with self._lock:
            self._requests[endpoint, method, status] += 1
            self._seconds[endpoint] += seconds
            self._buckets[endpoint][next((n for n, bound in enumerate(BOUNDS) if seconds <= bound), len(BOUNDS))] += 1

    def text(self, gauges: Mapping[str, tuple[str, float]]) -> str:
        """The exposition format; `gauges` are further values: name → (what it is, value)."""
        lines = [*_head("truepair_requests_total", "counter", "requests answered")]
        with self._lock:
            for (endpoint, method, status), count in sorted(self._requests.items()):
                labels = f'endpoint="{endpoint}",method="{method}",status="{status}"'
                lines.append(f"truepair_requests_total{{{labels}}} {count}")
            lines += _head("truepair_request_seconds", "histogram", "seconds from the request to the end of its answer")
            for endpoint, counts in sorted(self._buckets.items()):
                below = 0
                for bound, count in zip((*map(str, BOUNDS), "+Inf"), counts, strict=True):
                    below += count
                    lines.append(f'truepair_request_seconds_bucket{{endpoint="{endpoint}",le="{bound}"}} {below}')
                lines.append(f'truepair_request_seconds_sum{{endpoint="{endpoint}"}} {self._seconds[endpoint]:.6f}')
                lines.append(f'truepair_request_seconds_count{{endpoint="{endpoint}"}} {below}')
        for name, (what, value) in gauges.items():
            lines += [*_head(name, "gauge", what), f"{name} {float(value)!r}"]
        return "\n".join(lines) + "\n"


def _head(name: str, kind: str, what: str) -> list[str]:
    return [f"# HELP {name} {what}", f"# TYPE {name} {kind}"]


def resident_bytes() -> float:
    """Memory that this process has in use; NaN where the system does not say."""
    try:
        return int(Path("/proc/self/statm").read_text("ascii").split()[1]) * float(os.sysconf("SC_PAGE_SIZE"))
    except (OSError, ValueError, IndexError):
        return float("nan")


class Counting:
    """ASGI middleware that tells `Metrics` of every request; an address that no endpoint has counts as `other`."""

    def __init__(self, app: Any, metrics: Metrics) -> None:
        self.app, self.metrics = app, metrics

    async def __call__(self, scope: MutableMapping[str, Any], receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        began, status = time.perf_counter(), 500

        async def noting(message: MutableMapping[str, Any]) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = int(message["status"])
            await send(message)

        try:
            await self.app(scope, receive, noting)
        finally:
            endpoint = getattr(scope.get("route"), "path", "other")
            method = scope["method"] if scope["method"] in ("GET", "HEAD", "POST", "PUT", "DELETE") else "other"
            self.metrics.add(endpoint, method, status, time.perf_counter() - began)
