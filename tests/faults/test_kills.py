"""A process killed at any moment leaves a folder that its command, or --resume, goes on with."""

import json

import pytest

from tests.faults.damage import OPTIONS, killed, temporary_files, train
from truepair.cli.main import main

MOMENTS = [
    ("before", "config.json"),
    ("after", "config.json"),
    ("before", "vocabulary.json"),
    ("before", "model.safetensors"),
    ("before", "checkpoint.safetensors"),
    ("after", "checkpoint.safetensors"),
    ("before", "pairs.parquet"),
    ("before", "result.json"),
]


@pytest.mark.parametrize(("moment", "name"), MOMENTS)
def test_a_killed_run_goes_on_and_leaves_no_temporary_file(tiny, trained, tmp_path, capsys, moment, name):
    out = tmp_path / "run"
    killed(moment, name, ["train", str(tiny), "--out", str(out), *OPTIONS])
    capsys.readouterr()
    begun = (out / "config.json").exists()
    assert begun == ((moment, name) != ("before", "config.json"))
    assert (temporary_files(out) != []) == (moment == "before")
    if begun:
        assert train(tiny, out) == 2 and "--resume" in capsys.readouterr().err
        assert main(["train", "--resume", str(out)]) == 0
    else:
        assert main(["train", "--resume", str(out)]) == 2
        assert "stopped before it began; start it again" in capsys.readouterr().err
        assert train(tiny, out) == 0
    assert temporary_files(out) == []
    assert {path.name for path in out.rglob("*")} == {path.name for path in trained.rglob("*")}
    for name in ("metrics.jsonl", "result.json", "model.safetensors", "pairs.parquet"):
        assert (out / name).read_bytes() == (trained / name).read_bytes(), name


AUDIT = ["--epochs", "1", "--width", "8", "--folds", "2", "--bank", "16", "--batch-size", "16", "--threads", "1"]


@pytest.fixture(scope="module")
def audited(tiny, tmp_path_factory):
    out = tmp_path_factory.mktemp("audits") / "whole"
    assert main(["audit", str(tiny), "--out", str(out), "--quiet", *AUDIT]) == 0
    return out


@pytest.mark.parametrize("name", ["audit.json", "crossfit.json", "config.json", "fold0.safetensors", "pairs.parquet"])
def test_a_killed_audit_goes_on_and_leaves_no_temporary_file(tiny, audited, tmp_path, name):
    out = tmp_path / "audit"
    command = ["audit", str(tiny), "--out", str(out), "--quiet", *AUDIT]
    killed("before", name, command)
    assert temporary_files(out) != []
    assert main(command) == 0
    assert temporary_files(out) == []
    assert {path.name for path in out.rglob("*")} == {path.name for path in audited.rglob("*")}
    assert (out / "pairs.parquet").read_bytes() == (audited / "pairs.parquet").read_bytes()
    assert json.loads((out / "summary.json").read_text())["pairs"] == 96
