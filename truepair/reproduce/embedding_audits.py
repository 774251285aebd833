"""Audits of the embeddings of a trained model: `python -m truepair.reproduce.embedding_audits DATA SEED ROOT RUNS`.

An InfoNCE model is trained on the training pairs, and embeds those of dev and test, which it never saw. These are
mismatched, and audited as embeddings (`truepair.audit_embeddings`).
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from truepair.data.pairs import Array, BoolArray, IntArray
from truepair.device import set_threads
from truepair.reproduce.cells import Cell, Context, Places, Record, train
from truepair.reproduce.processes import truepair

if TYPE_CHECKING:
    from truepair.audit.of_arrays import EmbeddingAudit

NOISES = (("random", 0.0), *((kind, rate) for kind in ("random", "near") for rate in (0.1, 0.2, 0.4)))


class Embedded(NamedTuple):
    """Unit rows of every pair's image and text, (N, D) each, and which image it is, (N,)."""

    images: Array
    texts: Array
    image: IntArray


def embedding_cells(at: Context, *, data: str, options: str, seeds: Sequence[int] = (0, 1, 2)) -> Iterator[Cell]:
    """A cell a seed, of the model and of the noise: every kind and rate of `NOISES`."""
    for seed in seeds:
        name = f"{data}-seed{seed}"
        command = f"python -m truepair.reproduce run {at.table} --data {data} --seeds {seed}"
        measure = partial(measure_embeddings, f"{at.table}/{name}", data, seed, options)
        yield Cell(name, {"data": data, "seed": seed, "options": options}, command, measure)


def measure_embeddings(folder: str, data: str, seed: int, options: str, places: Places) -> Record:
    words = [*options.split(), "--seed", str(seed)]
    run = train(places.source(data), words, places.runs / folder)
    printed = truepair(str(run.path), places.source(data), str(seed), module="truepair.reproduce.embedding_audits")
    return {"threads": 1, **json.loads(printed.splitlines()[-1])}


def embedding_rows(run: Path, source: str, seed: int) -> dict[str, Any]:
    """One audit for each noise; the figures of the verdict, and of the plain similarity."""

    from truepair.audit.of_arrays import audit_embeddings

    set_threads(1)
    clean = embedded(run, source)
    rows = []
    for kind, rate in NOISES:
        noisy, mismatched = mismatch(clean, kind, rate, seed)
        found = audit_embeddings(noisy.images, noisy.texts, image_ids=noisy.image.tolist(), seed=seed)
        rows.append({"kind": kind, "noise": rate, **figures_of(found, mismatched)})
    return {"pairs": len(clean.image), "audits": rows}


def embedded(run: Path, source: str) -> Embedded:
    """Dev and test, as the model embeds them."""
    from truepair.audit.scoring.vectors import encode
    from truepair.data.open import load
    from truepair.training.fit import open_run
    from truepair.training.jobs import reading_of_run

    model, reading, sides, first = open_run(run).model, reading_of_run(run, source), [], 0
    for split in ("dev", "test"):
        pairs = load(source, split, reading=reading)
        vectors = encode(model, pairs, device="cpu")
        images, texts = vectors.images[pairs.image_index], vectors.texts[pairs.text_index]
        sides.append(Embedded(images.numpy(), texts.numpy(), pairs.image_index + first))
        first += len(pairs.images)
    return Embedded(*(np.concatenate(side) for side in zip(*sides, strict=True)))


def mismatch(clean: Embedded, kind: str, rate: float, seed: int) -> tuple[Embedded, BoolArray]:
    """The pairs with a share of the texts of other images, and which these are.

    `random` exchanges the texts of round(rate · N) pairs among themselves; `near` gives each of them a copy of a text
    of the image most like its own.
    """
    rng = np.random.default_rng(seed)
    chosen = rng.permutation(len(clean.image))[: round(rate * len(clean.image))]
    text_of = np.arange(len(clean.image))
    if kind == "random":
        text_of[chosen] = rng.permutation(chosen)
    else:
        likeness = clean.images[chosen] @ clean.images.T
        likeness[clean.image[chosen, None] == clean.image] = -np.inf
        nearest = clean.image[likeness.argmax(axis=1)]
        text_of[chosen] = [rng.choice(np.flatnonzero(clean.image == image)) for image in nearest]
    mismatched: BoolArray = clean.image[text_of] != clean.image
    return clean._replace(texts=clean.texts[text_of]), mismatched


def figures_of(found: EmbeddingAudit, mismatched: BoolArray) -> dict[str, Any]:
    from truepair.audit.verdict.against_truth import calibration_error, reliability
    from truepair.evaluation.detection import detection

    shares = {"estimate": found.share, "random": found.random, "near": found.near}
    return {
        "mismatch_rate": float(mismatched.mean()),
        **{name: [share.share, share.low, share.high] if share else None for name, share in shares.items()},
        "flagged": float(found.flagged.mean()),
        "calibration_error": calibration_error(reliability(found.p_match, mismatched), len(mismatched)),
        "auroc": detection(found.p_match, mismatched)["auroc"],
        "auroc_similarity": detection(found.similarity, mismatched)["auroc"],
    }


if __name__ == "__main__":
    print(json.dumps(embedding_rows(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])), allow_nan=False))
