"""What `fit` refuses, before training or in the middle of it, and what it leaves behind then."""

import errno
import json
import os
import shutil
from dataclasses import replace

import numpy as np
import pytest
import torch
from pyarrow import parquet

import truepair
from truepair.data.batch import ImageBatch, pad_words
from truepair.data.config import DataConfig
from truepair.data.open import load_splits
from truepair.data.pairs import Images, Pairs, Texts
from truepair.data.text import Vocabulary
from truepair.engines.config import GlobalConfig
from truepair.engines.global_engine import GlobalEngine
from truepair.errors import DivergedError, InputError, RunFolderError, TruepairError
from truepair.optimizers import AdamW
from truepair.training.jobs import Job, train_job
from truepair.training.setup import Setup

pytestmark = pytest.mark.usefixtures("few_drawings")

SMALL = Setup(model=GlobalConfig(width=16, word_width=8))
QUICK = {"epochs": 2, "batch_size": 16, "minimum_count": 1, "learning_rate": 5e-3}


def test_a_folder_with_anything_in_it_is_left_alone(noisy, tmp_path):
    mine = tmp_path / "thesis.txt"
    mine.write_text("mine")
    with pytest.raises(RunFolderError, match="not an empty folder"):
        truepair.fit(noisy, out=tmp_path, setup=SMALL, **QUICK)
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.txt"]


def test_features_of_another_width_in_dev_are_found_before_training(tiny, noisy, tmp_path):
    dev = truepair.load("scenes:4", "dev")
    with pytest.raises(InputError, match="56 wide.*8"):
        truepair.fit(noisy, dev=dev, out=tmp_path / "run", setup=SMALL, **QUICK)
    assert not (tmp_path / "run").exists()


def test_a_single_pair_cannot_be_trained_on(noisy, tmp_path):
    with pytest.raises(InputError, match="at least 2"):
        truepair.fit(noisy.take(np.array([0])), out=tmp_path / "run", setup=SMALL, **QUICK)


def test_unknown_options_are_named(noisy):
    with pytest.raises(InputError, match="no option 'epoch'.*epochs"):
        truepair.fit(noisy, epoch=3)
    with pytest.raises(InputError, match="resume=True needs out="):
        truepair.fit(noisy, resume=True)


def test_diverging_training_stops_with_the_remedy(noisy, tmp_path, monkeypatch):
    monkeypatch.setattr(
        "truepair.losses.info_nce", lambda similarity, temperature: similarity.diagonal() * float("nan")
    )
    with pytest.raises(DivergedError, match="learning-rate"):
        truepair.fit(noisy, method="infonce", out=tmp_path / "run", setup=SMALL, **QUICK)
    assert not (tmp_path / "run" / "result.json").exists()
    assert not (tmp_path / "run" / "model.safetensors").exists()


def test_a_disk_too_small_is_found_before_training(noisy, tmp_path, monkeypatch):
    full = shutil.disk_usage(tmp_path)._replace(free=1000)
    monkeypatch.setattr("shutil.disk_usage", lambda path: full)
    with pytest.raises(RunFolderError, match="the disk has 1.0 kB free"):
        truepair.fit(noisy, out=tmp_path / "run", setup=SMALL, **QUICK)
    assert not (tmp_path / "run").exists()


def test_a_disk_that_fills_up_leaves_the_last_checkpoint(tiny, noisy, tmp_path, monkeypatch):
    """The third checkpoint does not fit any more: a clear error, and the run resumes once there is room."""
    replace, saved = os.replace, []

    def filling(source, target):
        if str(target).endswith("checkpoint.safetensors"):
            saved.append(target)
            if len(saved) == 3:
                raise OSError(errno.ENOSPC, "No space left on device")
        replace(source, target)

    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", filling)
        with pytest.raises(TruepairError, match="No space left.*free space"):
            truepair.fit(noisy, method="infonce", out=tmp_path / "run", setup=SMALL, **{**QUICK, "epochs": 4})
    assert not list((tmp_path / "run").rglob("*.tmp"))
    resumed = truepair.fit(
        noisy, method="infonce", out=tmp_path / "run", setup=SMALL, resume=True, **{**QUICK, "epochs": 4}
    )
    whole = truepair.fit(noisy, method="infonce", out=tmp_path / "whole", setup=SMALL, **{**QUICK, "epochs": 4})
    assert (resumed.path / "metrics.jsonl").read_bytes() == (whole.path / "metrics.jsonl").read_bytes()


