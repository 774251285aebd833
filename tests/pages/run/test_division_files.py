"""The files that the division report writes."""

import json
from dataclasses import asdict, replace

import numpy as np
import pyarrow
import pytest
from pyarrow import parquet

import truepair
from tests.pages.run.division_runs import METHODS, QUICK, SMALL, check_picture, rows_of
from truepair.data.config import DataConfig
from truepair.errors import TruepairError
from truepair.pages.kit.canvas import COLUMN, DPI
from truepair.pages.run.division import read_report
from truepair.pages.run.write import write_report

pytestmark = pytest.mark.usefixtures("few_drawings")


@pytest.mark.parametrize("name", METHODS)
def test_every_method_gets_its_figures(runs, name, tmp_path):
    report = read_report(runs(name))
    written = write_report(report, tmp_path / "report")
    pictures = {path.name for path in written if path.suffix == ".png"}
    assert pictures == {
        "parts_by_epoch.png", "detection_by_epoch.png", "belief_by_epoch.png",
        *(f"indicator_{indicator.field}.png" for indicator in report.indicators),
    }  # fmt: skip
    assert {path.name for path in (tmp_path / "report").iterdir()} == pictures | {"report.html", "report.json"}
    for picture in pictures:
        check_picture(tmp_path / "report" / picture, (round(COLUMN[0] * DPI), round(COLUMN[1] * DPI)))
    page = (tmp_path / "report" / "report.html").read_text()
    for picture in pictures:
        assert f"<code>{picture}</code>" in page
    assert page.count("data:image/png") == len(pictures)
    kept = json.loads((tmp_path / "report" / "report.json").read_text())
    assert sorted(kept["figures"]) == sorted(pictures)
    assert kept["epochs"] == [asdict(epoch) for epoch in report.epochs]
    assert kept["mismatch_rate"] == pytest.approx(np.mean([row["mismatched"] for row in rows_of(runs(name))]))


def test_writing_again_replaces_only_its_own_files(runs, tmp_path):
    out = tmp_path / "report"
    write_report(read_report(runs("ugncl")), out)
    (out / "indicator_mine.png").write_text("mine")
    (out / "notes.txt").write_text("mine")
    before = json.loads((out / "report.json").read_text())
    (tmp_path / "examples.png").write_text("mine")
    (out / "report.json").write_text(json.dumps({**before, "figures": [*before["figures"], "../examples.png", 3]}))
    written = write_report(read_report(runs("crcl")), out)
    assert {path.name for path in out.iterdir()} == {path.name for path in written} | {
        "indicator_mine.png", "notes.txt", *before["figures"],
    }, "a damaged list of figures is not trusted"  # fmt: skip
    (out / "report.json").write_text(json.dumps({**before, "figures": [*before["figures"], "../examples.png"]}))
    written = write_report(read_report(runs("crcl")), out)
    assert {path.name for path in out.iterdir()} == {path.name for path in written} | {
        "indicator_mine.png", "notes.txt",
    }  # fmt: skip
    assert (tmp_path / "examples.png").read_text() == "mine"
    contents = {path: path.read_bytes() for path in written}
    write_report(read_report(runs("crcl")), out)
    assert contents == {path: path.read_bytes() for path in written}


def test_a_report_needs_a_folder(runs, tmp_path):
    (tmp_path / "file").write_text("mine")
    with pytest.raises(TruepairError, match="file cannot be made a folder.*--out"):
        write_report(read_report(runs("crcl")), tmp_path / "file")


def test_examples_show_the_pictures_of_their_images(tmp_path):
    pairs = truepair.inject_noise(truepair.load("scenes:12"), 0.5, seed=0)
    setup = replace(SMALL, data=asdict(DataConfig("scenes:12", noise=0.5)))
    run = truepair.fit(pairs, method="infonce", out=tmp_path / "run", setup=setup, **{**QUICK, "epochs": 1})
    report = read_report(run.path)
    for example in report.examples:
        assert (example.picture == pairs.images.pictures[pairs.image_index[int(example.pair_id)]]).all()
    assert "examples.png" in {path.name for path in write_report(report, tmp_path / "report")}
    check_picture(tmp_path / "report" / "examples.png")
    assert all(example.picture is None for example in read_report(run.path, pictures=False).examples)
    columns = parquet.read_table(run.path / "pairs.parquet").to_pydict()
    other = [f"of-another-day-{row}" for row in columns["image"]]
    parquet.write_table(pyarrow.table({**columns, "image": other}), run.path / "pairs.parquet")
    assert all(example.picture is None for example in read_report(run.path).examples)
    parquet.write_table(pyarrow.table(columns), run.path / "pairs.parquet")
    config = json.loads((run.path / "config.json").read_text())
    config["data"]["source"] = "scenes:4"  # fewer drawings than the run saw
    (run.path / "config.json").write_text(json.dumps(config))
    known = {f"scene-train-{number:05}" for number in range(4)}
    assert {e.image for e in read_report(run.path).examples if e.picture is not None} <= known
