"""What pairs are scored by: their own embeddings, a finished run, or models trained on folds."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Protocol

from truepair.audit.options import AuditOptions, CrossFitting
from truepair.audit.scoring.scored_pairs import ScoredPairs
from truepair.data.collection import Collection, EmbeddingCollection, PairsCollection
from truepair.data.pairs import Pairs
from truepair.errors import InputError
from truepair.progress import Progress


class Scorer(Protocol):
    """Scores the pairs of a source.

    Attributes:
        name: "embeddings", "run" or "cross-fitting".
        options: all that it was asked for.
    """

    @property
    def name(self) -> str: ...

    @property
    def options(self) -> dict[str, Any]: ...

    def fingerprint(self) -> str:
        """Changes when the pairs do."""

    def score(self, folder: Path, progress: Progress) -> ScoredPairs:
        """What is computed is kept in the folder, so that it goes on after a stop."""


def scorer_for(collection: Collection, run: Path | None, options: AuditOptions, crossfit: CrossFitting) -> Scorer:
    """What a source is scored by.

    Raises:
        InputError: it has neither features nor embeddings.
    """
    if isinstance(collection, EmbeddingCollection):
        return EmbeddingScorer(collection, options)
    if not isinstance(collection, PairsCollection):
        raise InputError(f"{collection.name} has neither features nor embeddings to score by")
    if run is not None:
        return RunScorer(collection.pairs, run, options, crossfit.device)
    return CrossFittingScorer(collection.pairs, options, crossfit)


@dataclass(frozen=True)
class EmbeddingScorer:
    collection: EmbeddingCollection
    asked: AuditOptions
    name = "embeddings"

    @property
    def options(self) -> dict[str, Any]:
        return asdict(self.asked)

    def fingerprint(self) -> str:
        return self.collection.fingerprint()

    def score(self, folder: Path, progress: Progress) -> ScoredPairs:
        from truepair.audit.scoring.by_embeddings import score_by_embeddings

        asked = self.asked
        with progress.count("scoring embeddings", len(self.collection), "pairs") as moved:
            return score_by_embeddings(
                self.collection,
                folder / "scores",
                bank=asked.bank,
                seed=asked.seed,
                engine=asked.engine,
                workers=asked.workers,
                moved=moved,
            )


@dataclass(frozen=True)
class RunScorer:
    pairs: Pairs
    run: Path
    asked: AuditOptions
    device: str
    name = "run"

    @property
    def options(self) -> dict[str, Any]:
        return asdict(self.asked)

    def fingerprint(self) -> str:
        return pairs_fingerprint(self.pairs)

    def score(self, folder: Path, progress: Progress) -> ScoredPairs:
        from truepair.audit.scoring.by_run import score_by_run

        bank, seed = self.asked.bank, self.asked.seed
        return score_by_run(
            self.pairs, self.run, folder / "run", bank=bank, seed=seed, device=self.device, progress=progress
        )


@dataclass(frozen=True)
class CrossFittingScorer:
    pairs: Pairs
    asked: AuditOptions
    crossfit: CrossFitting
    name = "cross-fitting"

    @property
    def options(self) -> dict[str, Any]:
        return {**asdict(self.asked), **asdict(self.crossfit)}

    def fingerprint(self) -> str:
        return pairs_fingerprint(self.pairs)

    def score(self, folder: Path, progress: Progress) -> ScoredPairs:
        from truepair.audit.scoring.cross_fitting import cross_fit

        bank, seed = self.asked.bank, self.asked.seed
        return cross_fit(self.pairs, self.crossfit, folder / "crossfit", bank=bank, seed=seed, progress=progress)


def pairs_fingerprint(pairs: Pairs) -> str:
    from truepair.training.setup import fingerprint

    return fingerprint(pairs)
