"""An audit killed without warning goes on with the same command, and ends with the same bytes."""

import os
import signal
import time

import pytest

from tests.audit.small_audits import FILES, rows_of
from tests.processes import Started, truepair_command
from truepair.audit.scoring import scoring_folder
from truepair.cli.main import main
from truepair.training import loop

OPTIONS = ["--epochs", "8", "--width", "16", "--folds", "2", "--bank", "32", "--batch-size", "8", "--threads", "1"]


def command(data, out):
    return ["audit", str(data), "--out", str(out), "--noise", "0.4", *OPTIONS]


def dying(command):
    """`truepair`, killed when a fold is scored and the scores are about to be written."""
    scoring_folder.write_bytes_atomically = lambda *_: os.kill(os.getpid(), signal.SIGKILL)
    return main(command)


def kill_after_epochs(process, metrics, epochs):
    deadline = time.monotonic() + 120
    while not metrics.exists() or len(metrics.read_text().splitlines()) < epochs:
        assert process.poll() is None, "the audit ended by itself"
        assert time.monotonic() < deadline
        time.sleep(0.005)
    process.kill()
    assert process.wait() == -signal.SIGKILL


def test_killed_in_training_and_in_scoring_it_ends_with_the_same_bytes(tiny, tmp_path, capsys):
    whole, cut = tmp_path / "whole", tmp_path / "cut"
    assert main(command(tiny, whole)) == 0
    told = capsys.readouterr().err.splitlines()
    for fold in (1, 2):
        epochs = [line for line in told if line.startswith(f"model {fold} of 2, epoch ")]
        assert len(epochs) == 14 and all(line.endswith(" left") for line in epochs), "no terminal: a line an epoch"
    assert {"score", "training model 2 of 2", "verdict", "rematch", "duplicates", "writing report.html"} <= set(told)
    fold = cut / "work" / "crossfit" / "fold0"
    with truepair_command(tmp_path / "first", *command(tiny, cut)) as process:
        kill_after_epochs(process, fold / "metrics.jsonl", 2)
    assert not (fold / "result.json").exists(), "the model was trained before the kill; make it longer"
    with Started(tmp_path / "second", dying, command(tiny, cut)) as killed:
        assert killed.wait() == -signal.SIGKILL, killed.err
        assert "model 1 of 2, epoch 14 of 14; training: about" in killed.err
    assert (fold / "result.json").exists() and not fold.with_suffix(".safetensors").exists()
    trained = (fold / "model.safetensors").stat().st_mtime_ns
    assert main(command(tiny, cut)) == 0
    assert (fold / "model.safetensors").stat().st_mtime_ns == trained, "a finished model was trained again"
    assert {path.name for path in cut.iterdir()} == {*FILES, "work"}
    for name in ("pairs.parquet", "problems.parquet", "duplicates.parquet"):
        assert (cut / name).read_bytes() == (whole / name).read_bytes(), name
    assert len(rows_of(cut)) == 96


def test_ctrl_c_in_training_says_how_to_go_on(tiny, tmp_path, monkeypatch, capsys):
    train_batch, done = loop.Training._train_batch, []

    def interrupting(self, *arguments):
        done.append(1)
        if len(done) == 30:
            os.kill(os.getpid(), signal.SIGINT)
        return train_batch(self, *arguments)

    monkeypatch.setattr(loop.Training, "_train_batch", interrupting)
    assert main(command(tiny, tmp_path / "out")) == 130
    assert "Nothing is lost. The same command goes on where it stopped." in capsys.readouterr().err
    assert len(done) == 30
    assert not (tmp_path / "out" / "summary.json").exists()


def test_killed_while_a_local_engine_compares(tiny, tmp_path, monkeypatch):
    """What was compared before is in files; that it is not compared again is in test_by_run."""
    import truepair
    from truepair.audit import AuditOptions
    from truepair.audit.scoring import cross_attention_space
    from truepair.engines.config import SAFConfig
    from truepair.training.setup import Setup

    class Killed(BaseException):
        """Stands for whatever ends a process without warning."""

    monkeypatch.setattr(cross_attention_space, "AT_ONCE", 16)
    setup = Setup(model=SAFConfig(width=16, word_width=8, similarity_width=8))
    options = {"epochs": 1, "batch_size": 16, "minimum_count": 1, "progress": False}
    pairs = truepair.load(tiny)
    run = truepair.fit(pairs, method="infonce", setup=setup, out=tmp_path / "run", **options).path
    test = truepair.load(tiny, "test")

    def audit(out):
        return truepair.audit(test, out, run=run, options=AuditOptions(bank=8), progress=False)

    audit(tmp_path / "whole")
    written, write = [], scoring_folder.write_bytes_atomically

    def dying(path, data):
        written.append(path)
        if len(written) == 2:
            raise Killed
        write(path, data)

    with monkeypatch.context() as patch:
        patch.setattr(scoring_folder, "write_bytes_atomically", dying)
        with pytest.raises(Killed):
            audit(tmp_path / "cut")
    assert len(list((tmp_path / "cut" / "work" / "run").iterdir())) == 1
    audit(tmp_path / "cut")
    assert (tmp_path / "cut" / "pairs.parquet").read_bytes() == (tmp_path / "whole" / "pairs.parquet").read_bytes()
