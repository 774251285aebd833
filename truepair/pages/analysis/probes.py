"""Linear probes: which known factors of the built-in drawings can be read from which part of a DisNCL model.

Who knows a factor is settled by how the drawings are made (`truepair.data.formats.scenes.scenes`):

- shared, what the picture shows and the caption says. Kinds, colours and number of the objects: caption 0 names all of
  them. Textures, sizes, places, and whether the objects lie beside or above each other: captions 2, 3, 3 and 1 tell
  them of two objects, so only scenes of two are asked about.
- exclusive image: style and colour of the background.
- exclusive text: the template of the sentence, and the speaker, who settles which of three synonyms is used.

Left out: which objects a caption picks, which it names first and what it tells of them. No picture gives these away,
but a caption cannot be compared with pictures without them, so they belong to neither side.

What a probe answers is whether a factor is still there, however small its share of the part's variance: columns are
standardised, and nothing blurs a part. An untrained model keeps nearly everything in every part, so compare with one.

Shape letters: n pictures, r rows of a question, D width of a part.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from truepair.data.formats.scenes.scene_captions import CAPTIONS, RELATION_WORDS
from truepair.data.formats.scenes.scene_drawing import COLOURS, KINDS, PLACES, SIZES, TEXTURES
from truepair.data.formats.scenes.scenes import Scenes, draw_scenes
from truepair.data.formats.scenes.source import scene_pairs
from truepair.data.pairs import Array, IntArray
from truepair.engines.retrieval_model import RetrievalModel
from truepair.errors import InputError
from truepair.evaluation.subspaces import encode_parts
from truepair.losses.information import blurred
from truepair.seeding import generator

SHARED, IMAGE_ONLY, TEXT_ONLY = "shared", "exclusive image", "exclusive text"
GROUPS = (SHARED, IMAGE_ONLY, TEXT_ONLY)
PARTS = ("V_S", "V_X", "T_S", "T_X", "F_V", "F_T")
IMAGE_PARTS = ("V_S", "V_X", "F_V")

FEWEST_PICTURES = 500
"""With fewer, some questions about scenes of two objects have only a handful of rows."""
FEWEST_ROWS = 20
NAMING, RELATING, TEXTURED, PLACED = range(4)  # the captions by what they tell of, see `scene_captions`

_APART = 977_000  # added to the seed: no picture is one that a run on `scenes` was trained or chosen on
_STRENGTH = 0.01


@dataclass(frozen=True)
class Question:
    """What a probe is asked about r rows, each a picture and one of its captions.

    Attributes:
        factor, belongs: the factor, and which of GROUPS it belongs to. A factor may have several questions.
        answer: what is asked for within the factor ("red"; caption 2).
        images, texts: (r,) rows of the image parts and of the text parts.
        labels: (r,) the right answers.
    """

    factor: str
    belongs: str
    answer: str
    images: IntArray
    texts: IntArray
    labels: IntArray

    @property
    def name(self) -> str:
        return f"{self.factor} ({self.answer})"


@dataclass(frozen=True)
class Exam:
    """Parts by name, each (rows, D), and the questions about their rows."""

    parts: Mapping[str, Array]
    questions: Sequence[Question]


def probe_scenes(
    model: RetrievalModel, *, seed: int = 0, noise: float = 0.0, fitted_on: int = 2000, scored_on: int = 1000
) -> dict[str, Any]:
    """What linear probes read from the parts of a DisNCL model on drawings it has not seen, ready for JSON.

    A probe is a multinomial logistic regression on one standardised part. It is fitted on new drawings of the dev split
    and scored on new ones of the test split. The full features F_V and F_T say what could be read at best.

    Returns:
        `fitted_on`, `scored_on`: numbers of pictures. `rows`: one dict a factor and part, see `probe`. `summary`:
        group of factors → part → mean over the factors of (accuracy − chance)/(1 − chance); 0 is chance, 1 always
        right. A probe that finds nothing is around 0, often a little below. `with_noise`, where noise is asked for:
        the same of the parts spread out and with that noise (`blurred`), and `noise`.

    Args:
        model: of a run of `--method disncl` on `scenes`.
        seed: in [0, 2^31), names the drawings and which rows balance the questions.
        noise: ≥ 0, in units of the spread of a part. What is left without it may lie in differences too small to use.
        fitted_on, scored_on: pictures to draw; at least 500. Drawing takes most of the time, some 6 to 10 ms each.

    Raises:
        InputError: the model has no subspaces or takes other features; too few pictures; a seed out of range.
    """
    if min(fitted_on, scored_on) < FEWEST_PICTURES:
        raise InputError(
            f"fitted_on is {fitted_on} and scored_on {scored_on}; expected at least {FEWEST_PICTURES} pictures each: "
            "with fewer, the rarer answers have too few rows"
        )
    if not 0 <= seed < 2**31:
        raise InputError(f"seed is {seed}; expected a whole number from 0 to {2**31 - 1}")
    fitted = scene_exam(model, "dev", fitted_on, seed)
    scored = scene_exam(model, "test", scored_on, seed)
    rows = probe(fitted, scored)
    found = {"fitted_on": fitted_on, "scored_on": scored_on, "rows": rows, "summary": summary(rows)}
    if noise:
        rows = probe(with_noise(fitted, noise, seed), with_noise(scored, noise, seed + 1))
        found["with_noise"] = {"noise": noise, "rows": rows, "summary": summary(rows)}
    return found


def summary(rows: Iterable[Mapping[str, Any]]) -> dict[str, dict[str, float]]:
    """Group → part → mean of (accuracy − chance)/(1 − chance) over the rows of `probe`; 0 is chance, 1 always right."""
    gains: dict[str, dict[str, list[float]]] = {}
    for row in rows:
        gain = (row["accuracy"] - row["chance"]) / (1 - row["chance"])
        gains.setdefault(row["belongs"], {}).setdefault(row["part"], []).append(gain)
    return {
        group: {part: float(np.mean(values)) for part, values in by_part.items()} for group, by_part in gains.items()
    }


# --- The probes ----------------------------------------------------------------------------------------------------


def probe(fitted: Exam, scored: Exam) -> list[dict[str, Any]]:
    """One row a factor and part: `factor`, `belongs`, `part`, `accuracy`, `chance`, `questions`.

    `accuracy`, in [0, 1], is the share of right answers of probes fitted on `fitted`, about the rows of `scored`;
    `chance` the share of the commonest answer there. Both are means over the `questions` of the factor.

    A question is left out where all rows of `fitted` or all rows of `scored` have one answer, and a factor where no
    question is left.

    Raises:
        InputError: the two sets ask different questions, a question has fewer than 20 rows, or a part holds a value
            that is not finite.
    """
    asked, repeated = ([question.name for question in exam.questions] for exam in (fitted, scored))
    if asked != repeated:
        odd = sorted(set(asked) ^ set(repeated))
        raise InputError(f"fitted and scored rows ask different questions or in another order: {odd or asked}")
    for part in fitted.parts:
        _check_finite(part, fitted.parts[part])
        _check_finite(part, scored.parts[part])
    answered: dict[tuple[str, str, str], list[tuple[float, float]]] = {}
    for learned, question in zip(fitted.questions, scored.questions, strict=True):
        _check_rows("fitted", learned)
        _check_rows("scored", question)
        if min(len(np.unique(learned.labels)), len(np.unique(question.labels))) < 2:
            continue
        chance = float(np.unique(question.labels, return_counts=True)[1].max() / len(question.labels))
        for part in fitted.parts:
            accuracy = linear_accuracy(
                fitted.parts[part][_rows(learned, part)],
                learned.labels,
                scored.parts[part][_rows(question, part)],
                question.labels,
            )
            key = question.factor, question.belongs, part
            answered.setdefault(key, []).append((accuracy, chance))
    return [
        {
            "factor": factor,
            "belongs": belongs,
            "part": part,
            "accuracy": float(np.mean([accuracy for accuracy, _ in found])),
            "chance": float(np.mean([chance for _, chance in found])),
            "questions": len(found),
        }
        for (factor, belongs, part), found in answered.items()
    ]


def linear_accuracy(fitted: Array, fitted_labels: IntArray, scored: Array, scored_labels: IntArray) -> float:
    """The share of `scored` rows (r, D) whose class a logistic regression fitted on the `fitted` rows gets right.

    Columns are standardised by the fitted rows; a constant one says nothing. An L2 penalty (C = 0.01) keeps hundreds of
    columns from being fitted to hundreds of rows.
    """
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    classifier = make_pipeline(StandardScaler(), LogisticRegression(C=_STRENGTH, max_iter=1000))
    classifier.fit(fitted.astype(np.float64), fitted_labels)
    return float((classifier.predict(scored.astype(np.float64)) == scored_labels).mean())


def _rows(question: Question, part: str) -> IntArray:
    return question.images if part in IMAGE_PARTS else question.texts


def _check_finite(part: str, values: Array) -> None:
    odd = np.flatnonzero(~np.isfinite(values).all(axis=1))
    if len(odd):
        raise InputError(f"row {odd[0]} of part {part} is not finite; look for a run whose loss was not finite")


def _check_rows(what: str, question: Question) -> None:
    if len(question.labels) < FEWEST_ROWS:
        raise InputError(
            f"{question.name} has {len(question.labels)} {what} rows; expected at least {FEWEST_ROWS}: draw more scenes"
        )


# --- The questions -------------------------------------------------------------------------------------------------


def scene_exam(model: RetrievalModel, split: str, count: int, seed: int) -> Exam:
    """The parts of `count` new drawings of a split and the questions about them."""
    scenes = draw_scenes(count, seed=_APART + seed, split=split)
    image, text = encode_parts(model, scene_pairs(scenes))
    values = image.invariant, image.exclusive, text.invariant, text.exclusive, image.features, text.features
    parts = dict(zip(PARTS, values, strict=True))
    rng = generator(seed, f"probe rows {split}")
    return Exam({part: rows.numpy() for part, rows in parts.items()}, list(scene_questions(scenes, rng)))


def with_noise(exam: Exam, noise: float, seed: int) -> Exam:
    """The same exam of parts that are spread out and blurred."""
    draws = torch.Generator().manual_seed(seed)
    return Exam(
        {part: blurred(torch.from_numpy(values), noise, draws).numpy() for part, values in exam.parts.items()},
        exam.questions,
    )


def scene_questions(scenes: Scenes, rng: np.random.Generator) -> Iterator[Question]:
    """All questions about some scenes, the same ones in the same order for any scenes.

    Yes–no questions ("is there a red object?") are balanced: all rows of the rarer answer and, drawn by `rng`, as many
    of the other, so that chance is one half.
    """
    factors = scenes.factors
    shared = factors.shared()
    everywhere = np.arange(len(scenes.ids))
    pairs_of_objects = np.flatnonzero(shared["count"] == 2)

    for factor, names, caption, images in (
        ("kind", KINDS, NAMING, everywhere),
        ("colour", COLOURS, NAMING, everywhere),
        ("texture", TEXTURES, TEXTURED, pairs_of_objects),
        ("size", SIZES, PLACED, pairs_of_objects),
        ("place", PLACES, PLACED, pairs_of_objects),
    ):
        for answer, present in zip(names, shared[factor].T, strict=True):
            rows = images[balanced(present[images], rng)]
            yield _question(factor, SHARED, answer, rows, caption, present[rows])
    yield _question("number", SHARED, "2, 3 or 4", everywhere, NAMING, shared["count"])
    yield _question(
        "relation", SHARED, "beside or above", pairs_of_objects, RELATING, said_axis(scenes)[pairs_of_objects]
    )
    for factor, labels in factors.picture_only().items():
        yield _question(factor.replace("_", " "), IMAGE_ONLY, "which", everywhere, NAMING, labels)
    for factor, by_caption in factors.text_only().items():
        for caption in (NAMING, RELATING, TEXTURED, PLACED):
            labels = by_caption[:, caption]
            yield _question(factor, TEXT_ONLY, f"caption {caption}", everywhere, caption, labels)


def said_axis(scenes: Scenes) -> IntArray:
    """(n,) what caption 1 says of its two objects: 0 for beside (left or right of), 1 for above or below.

    The record keeps no coordinates; but it keeps the speaker, and with them no word stands for two things.
    """
    axes = np.empty(len(scenes.ids), dtype=np.int64)
    for row, (captions, speakers) in enumerate(zip(scenes.captions, scenes.factors.speaker, strict=True)):
        sentence = f" {captions[RELATING].lower()}"
        (relation,) = (r for r, words in enumerate(RELATION_WORDS) if f" {words[speakers[RELATING]]} " in sentence)
        axes[row] = relation // 2
    return axes


def balanced(present: IntArray, rng: np.random.Generator) -> IntArray:
    """Ascending positions of a 0/1 column (r,) in which 0 and 1 are equally frequent, as many as can be."""
    sides = [np.flatnonzero(present == answer) for answer in (0, 1)]
    fewest = min(len(side) for side in sides)
    return np.sort(np.concatenate([rng.choice(side, size=fewest, replace=False) for side in sides]))


def _question(factor: str, belongs: str, answer: str, images: IntArray, caption: int, labels: IntArray) -> Question:
    return Question(factor, belongs, answer, images, images * CAPTIONS + caption, labels)
