"""What computes the features of pictures, how much of it at once, and in which batches."""

from __future__ import annotations

import os
from collections.abc import Generator, Sequence

from truepair.data.config import Extraction
from truepair.data.pictures.describing import Part, Places, in_threads
from truepair.data.pictures.ray_engine import on_ray
from truepair.device import memory_of
from truepair.encoders.encoder import Encoder

_MOST_WORKERS = 64


def describe_parts(encoder: Encoder, place: Places, rows: Sequence[int], extraction: Extraction) -> Generator[Part]:
    """The parts of `rows`, in order; how many are computed at once is limited by the cores and by the memory."""
    batch, workers = batch_and_workers(encoder, extraction)
    parts = [rows[start : start + batch] for start in range(0, len(rows), batch)]
    if extraction.engine == "ray":
        return on_ray(encoder, place, parts, extraction.workers)
    return in_threads(encoder, place, parts, workers)


def batch_and_workers(encoder: Encoder, extraction: Extraction) -> tuple[int, int]:
    """Pictures of a part, and parts at once: as many as there are cores, and memory for; a quarter of it by default."""
    budget = extraction.memory * 1e9 if extraction.memory is not None else (memory_of() or 8e9) / 4
    batch = max(1, min(encoder.batch, int(encoder.batch * budget / encoder.batch_bytes)))
    cores = extraction.workers or min(_MOST_WORKERS, os.cpu_count() or 1)
    return batch, max(1, min(cores, int(budget / encoder.batch_bytes)))
