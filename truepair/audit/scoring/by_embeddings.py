"""Scoring by embeddings that are there already (CLIP's, say): nothing is trained.

A collection of any size is streamed in chunks, resumable, on one machine or on many.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from truepair.audit.rematch.same_items import same_items
from truepair.audit.scoring.bank import Bank
from truepair.audit.scoring.chunks import (
    READ_ROWS,
    SAME,
    Units,
    chunk_bytes,
    draw_bank,
    read_units,
    unit_vectors,
    usable_rows,
)
from truepair.audit.scoring.evidence import Evidence, NearestCopies, evidence_of
from truepair.audit.scoring.indicators import scored_columns
from truepair.audit.scoring.local_ranks import MOST_PAIRS, ranks_of_spaces
from truepair.audit.scoring.ray_engine import run_on_ray
from truepair.audit.scoring.row_ranges import words_at
from truepair.audit.scoring.scored_pairs import ScoredPairs
from truepair.audit.scoring.scoring_folder import Scored, ScoringFolder, Span, open_scored
from truepair.audit.scoring.synthetic_mismatches import KINDS, NEAREST_IN_SPACE, draw_mismatches, unit
from truepair.audit.scoring.vector_space import VectorSpace
from truepair.data.collection import EmbeddingCollection
from truepair.data.pairs import IntArray
from truepair.device import threads
from truepair.errors import InputError
from truepair.files import write_bytes_atomically
from truepair.progress import Progress
from truepair.seeding import generator

BANK_SIZE = 2048
CHUNK_ROWS = 65_536
NEIGHBOURS = 30
ENGINES = ("local", "ray")
MOST_SEARCHED = 20_000
MISMATCHES = {"random": 20_000, "near": 5_000}


def score_by_embeddings(
    collection: EmbeddingCollection,
    folder: Path,
    *,
    bank: int,
    seed: int,
    engine: str,
    workers: int | None,
    progress: Progress | None = None,
) -> ScoredPairs:
    """The evidence of the embeddings themselves; arguments and errors are those of `score_collection`."""
    with (progress or Progress(False)).count("scoring embeddings", len(collection), "pairs") as moved:
        scored = score_collection(
            collection, folder, bank_size=bank, seed=seed, engine=engine, workers=workers, moved=moved
        )
    space = EmbeddingSpace(collection, scored)
    columns = dict(scored.columns)
    given = Evidence(columns, evidence_of(columns))
    drawn = usable_rows(collection, MOST_SEARCHED, seed=seed, purpose="audit nearest")
    copies = space.nearest_copies(drawn.rows, generator(seed, "audit nearest copies"))
    ranked = usable_rows(collection, MOST_PAIRS, seed=seed, purpose="audit local ranks")
    return ScoredPairs(
        rows=scored.rows,
        given=given,
        synthetic=synthetic_mismatches(collection, space.bank, seed),
        spaces=[space],
        bank=len(space.bank),
        problems=scored.problems(collection),
        local=ranks_of_spaces([(ranked.images, ranked.texts)], generator(seed, "audit local mismatches"), same=SAME),
        nearest=NearestCopies(given.log_odds, given.similarity, evidence_of(copies), copies["similarity"]),
    )


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
        if not place.bank_file.exists():
            place.keep_bank(draw_bank(collection, bank_size, seed=seed, neighbours=neighbours))
        bank = place.bank()
        missing = place.missing()
        done = len(collection) - sum(span.stop - span.start for span in missing)

        def keep(span: Span, data: bytes) -> None:
            nonlocal done
            write_bytes_atomically(place.chunk(span), data)
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


def synthetic_mismatches(collection: EmbeddingCollection, bank: Bank, seed: int) -> dict[str, Evidence]:
    """Pairs mismatched on purpose, made of some rows drawn over the whole collection.

    Never an image with one of its own captions, as far as the rows drawn tell: not where image or caption are known to
    be the same (`same_items`), nor where the vectors of both images or of both texts are (`chunks.SAME`).
    """
    units = usable_rows(collection, max(MISMATCHES.values()), seed=seed, purpose="audit mismatches")
    places = np.arange(len(units.rows), dtype=np.int64)
    described = unit(torch.cat([units.images, units.texts], dim=1).numpy())
    images, captions = same_items(collection, units.rows)[0], captions_of(collection, units)
    found = {}
    for number, kind in enumerate(KINDS):
        drawn = draw_mismatches(
            kind,
            places,
            MISMATCHES[kind],
            images=images,
            captions=captions,
            described=described,
            rng=generator(seed, "audit mismatches", number),
            nearest=NEAREST_IN_SPACE,
        )
        left, right = drawn.image_of, drawn.caption_of
        alike = [(side[left] * side[right]).sum(dim=1) >= SAME for side in (units.images, units.texts)]
        unrelated = ~(alike[0] | alike[1]).numpy()
        left, right = left[unrelated], right[unrelated]
        columns = scored_columns(units.images[left], units.texts[right], bank, units.rows[left], units.rows[right])
        found[kind] = Evidence(columns, evidence_of(columns))
    return found


def captions_of(collection: EmbeddingCollection, units: Units) -> list[str]:
    """What tells captions apart: the words, or the vector of one without words."""
    words = words_at(collection.captions, units.rows)
    vectors = units.texts.numpy()
    return [caption if caption.strip() else row.tobytes().hex() for caption, row in zip(words, vectors, strict=True)]


class EmbeddingSpace(VectorSpace):
    """The space of a scored collection of embeddings, read from its files whenever it is asked."""

    def __init__(self, collection: EmbeddingCollection, scored: Scored) -> None:
        self.collection, self.bank = collection, scored.bank()

    def vectors(self, rows: IntArray) -> tuple[Tensor, Tensor]:
        units = read_units(self.collection, rows)
        return units.images, units.texts

    def blocks(self) -> Iterator[tuple[IntArray, Tensor, Tensor]]:
        for start in range(0, len(self.collection), READ_ROWS):
            stop = min(start + READ_ROWS, len(self.collection))
            units = unit_vectors(*self.collection.read(start, stop), np.arange(start, stop, dtype=np.int64))
            if len(units.rows):
                yield units.rows, units.images, units.texts
