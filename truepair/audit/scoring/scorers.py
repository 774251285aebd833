"""What pairs are scored by: their own embeddings, a finished run, or models trained on folds."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from truepair.audit.options import AuditOptions, CrossFitting
from truepair.audit.scoring.scored_pairs import ScoredPairs
from truepair.data.collection import Collection, EmbeddingCollection, PairsCollection
from truepair.errors import InputError
from truepair.progress import Progress


@dataclass(frozen=True)
class Scorer:
    """Scores the pairs of a source.

    Attributes:
        name: "embeddings", "run" or "cross-fitting".
        options: all that it was asked for.
        fingerprint: changes when the pairs do.
        score: takes a folder, where it keeps what is computed, so that it goes on after a stop.
    """

    name: str
    options: dict[str, Any]
    fingerprint: Callable[[], str]
    score: Callable[[Path, Progress], ScoredPairs]


def scorer_for(collection: Collection, run: Path | None, options: AuditOptions, crossfit: CrossFitting) -> Scorer:
    """What a source is scored by; an InputError where it has neither features nor embeddings."""
    asked, bank, seed = asdict(options), options.bank, options.seed
    if isinstance(collection, EmbeddingCollection):

        def by_embeddings(folder: Path, progress: Progress) -> ScoredPairs:
            from truepair.audit.scoring.by_embeddings import score_by_embeddings

            engine, workers = options.engine, options.workers
            with progress.count("scoring embeddings", len(collection), "pairs") as moved:
                return score_by_embeddings(
                    collection, folder / "scores", bank=bank, seed=seed, engine=engine, workers=workers, moved=moved
                )

        return Scorer("embeddings", asked, collection.fingerprint, by_embeddings)
    if not isinstance(collection, PairsCollection):
        raise InputError(f"{collection.name} has neither features nor embeddings to score by")
    pairs = collection.pairs

    def fingerprint() -> str:
        from truepair.training.setup import fingerprint

        return fingerprint(pairs)

    def by_run(folder: Path, progress: Progress) -> ScoredPairs:
        from truepair.audit.scoring.by_run import score_by_run

        assert run is not None
        device = crossfit.device
        return score_by_run(pairs, run, folder / "run", bank=bank, seed=seed, device=device, progress=progress)

    def by_cross_fitting(folder: Path, progress: Progress) -> ScoredPairs:
        from truepair.audit.scoring.cross_fitting import cross_fit

        return cross_fit(pairs, crossfit, folder / "crossfit", bank=bank, seed=seed, progress=progress)

    if run is not None:
        return Scorer("run", asked, fingerprint, by_run)
    return Scorer("cross-fitting", {**asked, **asdict(crossfit)}, fingerprint, by_cross_fitting)