@pytest.mark.parametrize("name", ["state/checkpoint.safetensors", "config.json"])
def test_a_damaged_run_is_refused(noisy, tmp_path, name):
    out = tmp_path / "run"
    truepair.fit(noisy, method="infonce", out=out, setup=SMALL, **QUICK)
    (out / "result.json").unlink()
    (out / name).write_bytes((out / name).read_bytes()[:20])
    with pytest.raises(RunFolderError, match=name.split("/")[-1]):
        truepair.fit(noisy, method="infonce", out=out, setup=SMALL, resume=True, **QUICK)


def test_a_checkpoint_of_another_network_is_refused(noisy, tmp_path):
    for name, width in (("a", 16), ("b", 8)):
        setup = Setup(model=GlobalConfig(width=width, word_width=8))
        truepair.fit(noisy, method="infonce", out=tmp_path / name, setup=setup, **QUICK)
    (tmp_path / "a" / "result.json").unlink()
    shutil.copy(tmp_path / "b" / "state" / "checkpoint.safetensors", tmp_path / "a" / "state")
    with pytest.raises(RunFolderError, match="another configuration"):
        truepair.fit(noisy, method="infonce", out=tmp_path / "a", setup=SMALL, resume=True, **QUICK)


def test_config_is_complete_json(noisy, tmp_path):
    run = truepair.fit(noisy, method="crcl", out=tmp_path / "run", setup=SMALL, **QUICK)
    config = json.loads((run.path / "config.json").read_text())
    assert config["method"]["options"]["momentum"] == 0.8
    assert config["training"]["learning_rate"] == 5e-3
    assert config["model"]["width"] == 16
    assert not [path for path in run.path.rglob("*") if path.suffix in (".pkl", ".pt", ".pth")]


def test_training_that_really_diverges_stops_with_the_remedy(noisy, tmp_path):
    with pytest.raises(DivergedError, match="diverged in epoch 1.*--learning-rate.*1e\\+30"):
        truepair.fit(noisy, method="infonce", out=tmp_path / "run", setup=SMALL, **{**QUICK, "learning_rate": 1e30})
    assert not (tmp_path / "run" / "model.safetensors").exists()


def test_an_infinite_gradient_never_reaches_the_parameters(noisy, tmp_path, monkeypatch):
    """The loss itself is finite; clipping alone would turn every parameter into NaN."""

    class Steep(torch.autograd.Function):
        @staticmethod
        def forward(ctx, values):
            return values.clone()

        @staticmethod
        def backward(ctx, gradient):
            return gradient * float("inf")

    info_nce = truepair.losses.info_nce
    monkeypatch.setattr(
        "truepair.losses.info_nce", lambda s, temperature: Steep.apply(info_nce(s, temperature=temperature))
    )
    for clip in (2.0, 0.0):
        with pytest.raises(DivergedError, match="gradient norm"):
            truepair.fit(noisy, method="infonce", out=tmp_path / str(clip), setup=SMALL, clip=clip, **QUICK)


def test_a_checkpoint_of_another_run_of_the_same_shapes_is_refused(noisy, tmp_path):
    for name, seed in (("a", 1), ("b", 2)):
        truepair.fit(noisy, method="infonce", out=tmp_path / name, setup=SMALL, seed=seed, **QUICK)
    (tmp_path / "a" / "result.json").unlink()
    shutil.copy(tmp_path / "b" / "state" / "checkpoint.safetensors", tmp_path / "a" / "state")
    with pytest.raises(RunFolderError, match="another configuration"):
        truepair.fit(noisy, method="infonce", out=tmp_path / "a", setup=SMALL, resume=True, seed=1, **QUICK)


def test_resuming_with_another_dev_split_is_refused(tiny, noisy, tmp_path):
    dev, test = truepair.load(tiny, "dev"), truepair.load(tiny, "test")
    truepair.fit(noisy, method="infonce", dev=dev, out=tmp_path / "run", setup=SMALL, **QUICK)
    with pytest.raises(RunFolderError, match=r"pairs\.dev"):
        truepair.fit(noisy, method="infonce", dev=test, out=tmp_path / "run", setup=SMALL, resume=True, **QUICK)


