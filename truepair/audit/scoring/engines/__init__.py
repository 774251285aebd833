"""Where the chunks of a collection are scored: here, or on the workers of a Ray cluster. The numbers are the same."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from truepair.audit.scoring.bank import Bank
from truepair.audit.scoring.scoring_folder import Span
from truepair.data.collection import EmbeddingCollection
from truepair.errors import InputError

ENGINES = ("local", "ray")


def run_chunks(
    engine: str,
    collection: EmbeddingCollection,
    bank: Bank,
    spans: Sequence[Span],
    keep: Callable[[Span, bytes], None],
    *,
    workers: int | None = None,
) -> None:
    """Score every span and hand its bytes to `keep`, in this process, in any order.

    Args:
        engine: one of `ENGINES`.
        workers: threads of the local engine, tasks at a time on Ray; None for all there are.

    Raises:
        InputError: no such engine, Ray is not installed, or the collection cannot be read.
        TruepairError: workers of Ray die again and again.
    """
    if engine == "local":
        from truepair.audit.scoring.engines.local import run

        run(collection, bank, spans, keep, workers=workers)
    elif engine == "ray":
        from truepair.audit.scoring.engines.ray_engine import run as run_on_ray

        run_on_ray(collection, bank, spans, keep, workers=workers)
    else:
        raise InputError(f"engine is {engine!r}; expected one of {', '.join(ENGINES)}")
