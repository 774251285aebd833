"""From pictures to features, part by part and in order, by threads of this process.

A part is a batch of an encoder. Torch computes on one thread in each worker: the bytes of a part depend neither on the
number of cores nor on the engine, and several parts at once keep all cores busier than one part on all of them.
"""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np

from truepair.data.pictures.pictures import Failure, Place, prepare
from truepair.encoders.encoder import Encoder

Places = Callable[[int], Place]
_AHEAD = 2
"""Parts that wait for each worker."""


@dataclass(frozen=True)
class Part:
    """What became of the pictures `rows`: the features of the good ones in order, float16, and why others failed."""

    rows: Sequence[int]
    features: bytes
    failures: dict[int, Failure]


def describe_part(encoder: Encoder, place: Places, rows: Sequence[int]) -> Part:
    """Prepare and encode some pictures."""
    found: list[Any | Failure] = [prepare(place(row), encoder) for row in rows]
    good = [prepared for prepared in found if not isinstance(prepared, Failure)]
    failures = {row: result for row, result in zip(rows, found, strict=True) if isinstance(result, Failure)}
    return Part(rows, encoder.encode(good).astype(np.float16).tobytes() if good else b"", failures)


def in_threads(encoder: Encoder, place: Places, parts: Sequence[Sequence[int]], workers: int) -> Generator[Part]:
    waiting: deque[Future[Part]] = deque()
    coming = iter(parts)
    with torch_threads(1), ThreadPoolExecutor(workers) as threads:
        try:
            for _ in parts:
                for rows in islice(coming, _AHEAD * workers - len(waiting)):
                    waiting.append(threads.submit(describe_part, encoder, place, rows))
                yield waiting.popleft().result()
        finally:
            for future in waiting:
                future.cancel()


@contextmanager
def torch_threads(count: int) -> Iterator[None]:
    """Within the block torch, where an encoder has loaded it, computes on so many threads for each that calls it."""
    torch = sys.modules.get("torch")
    if torch is None:
        yield
        return
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)
