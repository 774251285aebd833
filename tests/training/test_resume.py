"""An interrupted and resumed run ends bit for bit as one that was never interrupted."""

import os
import signal
import time
from contextlib import contextmanager
from pathlib import Path

import pytest
import torch
from pyarrow import parquet
from safetensors.torch import load_file

import truepair
from tests.processes import truepair_command
from truepair.cli.main import main
from truepair.data.given.known_pairs import with_known_pairs
from truepair.engines.config import GlobalConfig
from truepair.errors import RunFolderError
from truepair.training import loop
from truepair.training.setup import Setup

SMALL = Setup(model=GlobalConfig(width=16, word_width=8))
OPTIONS = {"epochs": 3, "seed": 5, "batch_size": 16, "minimum_count": 1}


def splits(tiny):
    noisy = truepair.inject_noise(truepair.load(tiny), 0.4, seed=1)
    return noisy, truepair.load(tiny, "dev"), truepair.load(tiny, "test")


def method():
    return truepair.build_method("crcl", {"pieces": (3,)})


def fit(tiny, out, **more):
    train, dev, test = splits(tiny)
    return truepair.fit(train, method=method(), dev=dev, test=test, out=out, setup=SMALL, **{**OPTIONS, **more})


@pytest.fixture(scope="module")
def reference(tiny, tmp_path_factory):
    return fit(tiny, tmp_path_factory.mktemp("reference") / "run")


def assert_same_run(found: Path, expected: Path, texts=("metrics.jsonl", "result.json", "vocabulary.json")):
    """Parameters, optimizer, labels, metrics, beliefs and figures are equal, byte for byte where they are text."""
    for name in texts:
        assert (found / name).read_bytes() == (expected / name).read_bytes(), name
    for name in ("model.safetensors", "state/checkpoint.safetensors"):
        ours, theirs = load_file(found / name), load_file(expected / name)
        assert ours.keys() == theirs.keys()
        for key, tensor in theirs.items():
            assert torch.equal(ours[key], tensor), (name, key)
    assert parquet.read_table(found / "pairs.parquet").equals(parquet.read_table(expected / "pairs.parquet"))


class Stop(Exception):
    """Stands for whatever ends a process without warning."""


@contextmanager
def stopped_after(monkeypatch, batches, *, saved=False):
    """What trains inside dies after so many batches, without any chance to save, or (`saved`) with a checkpoint."""
    train_batch, done = loop.Training._train_batch, []

    def dying(self, state, position, batch):
        if len(done) == batches:
            if saved:
                state.save(self.folder.checkpoint)
            raise Stop
        done.append(1)
        return train_batch(self, state, position, batch)

    with monkeypatch.context() as patch:
        patch.setattr(loop.Training, "_train_batch", dying)
        with pytest.raises(Stop):
            yield


@pytest.mark.parametrize("batches", [1, 4, 6, 13, 19, 30, 35])
def test_run_cut_off_after_any_batch_resumes_exactly(tiny, tmp_path, reference, monkeypatch, batches):
    """Cut off without any chance to save, in the first epoch, at its end, in the second piece, near the end."""
    with stopped_after(monkeypatch, batches):
        fit(tiny, tmp_path / "run")
    resumed = fit(tiny, tmp_path / "run", resume=True)
    assert_same_run(resumed.path, reference.path)


@pytest.mark.parametrize("batches", [6, 7, 17, 18])
def test_networks_that_train_in_turn_resume_exactly(tiny, tmp_path, monkeypatch, batches):
    """Two passes over the pairs an epoch; stopped at the end of a pass and within one."""
    train, dev, _ = splits(tiny)

    def fit_in_turn(out, **more):
        gsc = truepair.build_method("gsc", {"co_train": True, "exchange": "in_turn"})
        return truepair.fit(train, method=gsc, dev=dev, out=out, setup=SMALL, **{**OPTIONS, "epochs": 2}, **more)

    train_batch, done = loop.Training._train_batch, []

    def interrupting(self, *arguments):
        done.append(1)
        if len(done) == batches:
            os.kill(os.getpid(), signal.SIGINT)
        return train_batch(self, *arguments)

    whole = fit_in_turn(tmp_path / "whole")
    with monkeypatch.context() as patch:
        patch.setattr(loop.Training, "_train_batch", interrupting)
        with pytest.raises(KeyboardInterrupt):
            fit_in_turn(tmp_path / "run")
    assert_same_run(fit_in_turn(tmp_path / "run", resume=True).path, whole.path)


@pytest.mark.parametrize("batches", [5, 6, 7, 11])
def test_a_stage_that_goes_on_with_the_networks_of_the_last_one_resumes_exactly(tiny, tmp_path, monkeypatch, batches):
    """Six batches an epoch; the optimizer starts afresh after the first."""
    train, dev, _ = splits(tiny)
    known = with_known_pairs(train, "30", seed=0)
    options = {"paired": "known", "mining_from": 0.5, "mine_once": True, "restart": True}

    def fit_restarting(out, **more):
        rcsl = truepair.build_method("rcsl", options)
        return truepair.fit(known, method=rcsl, dev=dev, out=out, setup=SMALL, **{**OPTIONS, "epochs": 2}, **more)

    whole = fit_restarting(tmp_path / "whole")
    with stopped_after(monkeypatch, batches, saved=batches % 2 == 1):
        fit_restarting(tmp_path / "run")
    assert_same_run(fit_restarting(tmp_path / "run", resume=True).path, whole.path)


