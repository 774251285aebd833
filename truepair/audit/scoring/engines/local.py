"""One chunk after the other; the matrix products use all cores."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import torch

from truepair.audit.scoring.bank import Bank
from truepair.audit.scoring.chunks import chunk_bytes
from truepair.audit.scoring.scoring_folder import Span
from truepair.data.collection import EmbeddingCollection


def run(
    collection: EmbeddingCollection,
    bank: Bank,
    spans: Sequence[Span],
    keep: Callable[[Span, bytes], None],
    *,
    workers: int | None = None,
) -> None:
    """As `engines.run_chunks`; `workers` threads, by default as many as torch uses already."""
    with threads(workers):
        for span in spans:
            keep(span, chunk_bytes(collection, bank, span.start, span.stop))


@contextmanager
def threads(count: int | None) -> Iterator[None]:
    """Within the block torch computes on so many threads; None leaves their number as it is."""
    before = torch.get_num_threads()
    torch.set_num_threads(before if count is None else count)
    try:
        yield
    finally:
        torch.set_num_threads(before)
