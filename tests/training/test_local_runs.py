"""Whole runs with every engine and with the methods that survey, divide and train two networks."""

import json
import time

import pytest
import torch
from safetensors.torch import load_file

import truepair
from truepair.cli.main import main
from truepair.engines.config import GlobalConfig, SAFConfig, SGRConfig
from truepair.errors import InputError
from truepair.training import loop
from truepair.training.jobs import read_job
from truepair.training.run_folder import read_lines
from truepair.training.setup import Setup

MODELS = {
    "global": GlobalConfig(width=16, word_width=8),
    "sgr": SGRConfig(width=16, word_width=8, similarity_width=8),
    "saf": SAFConfig(width=16, word_width=8, similarity_width=8),
}
METHODS = {
    "infonce": {},
    "crcl": {"pieces": ()},
    "truepair": {"pieces": (3,)},
    "gsc": {},
    "gsc dual": {"co_train": True},
    "ugncl": {"warm_up_epochs": 1, "least_clean": 0.0},
}


def fit(tiny, out, model, method, **more):
    noisy = truepair.inject_noise(truepair.load(tiny), 0.4, seed=1)
    return truepair.fit(
        noisy,
        method=truepair.build_method(method.split()[0], METHODS[method]),
        dev=truepair.load(tiny, "dev"),
        out=out,
        setup=Setup(model=MODELS[model]),
        **{"epochs": 3, "seed": 5, "batch_size": 16, "minimum_count": 1, **more},
    )


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("method", METHODS)
def test_every_method_trains_on_every_engine_and_its_model_comes_back(tiny, tmp_path, model, method):
    run = fit(tiny, tmp_path / "run", model, method)
    dev = truepair.load(tiny, "dev")
    figures = truepair.evaluate(run.model, dev)
    assert figures == run.result["dev"]
    assert {
        line["division"]["clean"] + line["division"]["hard"] + line["division"]["noisy"] for line in run.metrics
    } == {96}
    assert json.loads((run.path / "config.json").read_text())["model"]["name"] == model
    assert all(bool(torch.isfinite(tensor).all()) for tensor in load_file(run.folder.model).values())


@pytest.fixture(scope="module", params=[("sgr", "ugncl"), ("saf", "gsc dual"), ("global", "ugncl")], ids=str)
def whole(tiny, tmp_path_factory, request):
    """A model, a method and their run, which was never cut off."""
    return *request.param, fit(tiny, tmp_path_factory.mktemp("whole") / "run", *request.param)


@pytest.mark.parametrize("batches", [3, 8])
def test_a_run_cut_off_ends_as_if_it_had_not_been(tiny, tmp_path, monkeypatch, whole, batches):
    model, method, whole = whole
    train_batch, left = loop.Training._train_batch, [batches]

    def counted(self, state, position, batch):
        if not left[0]:
            state.save(self.folder.checkpoint)
            raise KeyboardInterrupt
        left[0] -= 1
        return train_batch(self, state, position, batch)

    monkeypatch.setattr(loop.Training, "_train_batch", counted)
    with pytest.raises(KeyboardInterrupt):
        fit(tiny, tmp_path / "cut", model, method)
    monkeypatch.undo()
    resumed = fit(tiny, tmp_path / "cut", model, method, resume=True)
    assert (resumed.path / "metrics.jsonl").read_bytes() == (whole.path / "metrics.jsonl").read_bytes()
    ours, theirs = (load_file(run.folder.checkpoint) for run in (resumed, whole))
    assert ours.keys() == theirs.keys()
    assert all(torch.equal(ours[name], tensor) for name, tensor in theirs.items())


def test_a_survey_sees_every_pair_once_unaltered_and_teaches_nothing(tiny, tmp_path, monkeypatch):
    from truepair.methods.ugncl.method import UGNCL

    seen, modes = [], []

    def watched(self, forward, position, memory):
        seen.append(forward.batch.ids)
        modes.append((forward.engine.training, torch.is_grad_enabled(), forward.batch.images.lengths.min().item()))

    monkeypatch.setattr(UGNCL, "survey", watched)
    fit(tiny, tmp_path / "run", "global", "ugncl", epochs=2)
    assert sorted(torch.cat(seen).tolist()) == list(range(96))
    assert torch.cat(seen).tolist() != list(range(96))
    assert set(modes) == {(False, False, 3)}


