"""Several processes train as one does; the first alone writes, and what stops one stops all."""

import json
import os
import socket
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

import pytest
import torch

from tests.encoders.tiny_models import write_model
from tests.processes import Started
from tests.training.team_worker import fit, fit_held_out, perform
from tests.training.test_reading_of_run import picture_folder
from tests.training.test_resume import assert_same_run
from truepair.cli.main import main
from truepair.data.batch import Share
from truepair.engines.mlp_engine import nn as mlp_nn
from truepair.errors import InputError
from truepair.training.pair_table import read_pair_table
from truepair.training.pieces import check_pieces
from truepair.training.team import Team, outline


@pytest.fixture
def batch_norm_again():
    before = mlp_nn.BatchNorm1d
    yield
    mlp_nn.BatchNorm1d = before


def environments(size):
    """What torchrun tells each process."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    common = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port, "WORLD_SIZE": str(size), "OMP_NUM_THREADS": "1"}
    return [{**common, "RANK": str(rank), "LOCAL_RANK": str(rank)} for rank in range(size)]


def start(size, *command):
    """Processes as torchrun starts them; how each ended, and what it printed."""
    started = [
        subprocess.Popen(
            [sys.executable, "-m", *map(str, command)],
            env={**os.environ, **environment},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for environment in environments(size)
    ]
    try:
        ended = [process.communicate(timeout=240) for process in started]
    finally:
        for process in started:
            process.kill()
    return [(process.returncode, *said) for process, said in zip(started, ended, strict=True)]


def work(size, folder, *tasks):
    """The same of the processes of `team_worker`, which are forked."""
    with ExitStack() as stack:
        started = [
            stack.enter_context(
                Started(folder / f"said-{tasks[0]}-{rank}", perform, folder, *tasks, environment=environment)
            )
            for rank, environment in enumerate(environments(size))
        ]
        return [(process.wait(), process.out, process.err) for process in started]


def together(size, folder, *tasks):
    """What each of the processes says of each task, one after the other: WHAT,METHOD in the folder WHAT-METHOD."""
    ended = work(size, folder, *tasks)
    assert [code for code, _, _ in ended] == [0] * size, ended
    said = [[json.loads(line) for line in out.splitlines()] for _, out, _ in ended]
    return {task: each for task, *each in zip(tasks, *said, strict=True)}


@pytest.fixture(scope="module")
def two(tmp_path_factory):
    """The runs of two processes, and of two others, that go on from what the first ones stopped: all in one folder."""
    folder = tmp_path_factory.mktemp("two")
    trained = [f"train,{method}" for method in ("truepair", "mscn", "gsc")]
    said = together(2, folder, *trained, "held_out,uot-rcl", "held_out,truepair", "stopped,truepair")
    return folder, said | together(2, folder, "resumed,truepair", "left,mscn")


def metrics(folder):
    return [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]


def column(folder, name):
    return read_pair_table(folder / "pairs.parquet", [name])[name].to_pylist()


def test_what_processes_tell_each_other(tmp_path):
    assert together(3, tmp_path, "messages,-") == {"messages,-": ["all said"] * 3}


@pytest.mark.parametrize("method", ["truepair", "mscn", "gsc"])
def test_two_processes_train_as_one_does(tmp_path, two, batch_norm_again, method):
    folder = two[0] / f"train-{method}"
    fit(method, tmp_path / "one")
    one, other = metrics(tmp_path / "one"), metrics(folder)
    assert [line["loss"] for line in other] == pytest.approx([line["loss"] for line in one], rel=1e-4)
    assert [line["dev"]["rsum"] for line in other] == pytest.approx([line["dev"]["rsum"] for line in one], abs=12)
    assert json.loads((folder / "config.json").read_text())["processes"] == 2
    assert "processes" not in json.loads((tmp_path / "one" / "config.json").read_text())


def test_two_processes_hold_out_the_labels_that_one_does(tmp_path, two, batch_norm_again):
    folders = [tmp_path / "one", two[0] / "held_out-uot-rcl"]
    fit_held_out(folders[0], "uot-rcl")
    one, other = map(metrics, folders)
    assert one[0]["wrong_labels"] == pytest.approx(other[0]["wrong_labels"], abs=1e-5)
    assert [line["loss"] for line in other] == pytest.approx([line["loss"] for line in one], rel=1e-3)
    beliefs = [column(folder, "label_belief") for folder in folders]
    assert beliefs[0] == pytest.approx(beliefs[1], abs=1e-3) and len(set(beliefs[0])) > 10


def test_two_processes_have_the_first_labels_of_one(tmp_path, two, batch_norm_again):
    folders = [tmp_path / "one", two[0] / "held_out-truepair"]
    fit_held_out(folders[0], "truepair")
    one, other = map(metrics, folders)
    assert 0 < one[0]["first_recall"] == pytest.approx(other[0]["first_recall"], abs=1e-6)
    assert one[0]["first_share"] == pytest.approx(other[0]["first_share"], abs=1e-9)
    found = [column(folder, "memory_first_matching") for folder in folders]
    assert found[0] == pytest.approx(found[1], abs=1e-6) and min(found[0]) < max(found[0])
    assert [line["loss"] for line in other] == pytest.approx([line["loss"] for line in one], rel=1e-4)


def test_what_stops_one_stops_all_and_a_resumed_run_is_the_same(two):
    folder, said = two
    assert said["stopped,truepair"] == [4, 4]
    assert_same_run(folder / "stopped-truepair", folder / "train-truepair", texts=("metrics.jsonl", "result.json"))


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="threads have names under /proc on Linux alone")
def test_no_thread_of_the_group_outlives_the_training(two):
    """One that frees a tensor while Python ends would abort the process."""
    assert two[1]["left,mscn"] == [[True, 0]] * 2


def test_a_process_that_ends_is_missed(tmp_path):
    (code, said, _), (other, _, _) = work(2, tmp_path, "gone,-")
    assert (code, other) == (0, 3) and "another process of this training has ended" in said


@pytest.mark.filterwarnings("ignore::truepair.encoders.hf.tokens.CaptionsCut")
def test_a_pretrained_model_on_the_command_line(tmp_path, capsys):
    """Each process prepares the images of its own pieces; one process speaks."""
    model, data = write_model(tmp_path / "clip", dropout=0.3), picture_folder(tmp_path / "pictures", count=40)
    command = ["train", str(data), "--caption", "said", "--model", "pretrained", "--encoder", str(model), "--quiet"]
    command += ["--tune", "lora", "--method", "infonce", "--epochs", "2", "--score-images", "4", "--batch-size", "20"]
    command += ["--learning-rate", "0.001", "--threads", "1"]
    assert main([*command, "--piece-size", "7", "--out", str(tmp_path / "one")]) == 0
    ended = start(2, "truepair", *command, "--piece-size", "7", "--out", tmp_path / "two")
    assert [code for code, _, _ in ended] == [0, 0], ended
    assert "Run folder" in ended[0][1] and ended[1][1] == ""
    losses = [[line["loss"] for line in metrics(tmp_path / name)] for name in ("one", "two")]
    assert losses[0] == pytest.approx(losses[1], rel=1e-5)
    assert capsys.readouterr().out


@pytest.mark.parametrize(
    ("size", "batch", "piece", "fits"),
    [(1, 128, None, True), (2, 128, 64, True), (4, 128, 43, False), (4, 128, 42, True), (2, 128, None, False)],
)
def test_a_batch_has_a_piece_for_every_process(size, batch, piece, fits):
    if fits:
        Team(0, size).check(batch, piece)
        return
    with pytest.raises(InputError, match=rf"{size} processes share a batch of {batch}.*size {batch // size} or less"):
        Team(0, size).check(batch, piece)


def test_batch_norms_are_refused_with_a_remedy_that_helps():
    with pytest.raises(InputError, match="2 processes share .* train it in one process"):
        check_pieces(mlp_nn.BatchNorm1d(3).train(), 2)


def test_shares_are_all_rows_once():
    for size, of, count in ((3, 2, 20), (7, 3, 20), (5, 4, 5), (1, 2, 3)):
        shares = [Share(size, rank, of).rows(count) for rank in range(of)]
        rows = sorted(row for share in shares for part in share for row in range(count)[part])
        assert rows == list(range(count))
        assert all(part.start // size % of == rank for rank, share in enumerate(shares) for part in share)


def test_one_process_is_a_team_of_its_own(monkeypatch):
    monkeypatch.delenv("WORLD_SIZE", raising=False)
    team = Team.joined()
    assert (team.rank, team.size, team.leads) == (0, 1, True)
    assert team.told(lambda: 3) == 3 and team.any(True) and not team.any(False)
    assert team.exchanged([1, 2], torch.device("cpu")) == [1, 2]
    hollow, shapes = outline((torch.ones(2, 3), [torch.tensor([4])]))
    assert shapes == [(torch.Size([2, 3]), torch.float32)] and hollow[1][0].item() == 4
