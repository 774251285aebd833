"""What an epoch took."""

from __future__ import annotations

import time


class Stopwatch:
    """Time since it was made: of the clock, and of the processors, over all threads of this process (those of its
    workers, which prepare batches, apart). Processor time says what work costs on a machine that does other work, too.
    """

    def __init__(self) -> None:
        self._began, self._worked = time.monotonic(), time.process_time()

    @property
    def seconds(self) -> float:
        return time.monotonic() - self._began

    @property
    def cpu_seconds(self) -> float:
        return time.process_time() - self._worked
