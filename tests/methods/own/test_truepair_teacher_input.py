"""Teachers that see the pairs unaltered: what is kept of them is what they say, and a run with it is exact."""

from dataclasses import replace

import pytest
import torch

from tests.methods.own.given import QUICK, SMALL, fit
from tests.training.test_resume import assert_same_run, stopped_after
from truepair.data.config import Augmentation
from truepair.engines.config import SGRConfig
from truepair.engines.global_engine import GlobalEngine
from truepair.errors import InputError
from truepair.methods import build_method
from truepair.methods.truepair import method as truepair_method
from truepair.methods.truepair import teacher
from truepair.methods.truepair.teacher import TeacherVectors
from truepair.training.setup import Setup

STAGE = {"pieces": (3, 3)}
FIRST, BATCHES = 6, 6  # epochs before the last stage; batches of an epoch
SGR = Setup(model=SGRConfig(width=16, word_width=8, similarity_width=8))


def unaltered(**options):
    return build_method("truepair", {**STAGE, "teacher_input": "unaltered", **options})


def unit(count, seed, width=6):
    vectors = torch.randn(count, width, generator=torch.Generator().manual_seed(seed))
    return torch.nn.functional.normalize(vectors, dim=1)


def test_products_of_kept_vectors_are_the_mean_of_the_teachers_similarities():
    """In whatever batches pairs come."""
    kept, sides = TeacherVectors(7), [(unit(7, 2 * k), unit(7, 2 * k + 1)) for k in range(3)]
    for rows in (torch.tensor([6, 0, 3]), torch.tensor([1, 2]), torch.tensor([5, 4])):
        of_batch = (torch.cat([3**-0.5 * pair[side][rows] for pair in sides], dim=1) for side in (0, 1))
        kept.add(rows, *of_batch)
    asked = torch.tensor([4, 6, 1, 0])
    found = kept.similarity(asked, torch.device("cpu"))
    for i, image in enumerate(asked.tolist()):
        for j, text in enumerate(asked.tolist()):
            mean = sum(float(images[image].double() @ texts[text].double()) for images, texts in sides) / 3
            assert float(found[i, j]) == pytest.approx(mean, abs=1e-6)


@pytest.mark.parametrize("setup", [SMALL, SGR])
def test_before_the_last_stage_nothing_changes_and_in_it_the_targets(tiny, tmp_path, setup):
    plain = fit(tiny, tmp_path / "plain", build_method("truepair", STAGE), setup)
    run = fit(tiny, tmp_path / "run", unaltered(), setup)
    assert run.metrics[:FIRST] == plain.metrics[:FIRST]
    assert all(
        ours["distillation"] != theirs["distillation"]
        for ours, theirs in zip(run.metrics, plain.metrics, strict=True)
        if "distillation" in ours
    )
    assert len(run.metrics) == len(plain.metrics) == FIRST + QUICK["epochs"]


def test_without_augmentation_the_targets_are_the_same(tiny, tmp_path):
    plain, kept = (
        fit(tiny, tmp_path / name, method, replace(SMALL, augmentation=Augmentation(0.0, 0.0)))
        for name, method in (("plain", build_method("truepair", STAGE)), ("kept", unaltered()))
    )
    for ours, theirs in zip(kept.metrics, plain.metrics, strict=True):
        assert ours["loss"] == pytest.approx(theirs["loss"], rel=1e-4)


def test_where_vectors_do_not_fit_each_batch_is_encoded_anew(tiny, tmp_path, monkeypatch):
    kept = fit(tiny, tmp_path / "kept", unaltered())
    monkeypatch.setattr(teacher, "KEPT", 0.0)
    anew = fit(tiny, tmp_path / "anew", unaltered())
    for ours, theirs in zip(anew.metrics, kept.metrics, strict=True):
        assert ours["loss"] == pytest.approx(theirs["loss"], rel=1e-4)


@pytest.mark.parametrize(("input_", "expected"), [("unaltered", 1), ("augmented", QUICK["epochs"])])
def test_each_teacher_encodes_each_image_once(tiny, tmp_path, monkeypatch, input_, expected):
    """Not in every epoch of the last stage, and not for dev, which the average alone is scored on."""
    encode, seen = GlobalEngine.encode_images, {}
    survey = truepair_method.TruePair.start_epoch

    def counting(self, images):
        if not self.training and not torch.is_inference_mode_enabled():
            seen[id(self)] = seen.get(id(self), 0) + len(images)
        return encode(self, images)

    def from_the_last_stage_on(self, position, memory):
        if position.in_last_stage and position.epoch == 1 and input_ == "augmented":
            seen.clear()
        return survey(self, position, memory)

    monkeypatch.setattr(GlobalEngine, "encode_images", counting)
    monkeypatch.setattr(truepair_method.TruePair, "start_epoch", from_the_last_stage_on)
    run = fit(
        tiny, tmp_path / "run", build_method("truepair", {**STAGE, "teacher_input": input_, "first_labels": "given"})
    )
    pairs = run.result["pairs"]
    assert sorted(seen.values()) == 2 * [expected * pairs]


@pytest.mark.parametrize(("setup", "cuts"), [(SMALL, (3, 6)), (SGR, (9,))])
def test_a_run_cut_off_in_the_last_stage_ends_as_if_it_had_not_been(tiny, tmp_path, monkeypatch, setup, cuts):
    whole = fit(tiny, tmp_path / "whole", unaltered(), setup)
    cut, before = tmp_path / "cut", 0
    for batches in cuts:
        with stopped_after(monkeypatch, FIRST * BATCHES + batches - before, saved=True):
            fit(tiny, cut, unaltered(), setup, resume=before > 0)
        before = FIRST * BATCHES + batches
    assert_same_run(fit(tiny, cut, unaltered(), setup, resume=True).path, whole.path)


@pytest.mark.parametrize("options", [{"pieces": ()}, {"distillation": 0.0}, {"teacher_input": "seen"}])
def test_without_teachers_it_is_refused(options):
    with pytest.raises(InputError, match="teacher_input"):
        unaltered(**options)
