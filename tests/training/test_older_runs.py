"""Runs that an older version began or finished: they go on, or are refused with a sentence."""

import json

import pytest
import torch
from safetensors.torch import save_file

import truepair
from tests.methods.labelled import labelled_pairs
from tests.training.test_resume import Stop, assert_same_run
from truepair.engines.config import GlobalConfig, MLPConfig
from truepair.errors import InputError, RunFolderError
from truepair.files import read_tensors
from truepair.training import loop
from truepair.training.setup import Setup


def fit_disncl(tiny, out, **more):
    options = {"warm_up_epochs": 2, "subspace_width": 8, "hidden_width": 8, "least_clean": 0.0}
    return truepair.fit(
        truepair.load(tiny),
        method=truepair.build_method("disncl", options),
        out=out,
        setup=Setup(model=GlobalConfig(width=16, word_width=8)),
        **{"epochs": 4, "batch_size": 8, "learning_rate": 1e-2, "minimum_count": 1, **more},
    )


def fit_ce(tiny, out, **more):
    setup = Setup(model=MLPConfig(width=8, hidden_width=12))
    return truepair.fit(labelled_pairs(40), method="ce", out=out, setup=setup, epochs=3, batch_size=8, **more)


@pytest.mark.parametrize("fit", [fit_disncl, fit_ce])
def test_a_checkpoint_whose_auxiliary_networks_have_their_first_name_goes_on(tiny, tmp_path, monkeypatch, fit):
    expected = fit(tiny, tmp_path / "whole")
    train_batch, done = loop.Training._train_batch, []

    def dying(self, *arguments):
        done.append(1)
        if (self.method.name == "disncl" and len(done) > 40) or (self.method.name == "ce" and len(done) > 12):
            raise Stop
        return train_batch(self, *arguments)

    with monkeypatch.context() as patch:
        patch.setattr(loop.Training, "_train_batch", dying)
        with pytest.raises(Stop):
            fit(tiny, tmp_path / "run")
    checkpoint = tmp_path / "run" / "state" / "checkpoint.safetensors"
    tensors, described = read_tensors(checkpoint, "a checkpoint")
    tensors = {name.replace("auxiliary/", "companion/"): tensor for name, tensor in tensors.items()}
    assert any(name.startswith("companion/") for name in tensors)
    as_then = {name: value if name == "run" else json.dumps(value) for name, value in described.items()}
    save_file(tensors, checkpoint, as_then)
    assert_same_run(fit(tiny, tmp_path / "run", resume=True).path, expected.path)


def test_a_model_of_before_preparations_is_read_and_one_of_the_first_version_refused(tiny, tmp_path):
    run = fit_ce(tiny, tmp_path / "run")
    expected = run.model.similarity(labelled_pairs(20))
    tensors, described = read_tensors(run.folder.model, "a model")
    sizes = {name: value for name, value in described["preparation"].items() if name != "words"}
    older = {
        "words": described["preparation"]["words"],
        "sizes": sizes | described["needs"],
        "model": described["model"],
    }
    save_file(tensors, run.folder.model, {"truepair": json.dumps(older)})
    assert torch.equal(run.model.similarity(labelled_pairs(20)), expected)
    first = {"words": older["words"], "feature_width": 6, "width": 8, "word_width": 8, "pooling": "gpo"}
    save_file(tensors, run.folder.model, {"truepair": json.dumps(first)})
    with pytest.raises(InputError, match="first version, which is not read any more"):
        _ = run.model


def test_a_run_begun_before_there_was_an_option_is_refused_with_its_name(tiny, tmp_path):
    run = fit_ce(tiny, tmp_path / "run")
    config = run.folder.read_config()
    del config["training"]["decay_factor"]
    run.folder.config.write_text(json.dumps(config))
    with pytest.raises(RunFolderError, match=r"begun by a version of truepair without training\.decay_factor"):
        fit_ce(tiny, tmp_path / "run", resume=True)
