"""Parts of pictures as tasks of Ray: on the cores of this machine, or of a cluster that sees the same files.

A task gets the places of its pictures and the name of the encoder, which a worker opens once. It reads the pictures
and sends back their features, which only this process writes. Ray starts a task again when its worker
dies.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Generator, Sequence
from functools import lru_cache
from typing import Any

from truepair.cluster import connected, result_of, task_of
from truepair.data.pictures.describing import Part, Places, describe_part, torch_threads
from truepair.data.pictures.pictures import Place
from truepair.encoders import encoder_of
from truepair.encoders.encoder import Encoder
from truepair.errors import InputError

_QUEUED_PER_CORE = 4
_PARTS_A_TASK = 8
_KEPT = "what is described is kept. Look for lack of memory there, and run the same again"


def on_ray(encoder: Encoder, place: Places, parts: Sequence[Sequence[int]], workers: int | None) -> Generator[Part]:
    """The parts, in order.

    Raises:
        InputError: Ray is not installed, or a worker has another version of the encoder.
        TruepairError: a worker died each time.
    """
    tasks = [parts[start : start + _PARTS_A_TASK] for start in range(0, len(parts), _PARTS_A_TASK)]
    with connected(workers) as ray:
        describe = task_of(ray, _describe)
        most = _QUEUED_PER_CORE * (workers or max(1, int(ray.cluster_resources().get("CPU", 1))))
        running: deque[Any] = deque()
        ahead = iter(tasks)
        try:
            for task in tasks:
                while len(running) < most and (coming := next(ahead, None)) is not None:
                    places = {row: place(row) for rows in coming for row in rows}
                    running.append(describe.remote(encoder.name, encoder.identity(), places, coming))
                what = f"the pictures {task[0][0]} to {task[-1][-1]}"
                yield from result_of(ray, running.popleft(), what, _KEPT)
        finally:
            for left in running:
                ray.cancel(left, force=True)


def _describe(name: str, identity: str, places: dict[int, Place], parts: Sequence[Sequence[int]]) -> list[Part]:
    encoder = _opened(name)
    if encoder.identity() != identity:
        found = encoder.identity()
        raise InputError(f"a worker of Ray has the encoder {found}, this process {identity}; install the same there")
    with torch_threads(1):
        return [describe_part(encoder, places.__getitem__, rows) for rows in parts]


@lru_cache(maxsize=1)
def _opened(name: str) -> Encoder:
    return encoder_of(name)
