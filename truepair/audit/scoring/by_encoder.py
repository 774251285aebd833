"""Scoring by an encoder of images and texts (CLIP, SigLIP …): by its vectors as they are, or by heads trained on them.

As they are, nothing has to be trained, and nothing can be learned by heart. On data far from what the encoder was
trained with its vectors may tell little, though. That is measured: how often is a matched pair more alike than a random
mismatch? Where too seldom, heads are trained on the vectors by cross-fitting, and the better of the two decides.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from truepair.audit.options import CrossFitting
from truepair.audit.scoring.by_embeddings import score_by_embeddings
from truepair.audit.scoring.cross_fitting import cross_fit
from truepair.audit.scoring.scored_pairs import ScoredPairs
from truepair.audit.verdict.verdict import verdict_of_scored
from truepair.correspondence.mixture_proportion import LEAST_SYNTHETIC
from truepair.data.collection import EmbeddingCollection, PairsCollection
from truepair.data.pairs import Array, IntArray
from truepair.data.pictures.frozen_vectors import image_vectors, text_vectors
from truepair.encoders.encoder import ImageTextEncoder
from truepair.progress import Progress

ENOUGH = 0.95
"""Of a matched pair and a random mismatch the former is found more alike so often, or the encoder knows too little."""
_UNKNOWN = 0.9  # a share of mismatched pairs above which nothing is known of the matched ones


def score_by_encoder(
    collection: PairsCollection,
    encoder: ImageTextEncoder,
    crossfit: CrossFitting,
    folder: Path,
    *,
    bank: int,
    seed: int,
    workers: int | None,
    progress: Progress | None = None,
) -> ScoredPairs:
    """The evidence of the encoder's vectors, or of heads on them; `details["encoder"]` says of which, and why.

    Raises:
        InputError, RunFolderError: as `score_by_embeddings` and `cross_fit`.
    """
    progress = progress or Progress(False)
    pairs = collection.pairs
    images = image_vectors(pairs.images, encoder, progress).astype(np.float32)
    texts = text_vectors(pairs.texts, encoder, progress).astype(np.float32)
    given = EncodedPairs(collection, images, texts, encoder.identity())
    zero_shot = score_by_embeddings(
        given, folder / "zero-shot", bank=bank, seed=seed, engine="local", workers=workers, progress=progress
    )
    if len(zero_shot.synthetic["random"].log_odds) < LEAST_SYNTHETIC:
        told = (
            f"zero-shot: by the vectors of {Path(encoder.name).name} as they are. Whether they tell anything of these "
            f"pairs is not known: fewer than {LEAST_SYNTHETIC} could be mismatched on purpose to measure by"
        )
        return described(zero_shot, "zero-shot", told)
    known = auroc_of(zero_shot)
    share = verdict_of_scored(zero_shot, seed=seed).noise_rate
    matched = of_matched(known, share)
    name, beaten = Path(encoder.name).name, f"{100 * matched:.1f} of 100 times"
    if matched >= ENOUGH:
        told = (
            f"zero-shot: by the vectors of {name} as they are, a matched pair is more alike than a random mismatch "
            f"{beaten} (at least {100 * ENOUGH:.0f} are asked for)"
        )
        return described(zero_shot, "zero-shot", told, zero_shot_auroc=known, matched_auroc=matched)
    progress.say(f"{name} tells too little of these pairs ({beaten}): training heads on its vectors")
    with_vectors = replace(
        pairs, images=replace(pairs.images, features=images), texts=replace(pairs.texts, features=texts)
    )
    heads = cross_fit(with_vectors, crossfit, folder / "heads", bank=bank, seed=seed, progress=progress)
    learned = auroc_of(heads)
    how = "heads" if learned > known else "zero-shot"
    told = (
        f"{'heads trained on the vectors' if how == 'heads' else 'zero-shot: the vectors as they are'} of {name}: as "
        f"they are, a matched pair is more alike than a random mismatch {beaten}, less than the {100 * ENOUGH:.0f} "
        f"that are asked for; a given pair {100 * known:.1f} of 100 times, with heads {100 * learned:.1f}"
    )
    figures = {"zero_shot_auroc": known, "matched_auroc": matched, "heads_auroc": learned}
    return described(heads if how == "heads" else zero_shot, how, told, **figures)


def described(scored: ScoredPairs, how: str, told: str, **figures: float) -> ScoredPairs:
    encoder = {"by": how, "told": told, **{name: round(value, 4) for name, value in figures.items()}}
    return replace(scored, details={**scored.details, "encoder": encoder})


def auroc_of(scored: ScoredPairs) -> float:
    """How often a given pair has more evidence than a random mismatch; ties count half."""
    given, random = scored.given.log_odds[:, 0], scored.synthetic["random"].log_odds[:, 0]
    return auroc(given, random)


def auroc(above: Array, below: Array) -> float:
    """P(a > b) + P(a = b)/2 of independent draws."""
    ordered = np.sort(below)
    beaten = np.searchsorted(ordered, above, side="left") + np.searchsorted(ordered, above, side="right")
    return float(beaten.mean() / (2 * len(below)))


def of_matched(given: float, share: float) -> float:
    """The AUROC of matched pairs alone; the given ones are in part mismatches, which beat others half the time.

    Where nearly all seem mismatched nothing is known of the rest, and that of all given pairs stands.
    """
    return given if share > _UNKNOWN else min(1.0, (given - share / 2) / (1 - share))


@dataclass(frozen=True)
class EncodedPairs(EmbeddingCollection):
    """Pairs as vectors of one space, row by row."""

    pairs: PairsCollection
    images: Array
    texts: Array
    identity: str

    def __post_init__(self) -> None:
        for name, value in (("name", self.pairs.name), ("problems", ()), ("width", self.images.shape[1])):
            object.__setattr__(self, name, value)

    def __len__(self) -> int:
        return len(self.pairs)

    def ids(self, start: int, stop: int) -> list[str]:
        return self.pairs.ids(start, stop)

    def captions(self, start: int, stop: int) -> list[str]:
        return self.pairs.captions(start, stop)

    def image_names(self, start: int, stop: int) -> list[str]:
        return self.pairs.image_names(start, stop)

    def place(self, row: int) -> tuple[str, int]:
        return self.pairs.place(row)

    def source_rows(self, rows: IntArray) -> IntArray:
        return self.pairs.source_rows(rows)

    def read(self, start: int, stop: int) -> tuple[Array, Array]:
        table = self.pairs.pairs
        return self.images[table.image_index[start:stop]], self.texts[table.text_index[start:stop]]

    def fingerprint(self) -> str:
        return self.identity
