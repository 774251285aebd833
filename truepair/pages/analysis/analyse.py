"""`analyse`: a finished DisNCL run in, everything its page says out (DisNCL, section VI-C, VI-D2)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from truepair.data.open import is_drawn, load
from truepair.data.pairs import Pairs
from truepair.engines.config import GlobalConfig
from truepair.errors import InputError
from truepair.evaluation import evaluate
from truepair.evaluation.mutual_information import FEWEST_SAMPLES
from truepair.pages.analysis.embedding import Embedding, embed
from truepair.pages.analysis.leakage import PART_NOISE, Leakage, leakage
from truepair.pages.analysis.probes import probe_scenes
from truepair.pages.analysis.retrieval import (
    MOST_FITTED,
    Figures,
    chance,
    cosine_recall,
    exclusive,
    fit_on_pairs,
    fit_ridge,
    invariant,
    mapped_recall,
)
from truepair.pages.analysis.soft_examples import SoftExamples, soft_examples
from truepair.pages.analysis.subject import (
    Split,
    Subject,
    encoded,
    load_analysed,
    one_caption_each,
    open_subject,
    source_of,
)
from truepair.training.held_out import check_held_out
from truepair.training.jobs import reading_of_run

GLOBAL = GlobalConfig.name
LARGEST_SEED = 2**31  # exclusive: what the drawings for the probes take


@dataclass(frozen=True)
class RunAnalysis:
    """What was found of one run.

    Attributes:
        options: of the method, as the run had them.
        leakage: by `image` and `text`; None where too few images have a caption.
        explained: by `image` and `text`, R² on the analysed split of V_S (T_S) as a linear map of V_X (T_X).
        retrieval: what was compared → figures of `recall`, in the order to be shown.
        probes: what `probe_scenes` gives, or None for data that are no drawings.
    """

    name: str
    options: dict[str, Any]
    leakage: dict[str, Leakage] | None
    explained: dict[str, float]
    retrieval: dict[str, Figures]
    embedding: Embedding
    probes: dict[str, Any] | None


@dataclass(frozen=True)
class Analysis:
    """A run, perhaps another beside it, on the same pairs.

    Attributes:
        pairs: of the analysed split, for pictures and captions.
        leakage_split: where the rows of the leakage estimates are from.
        fitted_pairs: number of training pairs the maps from text to image were fitted on.
        fitted_images: number of training images the maps from exclusive to invariant part were fitted on.
    """

    run: RunAnalysis
    against: RunAnalysis | None
    pairs: Pairs
    source: str
    split: str
    leakage_split: str
    fitted_pairs: int
    fitted_images: int
    chance: Figures
    soft: SoftExamples
    seed: int

    @property
    def runs(self) -> list[RunAnalysis]:
        return [self.run] if self.against is None else [self.run, self.against]


def analyse(
    run: Path,
    *,
    against: Path | None = None,
    data: str | None = None,
    split: str = "test",
    leakage_split: str | None = None,
    seed: int = 0,
    device: torch.device | None = None,
    say: Callable[[str], None] = lambda text: None,
) -> Analysis:
    """What a DisNCL run has parted, and how well.

    Args:
        run: folder of a finished run of `--method disncl`.
        against: another one, looked at on the same pairs; usually trained without the terms that disentangle.
        data: source to look at both with; None for the one `run` was trained on.
        split: of the source, to retrieve in and to draw examples from.
        leakage_split: to take the rows of the leakage estimates from; None for `split`.
        seed: of every draw and network here, in [0, 2^31).
        device: to encode on; None for the CPU.
        say: told what is done next.

    Raises:
        RunFolderError: there is no run, or it is not finished.
        InputError: a run is of another method, the data are not there or do not fit, or the seed is out of range.
    """
    if not 0 <= seed < LARGEST_SEED:
        raise InputError(f"--seed is {seed}; expected a whole number from 0 to {LARGEST_SEED - 1}")
    subjects = [open_subject(path, device=device) for path in (run, against) if path is not None]
    source = source_of(subjects[0], data)
    reading = reading_of_run(subjects[0].run.path, source)
    pairs, train = load_analysed(source, split, reading), load(source, "train", reading=reading)
    rows = pairs if leakage_split is None else load(source, leakage_split, reading=reading)
    for subject in subjects:
        check_held_out(subject.run.path, pairs, source, split, reading)
    fitted = train.first_images(MOST_FITTED)
    found = [analyse_run(subject, pairs, fitted, rows, source, seed, say) for subject in subjects]
    say("soft targets")
    return Analysis(
        run=found[0],
        against=found[1] if len(found) > 1 else None,
        pairs=pairs,
        source=source,
        split=split,
        leakage_split=leakage_split or split,
        fitted_pairs=min(len(fitted), MOST_FITTED),
        fitted_images=len(fitted.images),
        chance=chance(pairs.image_of_text, len(pairs.images)),
        soft=soft_examples(subjects[0], pairs, seed=seed),
        seed=seed,
    )


def analyse_run(
    subject: Subject, pairs: Pairs, fitted_pairs: Pairs, leakage_pairs: Pairs, source: str, seed: int,
    say: Callable[[str], None],
) -> RunAnalysis:  # fmt: skip
    """One run on pairs to retrieve in, training pairs to fit linear maps on, and pairs to estimate leakage with."""
    say(f"{subject.name}: encoding")
    split, fitted = encoded(subject, pairs), encoded(subject, fitted_pairs)
    rows = split if leakage_pairs is pairs else encoded(subject, leakage_pairs)
    found = None
    if len(one_caption_each(leakage_pairs)) >= FEWEST_SAMPLES:
        say(f"{subject.name}: estimating information")
        found = leakage(rows, noise=PART_NOISE, seed=seed)
    say(f"{subject.name}: retrieval")
    retrieval, linear = retrieval_of(subject, split, fitted, seed), explained(split, fitted, seed)
    say(f"{subject.name}: t-SNE")
    embedding = embed(split, seed=seed)
    probes = None
    if is_drawn(source):
        say(f"{subject.name}: probes")
        probes = probe_scenes(subject.model, seed=seed, noise=PART_NOISE)
    return RunAnalysis(subject.name, subject.options, found, linear, retrieval, embedding, probes)


def retrieval_of(subject: Subject, split: Split, fitted: Split, seed: int) -> dict[str, Figures]:
    """What was compared → figures. A region–word engine, which does not compare by a cosine, has a row of its own."""
    found = {}
    if subject.config["model"]["name"] != GLOBAL:
        found["V_S, T_S as the run compares them"] = evaluate(subject.model, split.pairs)
    found["V_S, T_S by cosine"] = cosine_recall(split, invariant)
    found["V_X, T_X by cosine"] = cosine_recall(split, exclusive)
    for name, part in (("T_S mapped to V_S", invariant), ("T_X mapped to V_X", exclusive)):
        found[name] = mapped_recall(split, part, fit_on_pairs(fitted, part, seed=seed))
    return found


def explained(split: Split, fitted: Split, seed: int) -> dict[str, float]:
    """R² of the invariant part as a linear map of the exclusive one, by side; fitted on the training split."""
    sides = {"image": (fitted.images, split.images), "text": (fitted.texts, split.texts)}
    return {
        side: fit_ridge(learned.exclusive, learned.invariant, seed=seed).explained(scored.exclusive, scored.invariant)
        for side, (learned, scored) in sides.items()
    }
