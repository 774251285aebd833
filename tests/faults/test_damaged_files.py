"""A damaged file of a run or an audit gives one clear line, never a traceback and never a silent use of it."""

import json
import os
import shutil

import pytest
import torch
from safetensors.torch import load_file, save_file

import truepair
from tests.faults.damage import OPTIONS, flip, train
from truepair.cli.main import main
from truepair.training import loop


def flip_weights(path):
    """One bit of a number, wherever the header ends."""
    flip(path, 0.9)


@pytest.mark.parametrize("place", [0.001, 0.02, 0.3, 0.9])
def test_flipped_bits_of_a_model_are_noticed(tiny, run, refused, place):
    flip(run / "model.safetensors", place)
    for command in (["evaluate", run, tiny], ["audit", tiny, "--run", run, "--out", run.parent / "audit"]):
        assert "model.safetensors" in refused(*command)


@pytest.fixture
def stopped(tiny, tmp_path, monkeypatch):
    """A run cut off after its first epoch."""

    class Stop(BaseException):
        pass

    train_batch, done = loop.Training._train_batch, []

    def dying(self, *arguments):
        done.append(1)
        if len(done) == 8:
            raise Stop
        return train_batch(self, *arguments)

    with monkeypatch.context() as patch:
        patch.setattr(loop.Training, "_train_batch", dying)
        with pytest.raises(Stop):
            train(tiny, tmp_path / "cut")
    return tmp_path / "cut"


@pytest.mark.parametrize("place", [0.001, 0.05, 0.3, 0.6, 0.9])
def test_flipped_bits_of_a_checkpoint_are_noticed(stopped, refused, place):
    flip(stopped / "state" / "checkpoint.safetensors", place)
    assert "checkpoint.safetensors" in refused("train", "--resume", stopped)


def test_whole_numbers_in_place_of_weights_are_noticed(tiny, run, refused):
    """Even without a digest, as an older version wrote it."""
    path = run / "model.safetensors"
    tensors = load_file(path)
    described = truepair_note(path)
    name = next(name for name, tensor in tensors.items() if tensor.is_floating_point())
    del described["sha256"]
    note = {"truepair": json.dumps(described)}
    save_file(tensors, path, metadata=note)
    assert main(["evaluate", str(run), str(tiny)]) == 0, "a model of an older version opens"
    save_file({**tensors, name: tensors[name].to(torch.int32)}, path, metadata=note)
    assert f"{name} is int32" in refused("evaluate", run, tiny)


def truepair_note(path):
    from safetensors import safe_open

    with safe_open(path, framework="pt") as file:
        return json.loads(file.metadata()["truepair"])


def test_a_checkpoint_without_a_digest_is_taken_up(stopped, tiny, trained):
    """As older versions wrote it: three strings beside the tensors."""
    path = stopped / "state" / "checkpoint.safetensors"
    described = truepair_note(path)
    metadata = {name: json.dumps(described[name]) for name in ("cursor", "param_groups")}
    save_file(load_file(path), path, metadata={"run": described["run"], **metadata})
    assert main(["train", "--resume", str(stopped)]) == 0
    assert (stopped / "metrics.jsonl").read_bytes() == (trained / "metrics.jsonl").read_bytes()


def test_a_log_that_is_not_utf8_is_in_nobodys_way(stopped):
    with (stopped / "timings.jsonl").open("ab") as file:
        file.write(b"\xff\xfe\n")
    assert main(["train", "--resume", str(stopped)]) == 0


def test_a_folder_as_model_and_a_missing_one(tiny, run, refused):
    (run / "model.safetensors").unlink()
    assert "model.safetensors cannot be read (No such file" in refused("evaluate", run, tiny)
    (run / "model.safetensors").mkdir()
    assert "model.safetensors cannot be read (Is a directory)" in refused("evaluate", run, tiny)


NO_OBJECTS = [b"", b"null", b"[1, 2]", b'"text"', b"{", b"\xff\xfe{}", b"[" * 100_000, b'{"dev": NaN}', b"{}"]


@pytest.mark.parametrize("content", NO_OBJECTS, ids=lambda content: content[:8])
def test_damaged_results(tiny, run, refused, content):
    (run / "result.json").write_bytes(content)
    for command in (["evaluate", run, tiny], ["audit", tiny, "--run", run, "--out", run.parent / "audit"]):
        assert "result.json" in refused(*command)


@pytest.mark.parametrize("content", NO_OBJECTS, ids=lambda content: content[:8])
def test_damaged_configurations(tiny, run, refused, content):
    (run / "config.json").write_bytes(content)
    (run / "result.json").unlink()
    assert str(run) in refused("train", "--resume", run)
    for command in ("evaluate", "report"):
        if content != b"{}":  # which says nothing, and nothing wrong
            assert "config.json" in refused(command, run, *([tiny] if command == "evaluate" else []))


def test_a_folder_as_configuration(run, refused):
    (run / "config.json").unlink()
    (run / "config.json").mkdir()
    assert "config.json cannot be read (Is a directory)" in refused("train", "--resume", run)