def test_what_an_epoch_took_has_the_survey_and_what_the_method_does_before_and_after_its_batches(
    tiny, tmp_path, monkeypatch
):
    from truepair.methods.ugncl.method import UGNCL

    def slow(before, seconds):
        def acts(self, *given):
            time.sleep(seconds)
            return before(self, *given)

        return acts

    monkeypatch.setattr(UGNCL, "survey", lambda *given: time.sleep(0.01))
    monkeypatch.setattr(UGNCL, "start_epoch", slow(UGNCL.start_epoch, 0.3))
    monkeypatch.setattr(UGNCL, "finish_epoch", slow(UGNCL.finish_epoch, 0.2))
    run = fit(tiny, tmp_path / "run", "global", "ugncl", epochs=2)
    timings = read_lines(run.folder.timings)
    assert [line["epoch"] for line in timings] == [1, 2]
    assert all(line["seconds"] >= 0.5 and line["cpu_seconds"] > 0 for line in timings)
    batches = [96 / line["pairs_per_second"] for line in timings]
    assert all(line["seconds"] - took >= 0.49 for line, took in zip(timings, batches, strict=True))


def test_command_line_trains_local_engines_and_refuses_options_of_others(tiny, tmp_path, capsys):
    options = ["--epochs", "1", "--minimum-count", "1", "--width", "16", "--word-width", "8", "--batch-size", "16"]
    sgr = ["--model", "sgr", "--similarity-width", "8", "--reasoning-steps", "2"]
    assert main(["train", str(tiny), "--method", "infonce", *sgr, *options, "--out", str(tmp_path / "a")]) == 0
    job, _ = read_job(tmp_path / "a")
    assert job.setup.model == SGRConfig(width=16, word_width=8, similarity_width=8, reasoning_steps=2)
    assert main(["train", "--resume", str(tmp_path / "a")]) == 0
    assert main(["train", str(tiny), "--model", "saf", "--reasoning-steps", "2", "--out", str(tmp_path / "b")]) == 2
    assert "--reasoning-steps is an option of --model sgr" in capsys.readouterr().err
    assert main(["train", str(tiny), "--model", "sgr", "--pooling", "gpo", "--out", str(tmp_path / "b")]) == 2
    assert "--pooling is an option of --model global" in capsys.readouterr().err


def test_fewer_pairs_and_fewer_images_to_score_by(tiny, tmp_path, capsys):
    options = ["--epochs", "1", "--minimum-count", "1", "--width", "16", "--word-width", "8", "--batch-size", "16"]
    fewer = ["--train-pairs", "40", "--score-images", "5", "--noise", "0.5"]
    assert main(["train", str(tiny), "--method", "infonce", *fewer, *options, "--out", str(tmp_path / "a")]) == 0
    run = truepair.open_run(tmp_path / "a")
    assert run.result["pairs"] == 40
    few = truepair.load(tiny, "dev").first_images(5)
    assert (len(few.images), len(few.texts), len(few)) == (5, 10, 10)
    assert few.texts.captions == truepair.load(tiny, "dev").texts.captions[:10]
    assert truepair.evaluate(run.model, few) == run.result["dev"]
    with pytest.raises(InputError, match="train_pairs is 1"):
        truepair.data.config.DataConfig(source="x", train_pairs=1)


def test_more_regions_than_a_model_knows_are_refused(tiny, tmp_path):
    import dataclasses

    import numpy as np

    run = fit(tiny, tmp_path / "run", "sgr", "infonce", epochs=1)
    dev = truepair.load(tiny, "dev")
    twice = np.concatenate([dev.images.features] * 2, axis=1)
    wider = dataclasses.replace(dev, images=dataclasses.replace(dev.images, features=twice))
    with pytest.raises(InputError, match="6 regions"):
        truepair.evaluate(run.model, wider)
    with pytest.raises(InputError, match="up to 6 regions"):
        truepair.fit(truepair.load(tiny), method="infonce", dev=wider, setup=Setup(model=MODELS["saf"]), epochs=1)
