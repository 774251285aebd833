"""Ctrl-C and SIGTERM end a run after the current batch, with a checkpoint, instead of in the middle of one."""

from __future__ import annotations

import signal
import threading
from types import FrameType
from typing import Any


class Interruption:
    """Context in which the first SIGINT or SIGTERM only sets `requested`; a second one acts as usual."""

    def __init__(self) -> None:
        self.requested = False
        self._before: dict[signal.Signals, Any] = {}

    def __enter__(self) -> Interruption:
        if threading.current_thread() is threading.main_thread():  # Python allows handlers there only
            for number in (signal.SIGINT, signal.SIGTERM):
                self._before[number] = signal.signal(number, self._request)
        return self

    def __exit__(self, *_: object) -> None:
        self._give_back()

    def _request(self, number: int, frame: FrameType | None) -> None:
        self.requested = True
        self._give_back()

    def _give_back(self) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)
        self._before.clear()
