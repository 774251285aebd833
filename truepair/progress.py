"""What people who wait are told: bars on a terminal, lines with the time left elsewhere, nothing where it is quiet."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

Say = Callable[[str], None]
LINE_SECONDS = 5.0
"""Between two lines about the same work, at least, and a tenth of the time it has taken so far."""


class Progress:
    """Tells of steps, and how far each is.

    Args:
        shown: True draws bars, False says nothing; None draws bars where stderr is a terminal, else says lines.
        say: takes the lines; None prints them to stderr.

    Attributes:
        bars: whether bars are drawn.
        seconds: step → time, of `step`.
    """

    def __init__(self, shown: bool | None = None, say: Say | None = None) -> None:
        self.bars = sys.stderr.isatty() if shown is None else shown
        self.quiet = shown is False
        self.say: Say = say or (lambda text: None if self.quiet else print(text, file=sys.stderr, flush=True))
        self.seconds: dict[str, float] = {}

    @contextmanager
    def step(self, name: str) -> Iterator[None]:
        """Says the step's name, and times it."""
        self.say(name)
        start = time.perf_counter()
        yield
        self.seconds[name] = round(time.perf_counter() - start, 2)

    @contextmanager
    def count(self, title: str, total: int, unit: str) -> Iterator[Callable[[int], None]]:
        """Yields a function that takes how many of `total` units are done."""
        if self.bars:
            from tqdm import tqdm

            with tqdm(total=total, unit=unit, desc=title, unit_scale=True, leave=False) as bar:

                def drawn(done: int) -> None:
                    bar.update(done - bar.n)

                yield drawn
            return
        clock = TimeLeft(total)
        start = said = time.perf_counter()

        def moved(done: int) -> None:
            nonlocal said
            left, now = clock.left(done), time.perf_counter()
            if not self.quiet and 0 < done < total and now - said >= max(LINE_SECONDS, (now - start) / 10):
                said = now
                self.say(f"{title}: {100 * done // total} % of {total:,} {unit}, {left}")

        yield moved


class TimeLeft:
    """How long work will still take, by what it took so far."""

    first: float | None = None

    def __init__(self, total: float) -> None:
        self.total, self.start = total, time.perf_counter()

    def left(self, done: float) -> str:
        """In words. What was done before the first call does not count: an audit may go on from what is there."""
        if self.first is None:
            self.first = done
        if done <= self.first:
            return "time left unknown"
        each = (time.perf_counter() - self.start) / (done - self.first)
        return f"about {duration(each * (self.total - done))} left"


def duration(seconds: float) -> str:
    """In words: 12 s, 3 min, 1 h 20 min."""
    if seconds < 100:
        return f"{round(seconds)} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"
