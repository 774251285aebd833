"""Probes on made-up parts whose content is known, the questions against the scenes they are about, and bad input."""

import json

import numpy as np
import pytest

from truepair.data.config import Augmentation
from truepair.data.formats.scenes.scene_captions import (
    CAPTIONS,
    COLOUR_WORDS,
    KIND_WORDS,
    PLACE_WORDS,
    SIZE_WORDS,
    TEXTURE_WORDS,
)
from truepair.data.formats.scenes.scene_drawing import COLOURS, KINDS, PLACES, SIZES, TEXTURES
from truepair.data.formats.scenes.scenes import draw_scenes
from truepair.data.formats.scenes.source import scene_pairs
from truepair.data.text import Vocabulary
from truepair.engines.config import GlobalConfig
from truepair.engines.regions_and_words import InputSizes, RegionsAndWords
from truepair.engines.retrieval_model import Needs, new_model
from truepair.errors import InputError
from truepair.evaluation import encode_parts
from truepair.pages.analysis import probes
from truepair.pages.analysis.probes import (
    GROUPS,
    NAMING,
    PARTS,
    PLACED,
    TEXTURED,
    Exam,
    Question,
    balanced,
    linear_accuracy,
    probe,
    probe_scenes,
    said_axis,
    scene_exam,
    scene_questions,
    summary,
    with_noise,
)

SCENES = 500
WORDS = {
    "kind": (KINDS, KIND_WORDS),
    "colour": (COLOURS, COLOUR_WORDS),
    "texture": (TEXTURES, TEXTURE_WORDS),
    "size": (SIZES, SIZE_WORDS),
    "place": (PLACES, PLACE_WORDS),
}


@pytest.fixture(scope="module")
def scenes():
    return draw_scenes(SCENES, seed=3, split="dev")


@pytest.fixture(scope="module")
def questions(scenes):
    return list(scene_questions(scenes, np.random.default_rng(0)))


def exam(seed, rows=400, classes=3, factor="shape"):
    """V_S holds the classes and noise, V_X noise alone; two texts an image, of which the second is asked about.

    T_S holds the classes at the second texts and the reverse of them at the first.
    """
    rng = np.random.default_rng(seed)
    labels = np.arange(rows) % classes
    one_hot = 10.0 * np.eye(classes)[labels]
    texts = np.stack([np.roll(one_hot, 1, axis=1), one_hot], axis=1).reshape(2 * rows, classes)
    parts = {
        "V_S": np.concatenate([one_hot, rng.normal(size=(rows, 20))], axis=1),
        "V_X": rng.normal(size=(rows, 20)),
        "T_S": texts + rng.normal(size=texts.shape),
    }
    images = np.arange(rows)
    return Exam(parts, [Question(factor, "shared", "which", images, 2 * images + 1, labels)])


def by_part(rows):
    return {row["part"]: row for row in rows}


def test_a_part_is_right_on_what_it_holds_and_at_chance_on_the_rest():
    found = by_part(probe(exam(0), exam(1)))
    assert found["V_S"]["accuracy"] == 1
    assert found["T_S"]["accuracy"] == 1
    assert found["V_X"]["accuracy"] == pytest.approx(1 / 3, abs=0.1)
    assert found["V_X"]["chance"] == 134 / 400
    assert found["V_S"]["questions"] == 1


def test_nothing_is_scored_on_the_rows_a_probe_was_fitted_on():
    """As many columns as rows: any labels can be fitted, so the fitted rows would be far above chance."""

    def noise(seed):
        rng = np.random.default_rng(seed)
        question = Question("shape", "shared", "which", np.arange(200), np.arange(200), rng.integers(2, size=200))
        return Exam({"V_X": rng.normal(size=(200, 200))}, [question])

    assert probe(noise(0), noise(0))[0]["accuracy"] > 0.85
    assert probe(noise(0), noise(1))[0]["accuracy"] < 0.65


def test_columns_are_standardised_by_the_fitted_rows():
    rng = np.random.default_rng(0)
    labels = rng.integers(2, size=400)
    values = np.stack([1e-4 * labels + 7, 1e3 * rng.normal(size=400), np.full(400, 5.0)], axis=1)
    assert linear_accuracy(values[:200], labels[:200], values[200:], labels[200:]) == 1
    shifted = values[200:] + np.array([1e-3, 0, 0])  # gone if the scored rows were standardised by themselves
    assert linear_accuracy(values[:200], labels[:200], shifted, labels[200:]) < 0.7


