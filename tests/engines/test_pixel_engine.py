"""An engine that reads pixels and bytes: trained, resumed, evaluated and audited without a change of the package."""

import pytest

import truepair
from tests.conftest import drawings
from tests.engines.pixel_engine import PixelConfig
from tests.training.test_resume import assert_same_run, stopped_after
from truepair.audit import AuditOptions
from truepair.cli.main import main
from truepair.engines import ENGINES
from truepair.errors import InputError
from truepair.training.fit import open_run
from truepair.training.setup import Setup

OPTIONS = {"epochs": 8, "batch_size": 32, "learning_rate": 2e-2, "seed": 1}


@pytest.fixture(scope="module")
def fewer():
    with drawings(40):
        yield


@pytest.fixture(scope="module")
def splits(fewer):
    clean = truepair.load("scenes:120")
    dev = truepair.load("scenes:120", "dev")
    return truepair.inject_noise(clean, 0.2, seed=0), dev, clean


def fit(splits, out, method="infonce", **more):
    noisy, dev, _ = splits
    return truepair.fit(
        noisy, method=method, dev=dev, out=out, setup=Setup(model=PixelConfig(width=32)), **{**OPTIONS, **more}
    )


@pytest.fixture(scope="module")
def run(splits, tmp_path_factory):
    return fit(splits, tmp_path_factory.mktemp("pixels") / "run")


def test_it_learns_by_infonce_and_by_crcl(splits, run, tmp_path):
    """Retrieval among the images it was trained on, by their own captions, gets clearly better than by chance."""
    untrained = fit(splits, tmp_path / "none", epochs=1, learning_rate=1e-9)
    refined = fit(splits, tmp_path / "crcl", truepair.build_method("crcl", {"pieces": (3,)}))
    chance, *found = (truepair.evaluate(each.model, splits[2])["rsum"] for each in (untrained, run, refined))
    assert min(found) > 1.5 * chance
    assert not (run.path / "vocabulary.json").exists()


def test_it_is_evaluated_as_it_was_scored(splits, run):
    assert truepair.evaluate(run.model, splits[1]) == run.result["dev"]


def test_it_resumes_exactly(splits, tmp_path, monkeypatch):
    """Cut off in the first of two epochs of 19 batches, and in the second."""
    whole = fit(splits, tmp_path / "whole", epochs=2)
    for batches in (1, 25):
        with stopped_after(monkeypatch, batches):
            fit(splits, tmp_path / f"cut-{batches}", epochs=2)
        resumed = fit(splits, tmp_path / f"cut-{batches}", epochs=2, resume=True)
        assert_same_run(resumed.path, whole.path, texts=("metrics.jsonl", "result.json"))


def test_in_the_table_it_is_opened_by_name_and_audited(splits, run, tmp_path, monkeypatch):
    with pytest.raises(InputError, match="engine is 'pixels'; expected one of global"):
        _ = open_run(run.path).model
    monkeypatch.setitem(ENGINES, "pixels", "tests.engines.pixel_engine:PixelConfig")
    assert truepair.evaluate(open_run(run.path).model, splits[1]) == run.result["dev"]
    found = truepair.audit(
        truepair.load("scenes:120", "test"),
        tmp_path / "audit",
        run=run.path,
        options=AuditOptions(bank=32),
        progress=False,
    )
    assert found.scored_by == "run"
    assert len(found.similarity) == len(truepair.load("scenes:120", "test"))


def test_in_the_table_the_command_line_knows_it(fewer, tmp_path, monkeypatch, capsys):
    monkeypatch.setitem(ENGINES, "pixels", "tests.engines.pixel_engine:PixelConfig")
    command = ["train", "scenes:60", "--model", "pixels", "--width", "8", "--method", "infonce", "--epochs", "1"]
    assert main([*command, "--out", str(tmp_path / "run"), "--quiet"]) == 0
    assert main(["evaluate", str(tmp_path / "run"), "scenes:60"]) == 0
    assert "R@1" in capsys.readouterr().out


def test_data_without_pixels_are_refused(tiny, tmp_path):
    with pytest.raises(InputError, match="its images have no pixels"):
        truepair.fit(truepair.load(tiny), out=tmp_path / "run", setup=Setup(model=PixelConfig()))
