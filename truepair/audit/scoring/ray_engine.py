"""Chunks as tasks of Ray: on the cores of this machine, or of a cluster (`RAY_ADDRESS`).

The bank and the collection (which holds paths or URLs, not vectors) go once into Ray's object store. A task reads its
own rows, scores them on one core and sends back some bytes a pair, which only this process writes: workers need to read
the input and nothing else. Where that is in a store of the cloud, they connect by themselves, with the keys and the
driver of their machine. Ray starts a task again when its worker dies.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from truepair.audit.scoring.bank import Bank
from truepair.audit.scoring.chunks import chunk_bytes
from truepair.audit.scoring.scoring_folder import Span
from truepair.cluster import connected, result_of, task_of
from truepair.data.collection import EmbeddingCollection
from truepair.device import threads

_QUEUED_PER_CORE = 2
_KEPT = "what is scored is kept. Look for lack of memory there, and run the same audit again"


def run_on_ray(
    collection: EmbeddingCollection,
    bank: Bank,
    spans: Sequence[Span],
    keep: Callable[[Span, bytes], None],
    workers: int | None,
) -> None:
    """Score every span and hand its bytes to `keep`, in this process, in any order; `workers` tasks at a time.

    On a running Ray where this process is connected to one or `RAY_ADDRESS` names one. Otherwise one is started here,
    with `workers` cores (None: all), and stopped at the end. Errors are those of `score_collection`.
    """
    with connected(workers) as ray:
        score = task_of(ray, _score)
        shared = ray.put(collection), ray.put(bank)
        most = workers or _QUEUED_PER_CORE * max(1, int(ray.cluster_resources().get("CPU", 1)))
        waiting = list(reversed(spans))
        running: dict[Any, Span] = {}
        try:
            while waiting or running:
                while waiting and len(running) < most:
                    span = waiting.pop()
                    running[score.remote(*shared, span.start, span.stop)] = span
                (finished, *_), _ = ray.wait(list(running), num_returns=1)
                span = running.pop(finished)
                what = f"the rows {span.start} to {span.stop - 1}"
                keep(span, result_of(ray, finished, what, _KEPT))
        finally:
            for task in running:
                ray.cancel(task, force=True)


def _score(collection: EmbeddingCollection, bank: Bank, start: int, stop: int) -> bytes:
    with threads(1):
        return chunk_bytes(collection, bank, start, stop)
