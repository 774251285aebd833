"""What pairs are scored by: their own embeddings, a finished run, an encoder, or models trained on folds."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

from truepair.audit.options import AuditOptions, CrossFitting
from truepair.audit.scoring.scored_pairs import ScoredPairs
from truepair.data.collection import Collection, EmbeddingCollection, PairsCollection
from truepair.encoders.encoder import Encoder, ImageTextEncoder
from truepair.errors import InputError


@dataclass(frozen=True)
class Scorer:
    """Scores the pairs of a source.

    Attributes:
        name: "embeddings", "run", "encoder" or "cross-fitting".
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


def scorer_for(
    collection: Collection,
    run: Path | None,
    options: AuditOptions,
    crossfit: CrossFitting,
    encoder: Encoder | None = None,
) -> Scorer:
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
    if isinstance(encoder, ImageTextEncoder):
        from truepair.audit.scoring.by_encoder import score_by_encoder

        workers = options.workers
        encoded = partial(score_by_encoder, collection, encoder, crossfit, bank=bank, seed=seed, workers=workers)
        whose = {"encoder": encoder.identity()}
        return Scorer("encoder", {**asked, **asdict(crossfit), **whose}, changing, "encoder", encoded)
    from truepair.audit.scoring.cross_fitting import cross_fit

    fitted = partial(cross_fit, pairs, crossfit, bank=bank, seed=seed)
    return Scorer("cross-fitting", {**asked, **asdict(crossfit)}, changing, "crossfit", fitted)
