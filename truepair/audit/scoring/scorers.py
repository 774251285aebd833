"""What pairs are scored by: their own embeddings, a finished run, or models trained on folds."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

from truepair.audit.options import AuditOptions, CrossFitting
from truepair.audit.scoring.scored_pairs import ScoredPairs
from truepair.data.collection import Collection, EmbeddingCollection, PairsCollection
from truepair.errors import InputError


@dataclass(frozen=True)
class Scorer:
    """Scores the pairs of a source.

    Attributes:
        name: "embeddings", "run" or "cross-fitting".
        options: all that it was asked for.
        fingerprint: changes when the pairs do.
        folder: name of that for what is computed, so that it goes on after a stop.
        score: takes the folder, and `progress`.
    """

    name: str
    options: dict[str, Any]
    fingerprint: Callable[[], str]
    folder: str
    score: Callable[..., ScoredPairs]


def scorer_for(collection: Collection, run: Path | None, options: AuditOptions, crossfit: CrossFitting) -> Scorer:
    """What a source is scored by; an InputError where it has neither features nor embeddings."""
    asked, bank, seed = asdict(options), options.bank, options.seed
    if isinstance(collection, EmbeddingCollection):
        from truepair.audit.scoring.by_embeddings import score_by_embeddings

        workers = options.workers
        embedded = partial(
            score_by_embeddings, collection, bank=bank, seed=seed, engine=options.engine, workers=workers
        )
        return Scorer("embeddings", asked, collection.fingerprint, "scores", embedded)
    if not isinstance(collection, PairsCollection):
        raise InputError(f"{collection.name} has neither features nor embeddings to score by")
    from truepair.training.setup import fingerprint

    pairs, changing = collection.pairs, partial(fingerprint, collection.pairs)
    if run is not None:
        from truepair.audit.scoring.by_run import score_by_run

        by_run = partial(score_by_run, pairs, run, bank=bank, seed=seed, device=crossfit.device)
        return Scorer("run", asked, changing, "run", by_run)
    from truepair.audit.scoring.cross_fitting import cross_fit

    fitted = partial(cross_fit, pairs, crossfit, bank=bank, seed=seed)
    return Scorer("cross-fitting", {**asked, **asdict(crossfit)}, changing, "crossfit", fitted)
