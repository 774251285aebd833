"""Ranges of bytes that are fetched in the background before somebody reads them, so that nobody waits for a store."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor

Range = tuple[str, int, int]
"""An object, and the bytes [start, stop) of it."""

MOST_BYTES = 128 * 2**20
_AT_ONCE = 16


class ReadAhead:
    """Ranges under way or here, up to a number of bytes; the oldest make room for new ones.

    Args:
        fetch: gives the bytes of (object, start, stop); called from up to 16 threads at a time.
    """

    def __init__(self, fetch: Callable[[str, int, int], bytes], most_bytes: int = MOST_BYTES) -> None:
        self.most_bytes = most_bytes
        self._fetch = fetch
        self._coming: OrderedDict[Range, Future[bytes]] = OrderedDict()
        self._bytes = 0
        self._threads: ThreadPoolExecutor | None = None

    def expect(self, name: str, start: int, stop: int) -> None:
        """Begin to fetch what will be read next, unless it is larger than all that may be held."""
        asked = (name, start, stop)
        if asked in self._coming or not 0 < stop - start <= self.most_bytes:
            return
        while self._bytes + stop - start > self.most_bytes:
            self._take(next(iter(self._coming))).cancel()
        if self._threads is None:
            self._threads = ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="truepair-store")
        self._coming[asked] = self._threads.submit(self._fetch, *asked)
        self._bytes += stop - start

    def read(self, name: str, start: int, stop: int) -> bytes:
        """The bytes, as `fetch` gives them; what was expected is handed over and no longer held."""
        asked = (name, start, stop)
        return self._take(asked).result() if asked in self._coming else self._fetch(*asked)

    def _take(self, asked: Range) -> Future[bytes]:
        self._bytes -= asked[2] - asked[1]
        return self._coming.pop(asked)