@pytest.mark.parametrize(
    ("part", "option", "value", "told"),
    [
        ("training", "epochs", "ten", "epochs is 'ten'"),
        ("training", "epochs", 2.5, "epochs is 2.5"),
        ("training", "seed", None, "seed is None"),
        ("training", "learning_rate", True, "learning_rate is True"),
        ("training", "batch_size", 10**30, "batch_size is 1000"),
        ("training", "unheard_of", 1, "'unheard_of'"),
        ("training", None, [], "training is no object"),
        ("model", "width", 1e9, "width is 1000000000.0"),
        ("model", "width", 10**9, "GB of memory"),
        ("model", "name", ["global"], "expected one of"),
        ("model", "name", "glob", "expected one of"),
        ("method", "options", [1], "expected an object"),
        ("method", "name", {}, "expected one of"),
        ("data", "source", 5, "source is 5"),
        ("data", "source", None, "source is None"),
        ("data", "source", "a\0b", "a\\x00b"),
        ("augmentation", "word_share", "0.2", "word_share is '0.2'"),
        (None, "threads", "two", "threads is 'two'"),
        (None, "threads", -1, "threads is -1"),
    ],
)
def test_values_of_the_wrong_type(stopped, refused, part, option, value, told):
    config = json.loads((stopped / "config.json").read_text())
    if option is None:
        config[part] = value
    else:
        (config if part is None else config[part])[option] = value
    (stopped / "config.json").write_text(json.dumps(config))
    assert told in refused("train", "--resume", stopped)


@pytest.mark.parametrize("damage", ["missing", "cut", "flipped", "text", "folder", "pipe"])
def test_a_damaged_table_of_pairs(tiny, run, refused, damage):
    path = run / "pairs.parquet"
    if damage == "cut":
        path.write_bytes(path.read_bytes()[:-100])
    elif damage == "flipped":
        flip(path, 0.01)
    else:
        path.unlink()
        if damage == "text":
            path.write_text("pair_id,p_match\n")
        if damage == "folder":
            path.mkdir()
        if damage == "pipe":
            os.mkfifo(path)
    assert "pairs.parquet" in refused("audit", tiny, "--run", run, "--out", run.parent / "audit")


@pytest.mark.parametrize("content", NO_OBJECTS[:-1], ids=lambda content: content[:8])
def test_a_damaged_mark_of_an_audit(tiny, tmp_path, refused, content):
    work = tmp_path / "audit" / "work"
    work.mkdir(parents=True)
    (work / "audit.json").write_bytes(content)
    assert "audit.json" in refused("audit", tiny, "--out", work.parent, "--epochs", 1)


def test_damaged_scores_of_an_audit_are_made_again_once_deleted(tiny, trained, tmp_path, refused):
    sgr = tmp_path / "run"
    assert train(tiny, sgr, "--epochs", "1", "--model", "sgr", "--similarity-width", "4") == 0
    out = tmp_path / "audit"
    command = ["audit", str(tiny), "--run", str(sgr), "--out", str(out), "--bank", "8", "--quiet"]
    assert main(command) == 0
    expected = (out / "pairs.parquet").read_bytes()
    given = out / "work" / "run" / "given.safetensors"
    flip(given)
    assert "given.safetensors cannot be read (its bytes are not those that were written" in refused(*command)
    given.unlink()
    assert main(command) == 0
    assert (out / "pairs.parquet").read_bytes() == expected


@pytest.mark.parametrize(
    ("option", "told"),
    [
        ("--learning-rate=inf", "is not a finite number"),
        ("--weight-decay=inf", "is not a finite number"),
        ("--clip=nan", "is not a finite number"),
        ("--epochs=99999999999999999999", "within 64 bits"),
        ("--width=1000000000", "GB of memory"),
    ],
)
def test_options_beyond_all_bounds(tiny, tmp_path, refused, option, told):
    assert told in refused("train", tiny, "--out", tmp_path / "run", *OPTIONS, option)
    assert not (tmp_path / "run").exists()


def test_infinite_options_in_python(tiny):
    with pytest.raises(truepair.InputError, match="weight_decay is inf"):
        truepair.fit(truepair.load(tiny), weight_decay=float("inf"))


def test_a_name_of_5000_characters(tmp_path, refused):
    name = "x" * 5000
    for command in (["describe"], ["train", "--out", tmp_path / "run"], ["audit", "--out", tmp_path / "audit"]):
        told = refused(*command, name)
        assert "File name too long" in told and len(told) < 1000
    assert "File name too long" in refused("train", "scenes", "--out", tmp_path / name)


def test_a_disk_without_room_names_both_numbers(tiny, tmp_path, refused, monkeypatch):
    full = shutil.disk_usage(tmp_path)._replace(free=1000)
    monkeypatch.setattr("shutil.disk_usage", lambda path: full)
    told = refused("train", tiny, "--out", tmp_path / "run", *OPTIONS)
    assert "kB, and the disk has 1.0 kB free" in told
