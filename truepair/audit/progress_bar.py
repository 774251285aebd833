"""A bar for streamed work, quiet where nobody looks."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def bar(unit: str, total: int, progress: bool | None) -> Iterator[Callable[[int, int], None]]:
    """Yields a function (done, total) to move the bar by."""
    from tqdm import tqdm

    shown = sys.stderr.isatty() if progress is None else progress
    with tqdm(total=total, unit=unit, unit_scale=True, disable=not shown) as drawn:

        def moved(done: int, _: int) -> None:
            drawn.update(done - drawn.n)

        yield moved