@pytest.mark.parametrize("batches", [1, 8, 20])
def test_ctrl_c_saves_in_mid_epoch_and_resumes_exactly(tiny, tmp_path, reference, monkeypatch, batches):
    train_batch, done = loop.Training._train_batch, []

    def interrupting(self, *arguments):
        done.append(1)
        if len(done) == batches:
            os.kill(os.getpid(), signal.SIGINT)
        return train_batch(self, *arguments)

    with monkeypatch.context() as patch:
        patch.setattr(loop.Training, "_train_batch", interrupting)
        with pytest.raises(KeyboardInterrupt):
            fit(tiny, tmp_path / "run")
    assert len(done) == batches  # the batch at which Ctrl-C came was finished, no other begun
    with monkeypatch.context() as patch:
        again = []
        patch.setattr(loop.Training, "_train_batch", lambda self, *a: again.append(1) or train_batch(self, *a))
        resumed = fit(tiny, tmp_path / "run", resume=True)
    assert len(again) == 36 - batches  # 6 epochs of 6 batches: nothing is trained twice
    assert_same_run(resumed.path, reference.path)


def test_checkpoints_within_an_epoch_change_nothing(tiny, tmp_path, reference):
    """Saving after every batch gives the same run; the option is free to differ between start and resume."""
    run = fit(tiny, tmp_path / "run", checkpoint_minutes=0.0)
    assert_same_run(run.path, reference.path)


def test_worker_processes_change_nothing(tiny, tmp_path, reference):
    assert_same_run(fit(tiny, tmp_path / "run", workers=2).path, reference.path)


def test_resuming_a_finished_run_returns_it(tiny, reference):
    before = {path: path.read_bytes() for path in reference.path.rglob("*") if path.is_file()}
    assert fit(tiny, reference.path, resume=True).result == reference.result
    assert before == {path: path.read_bytes() for path in reference.path.rglob("*") if path.is_file()}


@pytest.mark.parametrize("change", [{"epochs": 4}, {"seed": 6}, {"learning_rate": 1e-3}])
def test_resuming_with_another_configuration_is_refused(tiny, reference, change):
    with pytest.raises(RunFolderError, match=next(iter(change))):
        fit(tiny, reference.path, resume=True, **change)


def test_resuming_with_other_pairs_is_refused(tiny, reference):
    _, dev, test = splits(tiny)
    with pytest.raises(RunFolderError, match="fingerprint"):
        truepair.fit(
            truepair.load(tiny),
            method=method(),
            dev=dev,
            test=test,
            out=reference.path,
            setup=SMALL,
            resume=True,
            **OPTIONS,
        )


def test_killed_process_resumes_exactly_on_the_command_line(tiny, tmp_path):
    """SIGKILL in mid-epoch, twice; the resumed run equals an uninterrupted one."""
    options = [
        "--method",
        "crcl",
        "--crcl-pieces",
        "3",
        "--noise",
        "0.4",
        "--epochs",
        "9",
        "--seed",
        "2",
        "--width",
        "16",
    ]
    options += ["--batch-size", "8", "--minimum-count", "1", "--threads", "1", "--checkpoint-minutes", "0.001"]
    start = ["train", str(tiny), *options, "--out"]
    assert main([*start, str(tmp_path / "whole"), "--quiet"]) == 0

    cut = tmp_path / "cut"
    commands = [[*start, str(cut)], ["train", "--resume", str(cut)]]
    for command, epochs in zip(commands, (2, 5), strict=True):
        with truepair_command(tmp_path / f"said-{epochs}", *command) as process:
            wait_for_epochs(cut / "metrics.jsonl", epochs, process)
            process.kill()
            assert process.wait() == -signal.SIGKILL
    assert not (cut / "result.json").exists(), "the run was over before it was killed; make it longer"
    assert main(commands[1]) == 0
    assert_same_run(cut, tmp_path / "whole")


def wait_for_epochs(metrics: Path, epochs: int, process):
    deadline = time.monotonic() + 120
    while not metrics.exists() or len(metrics.read_text().splitlines()) < epochs:
        assert process.poll() is None, "the process ended by itself"
        assert time.monotonic() < deadline
        time.sleep(0.005)


def test_run_killed_before_its_first_checkpoint_can_be_resumed(tiny, tmp_path, reference, monkeypatch):
    """Nothing but `config.json` was written."""
    with monkeypatch.context() as patch:
        patch.setattr("truepair.training.fit.Assembly.train", lambda self: (_ for _ in ()).throw(Stop))
        with pytest.raises(Stop):
            fit(tiny, tmp_path / "run")
    (tmp_path / "run" / "vocabulary.json").unlink()
    assert [path.name for path in (tmp_path / "run").iterdir()] == ["config.json"]
    assert_same_run(fit(tiny, tmp_path / "run", resume=True).path, reference.path)