def test_a_factor_is_the_mean_of_its_questions():
    def two_questions(seed):
        made = exam(seed)
        (question,) = made.questions
        constant = np.where(np.arange(400) < 300, 0, 1)
        hard = Question("shape", "shared", "hard", question.images, question.texts, constant)
        return Exam({"V_X": made.parts["V_X"]}, [question, hard])

    first, second = two_questions(0), two_questions(1)
    (row,) = probe(first, second)
    apart = [
        probe(Exam(first.parts, [first.questions[k]]), Exam(second.parts, [second.questions[k]]))[0] for k in (0, 1)
    ]
    assert row["questions"] == 2
    for figure in ("accuracy", "chance"):
        assert row[figure] == pytest.approx((apart[0][figure] + apart[1][figure]) / 2)
    assert apart[1]["chance"] == 0.75


@pytest.mark.parametrize("constant", ["fitted", "scored"])
def test_a_question_with_one_answer_is_left_out(constant):
    fitted, scored = exam(0), exam(1)
    (fitted if constant == "fitted" else scored).questions[0].labels[:] = 1
    assert probe(fitted, scored) == []
    other = exam(2, factor="other").questions
    fitted.questions.extend(other)
    scored.questions.extend(other)
    assert {row["factor"] for row in probe(fitted, scored)} == {"other"}


def test_bad_exams_are_refused():
    with pytest.raises(InputError, match=r"shape \(which\) has 19 fitted rows; expected at least 20"):
        probe(exam(0, rows=19), exam(1))
    with pytest.raises(InputError, match=r"shape \(which\) has 19 scored rows"):
        probe(exam(0), exam(1, rows=19))
    with pytest.raises(InputError, match=r"different questions.*colour \(which\)"):
        probe(exam(0), exam(1, factor="colour"))
    broken = exam(1)
    broken.parts["V_X"][7, 3] = np.nan
    with pytest.raises(InputError, match="row 7 of part V_X"):
        probe(exam(0), broken)


def test_summary_is_the_mean_gain_over_chance():
    def row(belongs, part, accuracy, chance):
        return {"belongs": belongs, "part": part, "accuracy": accuracy, "chance": chance}

    found = summary([row("a", "V_S", 1.0, 0.5), row("a", "V_S", 0.2, 0.2), row("b", "V_S", 0.3, 0.5)])
    assert found["a"]["V_S"] == pytest.approx(0.5)
    assert found["b"]["V_S"] == pytest.approx(-0.4)


def test_balanced_keeps_all_of_the_rarer_answer():
    present = (np.arange(90) % 9 == 0).astype(int)
    rows = balanced(present, np.random.default_rng(0))
    assert len(rows) == len(set(rows)) == 20 and (np.diff(rows) > 0).all()
    assert set(np.flatnonzero(present)) <= set(rows)
    assert len(balanced(np.ones(5, int), np.random.default_rng(0))) == 0


# --- The questions about scenes ------------------------------------------------------------------------------------


