"""The steps of an audit: told to whoever waits, and timed for the summary."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

Say = Callable[[str], None]


class Steps:
    """Times the steps, and tells of each."""

    def __init__(self, say: Say) -> None:
        self.seconds: dict[str, float] = {}
        self.say = say

    @contextmanager
    def __call__(self, name: str) -> Iterator[None]:
        self.say(name)
        start = time.perf_counter()
        yield
        self.seconds[name] = round(time.perf_counter() - start, 2)
