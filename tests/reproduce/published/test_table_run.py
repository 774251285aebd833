"""A table of a paper is run, shown beside what is printed, and its failures are told."""

import json
import re

import pytest

from tests.conftest import write_tiny_precomp
from truepair.cli.main import main
from truepair.errors import DivergedError, InputError
from truepair.reproduce.published import configurations, data_sets
from truepair.reproduce.published.data_sets import DataSet, find_sources

QUICK = "--width 8 --word-width 8 --batch-size 16 --minimum-count 1 --epochs 1"


def in_process(*words):
    assert main(words) == 0
    return ""


@pytest.fixture
def quick(monkeypatch, tmp_path):
    """Tiny data in the place of Flickr30K, and quick networks in that of CRCL's."""
    folder = write_tiny_precomp(tmp_path / "f30k_precomp")
    splits = {"train": (48, 96), "dev": (16, 32), "test": (16, 32)}
    score = {"f30k": "--split test"}
    tiny = DataSet(name="f30k", folder="f30k_precomp", layout="precomp", splits=splits, score=score, where="")
    monkeypatch.setattr(data_sets, "read_data_sets", lambda: {"f30k": tiny})
    for module in ("command", "runs"):
        monkeypatch.setattr(f"truepair.reproduce.published.{module}.read_data_sets", lambda: {"f30k": tiny})
    for module in ("cells", "published.runs"):  # in this process: a new one would import torch once more
        monkeypatch.setattr(f"truepair.reproduce.{module}.truepair", in_process)
    spec = configurations._spec()
    networks = [f"--method infonce {QUICK}", f"--method triplet {QUICK}"]
    monkeypatch.setattr(configurations, "_spec", lambda: {**spec, "ours": {"CRCL": networks}})
    return folder


def test_a_table_is_run_once_and_shown_beside_what_is_printed(quick, tmp_path, capsys):
    out = tmp_path / "out"
    words = ["reproduce", "crcl-1", "--data", str(quick), "--rows", "CRCL", "--noise", "0.4", "--out", str(out)]
    assert main(words) == 0
    (record,) = map(json.loads, (out / "crcl-1.jsonl").read_text().splitlines())
    assert record["name"] == "f30k-0.4-crcl-seed0" and len(record["runs"]) == 2
    assert record["realised_noise"] == pytest.approx(0.4, abs=0.1)
    results = [json.loads((out / "runs" / run / "result.json").read_text()) for run in record["runs"]]
    alone = [result["test"]["rsum"] for result in results]
    assert record["members"] == [{"model": "global", "rsum": value} for value in alone]
    rsum = record["figures"]["rsum"]
    assert rsum == pytest.approx(sum(value for name, value in record["figures"].items() if name != "rsum"))
    shown = capsys.readouterr().out
    assert f"{rsum:.1f}" in shown and f"{rsum - 505.2:.1f}" in shown and "505.2" in shown and "≠" in shown
    assert "| 505.2 |" in (out / "crcl-1.md").read_text()
    said = f"CRCL, f30k, 0.4: the networks alone, rSum: global (1) {alone[0]:.1f}, global (2) {alone[1]:.1f}"
    assert said in shown and said in (out / "crcl-1.md").read_text()
    stamp = (out / "crcl-1.jsonl").stat().st_mtime_ns
    assert main(words) == 0 and (out / "crcl-1.jsonl").stat().st_mtime_ns == stamp
    # Another seed is of the same row; with other options it has no mean with this one.
    second = {**record, "name": "f30k-0.4-crcl-seed1", "cell": {**record["cell"], "seed": 1}}
    second["command"] = record["command"].replace("--seed 0", "--seed 1")
    for options, exit_code in (("", 0), (" --noise-index f30k_precomp_0.4-0123.npy", 2)):
        of_seed = {**second, "command": second["command"] + options}
        (out / "crcl-1.jsonl").write_text("".join(json.dumps(each) + "\n" for each in (record, of_seed)))
        capsys.readouterr()
        assert main(words) == exit_code
    assert "f30k-0.4-crcl-seed1 (truepair train" in (said := capsys.readouterr().err) and "they have no mean" in said
    # Another version's run is marked; a record of other options is refused.
    (out / "crcl-1.jsonl").write_text(json.dumps({**record, "truepair": "0.0"}) + "\n")
    capsys.readouterr()
    assert main(words) == 0 and "° run with truepair 0.0; this is" in capsys.readouterr().out
    (out / "crcl-1.jsonl").write_text(json.dumps({**record, "command": "x"}) + "\n")
    (out / "crcl-1.md").unlink()
    assert main(words) == 2 and "is of another command" in capsys.readouterr().err
    assert not (out / "crcl-1.md").exists()


def test_a_run_that_diverged_is_told_and_a_row_that_fails_keeps_the_others(quick, tmp_path, monkeypatch, capsys):
    out, spec = tmp_path / "out", configurations._spec()
    rows = {"CRCL": [f"--method infonce {QUICK}"], "NCR": [f"--method infonce {QUICK} --learning-rate 1e30"]}
    monkeypatch.setattr(configurations, "_spec", lambda: {**spec, "ours": rows | {"DECL": [f"--method decl {QUICK}"]}})

    def in_process_or_diverged(*words):
        if (code := main(words)) != 0:
            said = capsys.readouterr().err
            raise (DivergedError if code == 3 else InputError)(said[said.rindex("truepair: error") :])
        return ""

    for module in ("cells", "published.runs"):
        monkeypatch.setattr(f"truepair.reproduce.{module}.truepair", in_process_or_diverged)
    words = ["reproduce", "crcl-1", "--data", str(quick), "--noise", "0.4", "--out", str(out)]
    assert main([*words, "--rows", "CRCL", "NCR"]) == 0
    shown = capsys.readouterr().out
    assert re.search(r"^NCR +f30k +0\.4 +0 \+ 1 diverged +– +75\.3 +– ", shown, re.M)
    assert "f30k-0.4-ncr-seed0 diverged: training diverged in epoch 1" in shown
    page, stamp = (out / "crcl-1.md").read_text(), (out / "crcl-1.jsonl").stat().st_mtime_ns
    assert "| NCR | f30k | 0.4 | 0 + 1 diverged | – | 75.3 | – |" in page and "| CRCL | f30k | 0.4 | 1 |" in page
    assert str(tmp_path) not in (out / "crcl-1.jsonl").read_text() + page
    assert main([*words, "--rows", "CRCL", "NCR"]) == 0 and (out / "crcl-1.jsonl").stat().st_mtime_ns == stamp
    # A row that fails does not keep the others from being shown.
    (out / "crcl-1.md").unlink()
    assert main([*words, "--rows", "CRCL", "DECL"]) == 2
    said = capsys.readouterr().err
    assert "f30k-0.4-decl-seed0 failed: " in said and f"The rows that ran are in {out}/crcl-1.md" in said
    assert (out / "crcl-1.md").read_text() == page


def test_sources_are_known_by_name_or_by_count(layouts, tmp_path):
    assert set(find_sources([layouts])) == {"f30k", "coco", "cc152k"}
    other = tmp_path / "features"
    other.symlink_to(layouts / "coco_precomp")
    assert find_sources([other]) == {"coco": other}
    with pytest.raises(InputError, match="are both coco; give one of them"):
        find_sources([layouts, other])
