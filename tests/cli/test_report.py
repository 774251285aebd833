"""`truepair report`: what it prints, where it writes, and what it refuses."""

import argparse
import json
import subprocess
import sys

import pytest
from pyarrow import parquet

import truepair
from truepair.cli.report import add_report, names_of
from truepair.engines.config import GlobalConfig
from truepair.errors import InputError, RunFolderError
from truepair.training.setup import Setup


def report(*arguments):
    parser = argparse.ArgumentParser()
    add_report(parser.add_subparsers())
    options = parser.parse_args(["report", *map(str, arguments)])
    return options.command(options)


@pytest.fixture(scope="module")
def root(tiny, tmp_path_factory):
    """Runs of two noise rates, and one of which the truth is unknown."""
    root, clean = tmp_path_factory.mktemp("runs"), truepair.load(tiny)
    for name, pairs in {
        "a/run": truepair.inject_noise(clean, 0.2, seed=0),
        "b/run": truepair.inject_noise(clean, 0.5, seed=0),
        "unknown": clean,
    }.items():
        truepair.fit(
            pairs, method="infonce", out=root / name, setup=Setup(model=GlobalConfig(width=16, word_width=8)),
            epochs=2, batch_size=16, minimum_count=1,
        )  # fmt: skip
    return root


@pytest.fixture
def home(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_one_run_is_a_table_here_and_figures_in_its_folder(root, home, capsys):
    report(root / "a" / "run")
    printed = capsys.readouterr().out.splitlines()
    assert printed[0].startswith("run: Method infonce, 96 pairs, ")
    divisions = parquet.read_table(root / "a" / "run" / "pairs.parquet")["division"].to_pylist()
    assert printed[1].split()[:2] == ["epoch", "clean"]
    assert printed[3].split()[:2] == ["2", str(divisions.count("clean"))]
    assert "AUROC" in printed[1] and "division accuracy" in printed[1]
    assert [line.split()[0] for line in printed[2:4]] == ["1", "2"]
    assert len({len(line) for line in printed[1:4]}) == 1
    assert str(root / "a" / "run" / "report") in printed[4]
    assert (root / "a" / "run" / "report" / "belief_by_epoch.png").stat().st_size > 1000
    assert not list(home.iterdir())


def test_without_the_truth_the_table_is_quiet(root, home, capsys):
    report(root / "unknown", "--out", "there")
    printed = capsys.readouterr().out
    assert "the truth is unknown" in printed
    assert printed.splitlines()[1].split() == ["epoch", "clean", "hard", "noisy"]
    assert not (root / "unknown" / "report").exists()
    assert {"report.html", "report.json", "parts_by_epoch.png"} <= {path.name for path in (home / "there").iterdir()}


def test_several_runs_are_compared(root, home, capsys):
    report(root / "a" / "run", root / "b" / "run", "--out", "there")
    printed = capsys.readouterr().out
    assert "a/run: Method" in printed and "b/run: Method" in printed
    assert "Comparison: there/belief_by_epoch.png" in printed
    assert {path.name for path in (home / "there").iterdir()} == {"a-run", "b-run", "belief_by_epoch.png"}
    assert (home / "there" / "a-run" / "report.json").exists()


def test_several_runs_without_a_folder_keep_their_own(root, home, capsys):
    report(root / "b" / "run", root / "unknown")
    assert "Comparison: report/belief_by_epoch.png" in capsys.readouterr().out
    assert {path.name for path in home.iterdir()} == {"report"}
    assert (root / "b" / "run" / "report" / "report.html").exists()
    assert (root / "unknown" / "report" / "report.html").exists()


def test_no_comparison_where_no_run_knows_the_truth(root, home, tiny, capsys):
    truepair.fit(
        truepair.load(tiny), method="infonce", out=home / "other", epochs=1, batch_size=16, minimum_count=1,
        setup=Setup(model=GlobalConfig(width=16, word_width=8)),
    )  # fmt: skip
    report(root / "unknown", "other", "--out", "there")
    assert "Comparison: none, since the truth is unknown in every run" in capsys.readouterr().out


def test_a_report_does_not_stand_in_the_way_of_a_resumption(tiny, home, capsys):
    from truepair.training.run_folder import RunFolder

    pairs = truepair.inject_noise(truepair.load(tiny), 0.4, seed=0)
    options = {
        "method": "crcl", "out": home / "run", "setup": Setup(model=GlobalConfig(width=16, word_width=8)),
        "epochs": 2, "batch_size": 16, "minimum_count": 1,
    }  # fmt: skip
    truepair.fit(pairs, **options)
    folder = RunFolder(home / "run")
    folder.result.unlink()
    folder.pairs.unlink()
    report("run")
    assert "The run is not finished" in capsys.readouterr().out
    truepair.fit(pairs, resume=True, **options)
    assert folder.finished


def test_names_are_as_long_as_they_must_be(home):
    paths = [home / name for name in ("x/a/run", "x/b/run", "x/other")]
    assert names_of(paths) == ["a/run", "b/run", "other"]
    with pytest.raises(InputError, match="given twice"):
        names_of([home / "x", home / "y", home / "x" / ".." / "x"])


def test_what_is_no_run_is_refused_before_anything_is_written(root, home):
    (home / "empty").mkdir()
    with pytest.raises(RunFolderError, match="not a run folder"):
        report(root / "a" / "run", "empty", "--out", "there")
    assert not (home / "there").exists()


def test_the_command_is_known_without_loading_anything_heavy():
    code = (
        "import sys, truepair.cli.report; "
        "sys.exit(any(name in sys.modules for name in ('torch', 'matplotlib', 'numpy', 'pyarrow')))"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize("name", ["report.html", "notes.txt"])
def test_a_folder_of_the_user_is_left_alone(root, home, name):
    (home / "mine").mkdir()
    (home / "mine" / name).write_text("mine")
    with pytest.raises(InputError, match=rf"mine holds other things \({name}\); nothing was changed"):
        report(root / "a" / "run", "--out", home / "mine")
    assert [path.read_text() for path in (home / "mine").iterdir()] == ["mine"]


def test_a_report_is_written_anew(root, home):
    for _ in range(2):
        report(root / "a" / "run", "--out", home / "own")
        report(root / "a" / "run", root / "b" / "run", "--out", home / "two")
        (home / "own" / "report.json").write_text("{}")
    report(root / "a" / "run", "--out", home / "own")
    assert json.loads((home / "own" / "report.json").read_text()) != {}
    report(root / "a" / "run", root / "unknown", "--out", home / "two")
    assert {"a-run", "unknown"} <= {path.name for path in (home / "two").iterdir()}


def test_several_reports_do_not_go_to_a_folder_of_the_user(root, home):
    (home / "mine" / "photos").mkdir(parents=True)
    with pytest.raises(InputError, match=r"mine holds other things \(photos\)"):
        report(root / "a" / "run", root / "b" / "run", "--out", home / "mine")
    assert [path.name for path in (home / "mine").iterdir()] == ["photos"]