def test_a_model_refuses_another_vocabulary(noisy, tmp_path):
    run = truepair.fit(noisy, method="infonce", out=tmp_path / "run", setup=SMALL, **QUICK)
    words = list(run.model.preparation.vocabulary.words)
    words[-1], words[-2] = words[-2], words[-1]
    (run.path / "vocabulary.json").unlink()
    Vocabulary(tuple(words)).write(run.path / "vocabulary.json")
    with pytest.raises(InputError, match="another vocabulary"):
        _ = run.model


def test_without_noise_no_truth_is_made_up(tiny, tmp_path):
    """Nobody knows which pairs of a crawled folder match: the result must not say that all do."""
    setup = SMALL.with_training(QUICK)
    run = train_job(Job(DataConfig(str(tiny)), "infonce", setup=setup), tmp_path / "run")
    assert run.result["mismatch_rate"] is None
    assert run.result["detection"] is None
    assert "mismatched" not in parquet.read_table(run.path / "pairs.parquet").column_names
    with pytest.raises(InputError, match="which pairs match is unknown"):
        train_job(Job(DataConfig(str(tiny), oracle=True), "infonce", setup=setup), tmp_path / "oracle")


def test_a_split_with_one_file_missing_is_not_silently_dropped(tiny, tmp_path):
    folder = shutil.copytree(tiny, tmp_path / "data")
    (folder / "dev_caps.txt").unlink()
    with pytest.raises(InputError, match="dev_caps.txt: the file is missing"):
        load_splits(DataConfig(str(folder)), seed=0)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_features_made_in_python_are_checked_before_training(noisy, tmp_path, bad):
    features = np.array(noisy.images.features)
    features[7, 1, 2] = bad
    images = Images(features, noisy.images.ids)
    with pytest.raises(InputError, match="image 7"):
        truepair.fit(replace(noisy, images=images), out=tmp_path / "run", setup=SMALL, **QUICK)
    assert not (tmp_path / "run").exists()


def test_no_batch_ever_holds_a_single_pair(noisy, tmp_path):
    """Five vectors in batches of two: batch normalisation cannot do with one."""
    with pytest.raises(InputError, match="batch_size is 1"):
        truepair.fit(noisy, **{**QUICK, "batch_size": 1})
    rng = np.random.default_rng(0)
    names = tuple(map(str, range(5)))
    pairs = Pairs(
        Images(rng.normal(size=(5, 8)).astype(np.float32), names),
        Texts(("a b",) * 5, names),
        np.arange(5),
        np.arange(5),
    )
    truepair.fit(pairs, method="infonce", out=tmp_path / "run", setup=SMALL, **{**QUICK, "batch_size": 2})


def test_similarity_is_full_precision_under_mixed_precision():
    engine = GlobalEngine(4, 8, GlobalConfig(width=8, word_width=4))
    with torch.autocast("cpu", torch.bfloat16):
        images = engine.encode_images(ImageBatch(torch.randn(3, 2, 4), torch.tensor([2, 2, 2])))
        texts = engine.encode_texts(pad_words([[1, 5, 2], [1, 6, 2]]))
        assert engine.similarity(images, texts).dtype == torch.float32


def test_callers_random_state_is_left_alone(noisy, tmp_path):
    torch.manual_seed(0)
    before = torch.get_rng_state()
    truepair.fit(noisy, method="infonce", out=tmp_path / "run", setup=SMALL, **QUICK)
    assert torch.equal(torch.get_rng_state(), before)


def test_a_last_step_that_diverges_is_found_when_dev_is_scored(tiny, noisy, tmp_path, monkeypatch):
    step, done = AdamW.step, []

    def breaking(self, closure=None):
        step(self, closure)
        done.append(1)
        if len(done) == batches:
            for group in self.param_groups:
                for weight in group["params"]:
                    weight.data.fill_(float("nan"))

    batches = -(-len(noisy) // QUICK["batch_size"])
    monkeypatch.setattr(AdamW, "step", breaking)
    with pytest.raises(DivergedError, match="diverged in epoch 1.*NaN.*--learning-rate"):
        truepair.fit(
            noisy, method="infonce", dev=truepair.load(tiny, "dev"), out=tmp_path / "run", setup=SMALL, **QUICK
        )
    assert not (tmp_path / "run" / "model.safetensors").exists()
