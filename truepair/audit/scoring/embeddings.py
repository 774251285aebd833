"""Scoring a collection of embeddings of any size: streamed in chunks, resumable, on one machine or on many."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from truepair.audit.scoring.engines import run_chunks
from truepair.audit.scoring.samples import draw_bank
from truepair.audit.scoring.scored import Scored, open_scored
from truepair.audit.scoring.scoring_folder import ScoringFolder, Span
from truepair.data.collection import EmbeddingCollection
from truepair.errors import InputError

BANK_SIZE = 2048
CHUNK_ROWS = 65_536
NEIGHBOURS = 30


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

    Chunks that the folder has already are not computed again, whichever engine made them. The memory needed does not
    grow with the collection until the scores themselves are read at the end (40 bytes a pair).

    Args:
        collection: for `engine="ray"` it must be picklable, and its files readable from every worker.
        folder: for the scores (`scoring_folder`); made where it does not exist.
        bank_size: m, how many pairs all are compared with; the cost grows with it.
        chunk_rows: rows a file; what is lost at most when an audit is killed, for each worker.
        neighbours: k of the indicator `neighbours`.
        seed: of what is drawn.
        engine: "local", one chunk after the other, or "ray".
        workers: threads of the local engine; tasks at a time on Ray, one core each. None for all there are.
        moved: called with the number of rows that are scored, from time to time.

    Raises:
        InputError: an option out of range; the folder belongs to another collection or other options; no row can be
            used; the collection cannot be read; Ray is asked for and not installed.
        TruepairError: the folder cannot be written to, or a worker of Ray dies again and again.
    """
    for name, value, least in (
        ("bank_size", bank_size, 1),
        ("chunk_rows", chunk_rows, 1),
        ("neighbours", neighbours, 1),
        ("workers", 1 if workers is None else workers, 1),
    ):
        if value < least:
            raise InputError(f"{name} is {value}; expected at least {least}")
    place = ScoringFolder(Path(folder))
    with place.owned():
        place.begin(
            {
                "fingerprint": collection.fingerprint(),
                "pairs": len(collection),
                "width": collection.width,
                "bank_size": bank_size,
                "chunk_rows": chunk_rows,
                "neighbours": neighbours,
                "seed": seed,
            }
        )
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
        if missing:
            run_chunks(engine, collection, bank, missing, keep, workers=workers)
        return open_scored(place.path)