def test_every_answer_about_what_is_shared_stands_in_the_caption(scenes, questions):
    """The words of a caption say what was asked, and say it of everything there is."""
    captions = [f" {caption.lower()} " for group in scenes.captions for caption in group]
    asked = set()
    for question in questions:
        if question.factor not in WORDS:
            continue
        names, words = WORDS[question.factor]
        spoken = words[names.index(question.answer)]
        asked.add((question.factor, question.answer))
        assert np.bincount(question.labels).tolist() == [len(question.labels) // 2] * 2
        for text, label in zip(question.texts, question.labels, strict=True):
            speaker = scenes.factors.speaker[text // CAPTIONS, text % CAPTIONS]
            assert any(f" {spoken[speaker]}{end}" in captions[text] for end in " .,") == bool(label)
    assert asked == {(factor, name) for factor, (names, _) in WORDS.items() for name in names}


def test_the_axis_is_that_of_the_words(scenes):
    across = ("left of", "right of", "left-hand side", "right-hand side")
    axes = said_axis(scenes)
    for axis, captions in zip(axes, scenes.captions, strict=True):
        assert (axis == 0) == any(words in captions[1].lower() for words in across)
    assert 0.2 < axes.mean() < 0.8


def test_questions_are_about_the_picture_and_caption_they_name(scenes, questions):
    factors, pairs = scenes.factors, scene_pairs(scenes)
    captions = {"number": NAMING, "texture": TEXTURED, "size": PLACED, "place": PLACED, "kind": NAMING}
    for question in questions:
        np.testing.assert_array_equal(pairs.image_of_text[question.texts], question.images)
        assert question.belongs in GROUPS
        assert len(np.unique(question.texts % CAPTIONS)) == 1
        if question.factor in captions:
            assert question.texts[0] % CAPTIONS == captions[question.factor]
        if question.factor in ("texture", "size", "place", "relation"):
            assert ((factors.kind[question.images] >= 0).sum(axis=1) == 2).all()
        if question.factor == "background style":
            np.testing.assert_array_equal(question.labels, factors.background_style)
        if question.factor == "speaker":
            np.testing.assert_array_equal(question.labels, factors.speaker.ravel()[question.texts])
    assert pairs.texts.captions[7] == scenes.captions[1][2]


def test_questions_are_the_same_for_the_same_seed(scenes, questions):
    for one, other in zip(questions, scene_questions(scenes, np.random.default_rng(0)), strict=True):
        assert one.name == other.name
        np.testing.assert_array_equal(one.images, other.images)
        np.testing.assert_array_equal(one.labels, other.labels)


# --- All of it ------------------------------------------------------------------------------------------------------


def small_model(subspace_width=6):
    vocabulary = Vocabulary.build([caption for group in draw_scenes(30, seed=0).captions for caption in group])
    preparation = RegionsAndWords(vocabulary, InputSizes(56, 36, len(vocabulary)), Augmentation())
    needs = Needs(subspace_width=subspace_width, subspace_hidden=8)
    return new_model(GlobalConfig(width=8, word_width=8), preparation, needs)


def test_probe_scenes_reports_every_factor_and_part(scenes, monkeypatch):
    """Fitted on new dev drawings and scored on new test drawings; the same call gives the same numbers."""
    drawn = []

    def draw(count, *, seed, split):
        drawn.append((count, seed, split))
        return scenes if split == "dev" else others

    others = draw_scenes(SCENES, seed=3, split="test")
    monkeypatch.setattr(probes, "draw_scenes", draw)
    model = small_model()
    report = probe_scenes(model, fitted_on=SCENES, scored_on=SCENES)
    assert [split for _, _, split in drawn] == ["dev", "test"]
    assert all(seed >= 1000 for _, seed, _ in drawn)
    assert json.loads(json.dumps(report)) == report
    assert (report["fitted_on"], report["scored_on"]) == (SCENES, SCENES)
    factors = {(row["factor"], row["belongs"]) for row in report["rows"]}
    assert {factor for factor, _ in factors} == {
        *("kind", "colour", "texture", "size", "place", "number", "relation"),
        *("background style", "background colour", "template", "speaker"),
    }
    assert len(report["rows"]) == len(factors) * len(PARTS)
    assert list(report["summary"]) == list(GROUPS)
    assert all(set(parts) == set(PARTS) for parts in report["summary"].values())
    # Neither side can know what only the other has, whatever the model.
    assert all(abs(report["summary"]["exclusive image"][part]) < 0.1 for part in ("T_S", "T_X", "F_T"))
    assert all(abs(report["summary"]["exclusive text"][part]) < 0.1 for part in ("V_S", "V_X", "F_V"))
    assert report["summary"]["exclusive image"]["F_V"] > 0.1
    assert probe_scenes(model, fitted_on=SCENES, scored_on=SCENES) == report


def test_every_part_is_the_one_of_its_name(scenes, monkeypatch):
    monkeypatch.setattr(probes, "draw_scenes", lambda *_, **__: scenes)
    model = small_model()
    parts = scene_exam(model, "dev", SCENES, 0).parts
    image, text = encode_parts(model, scene_pairs(scenes))
    expected = {
        "V_S": image.invariant,
        "V_X": image.exclusive,
        "F_V": image.features,
        "T_S": text.invariant,
        "T_X": text.exclusive,
        "F_T": text.features,
    }
    assert list(parts) == list(PARTS)
    for part in PARTS:
        np.testing.assert_array_equal(parts[part], expected[part].numpy())


def test_probe_scenes_refuses_what_it_cannot_use():
    model = small_model()
    with pytest.raises(InputError, match="scored_on 499; expected at least 500"):
        probe_scenes(model, scored_on=499)
    with pytest.raises(InputError, match="seed is -1"):
        probe_scenes(model, seed=-1)


def test_noise_drowns_what_is_told_in_small_differences():
    """A factor a hundred times smaller than what else the part holds, which a plain probe reads all the same."""
    draws = np.random.default_rng(0)
    labels = draws.integers(0, 2, 600)
    part = np.hstack(
        [0.01 * (2 * labels[:, None] - 1) + 1e-3 * draws.normal(size=(600, 1)), draws.normal(size=(600, 3))]
    )
    exam = Exam({"V_S": part}, [])
    blurred = with_noise(exam, 0.5, seed=0).parts["V_S"]
    half = slice(None, 300), slice(300, None)
    plain = linear_accuracy(part[half[0]], labels[:300], part[half[1]], labels[300:])
    noisy = linear_accuracy(blurred[half[0]], labels[:300], blurred[half[1]], labels[300:])
    assert plain > 0.99 and noisy < 0.6
