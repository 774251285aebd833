"""Scoring a collection of embeddings of any size: streamed in chunks, resumable, on one machine or on many."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from truepair.audit.scoring.chunks import chunk_bytes, threads
from truepair.audit.scoring.ray_engine import run_on_ray
from truepair.audit.scoring.samples import draw_bank
from truepair.audit.scoring.scoring_folder import Scored, ScoringFolder, Span, open_scored
from truepair.data.collection import EmbeddingCollection
from truepair.errors import InputError

BANK_SIZE = 2048
CHUNK_ROWS = 65_536
NEIGHBOURS = 30
ENGINES = ("local", "ray")


def score_collection(
    collection: EmbeddingCollection,
    folder: Path | str,
    *,
    bank_size: int = BANK_SIZE,
    chunk_rows: int = CHUNK_ROWS,
    neighbours: int = NEIGHBOURS,
    seed: int = 0,
    engine: str = "local",
    workers: int | None = None,
    moved: Callable[[int], None] = lambda done: None,
) -> Scored:
    """Score every usable pair against a bank drawn from the collection.

    Chunks that the folder has already are not computed again, whichever engine made them: the numbers are the same. The
    memory needed does not grow with the collection until the scores themselves are read at the end (40 bytes a pair).

    Args:
        collection: for `engine="ray"` it must be picklable, and its files readable from every worker.
        folder: for the scores (`scoring_folder`); made where it does not exist.
        bank_size: m, how many pairs all are compared with; the cost grows with it.
        chunk_rows: rows a file; what is lost at most when an audit is killed, for each worker.
        neighbours: k of the indicator `neighbours`.
        seed: of what is drawn.
        engine: "local", one chunk after the other, whose matrix products use all cores, or "ray".
        workers: threads of the local engine; tasks at a time on Ray, one core each. None for all there are.
        moved: called with the number of rows that are scored, from time to time.

    Raises:
        InputError: an option out of range; the folder belongs to another collection or other options; no row can be
            used; the collection cannot be read; Ray is asked for and not installed.
        TruepairError: the folder cannot be written to, or a worker of Ray dies again and again.
    """
    asked = {"bank_size": bank_size, "chunk_rows": chunk_rows, "neighbours": neighbours}
    for name, value in {**asked, "workers": 1 if workers is None else workers}.items():
        if value < 1:
            raise InputError(f"{name} is {value}; expected at least 1")
    if engine not in ENGINES:
        raise InputError(f"engine is {engine!r}; expected one of {', '.join(ENGINES)}")
    whose = {"fingerprint": collection.fingerprint(), "pairs": len(collection), "width": collection.width}
    place = ScoringFolder(Path(folder))
    with place.owned():
        place.begin({**whose, **asked, "seed": seed})
        if not place.has_bank:
            place.keep_bank(draw_bank(collection, bank_size, seed=seed, neighbours=neighbours))
        bank = place.bank()
        missing = place.missing()
        done = len(collection) - sum(span.stop - span.start for span in missing)

        def keep(span: Span, data: bytes) -> None:
            nonlocal done
            place.keep_chunk(span, data)
            done += span.stop - span.start
            moved(done)

        moved(done)
        if missing and engine == "ray":
            run_on_ray(collection, bank, missing, keep, workers)
        elif missing:
            with threads(workers):
                for span in missing:
                    keep(span, chunk_bytes(collection, bank, span.start, span.stop))
        return open_scored(place.path)
