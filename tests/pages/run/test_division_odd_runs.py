"""What the division report says of runs that are odd or damaged, and of several runs."""

import json
import shutil
from dataclasses import replace

import numpy as np
import pytest

import truepair
from tests.pages.run.division_runs import QUICK, SMALL, check_picture, hand_written, record, table
from truepair.errors import RunFolderError
from truepair.methods.pair_field import PairField
from truepair.pages.kit.canvas import LETTERS, SIGN, shortened
from truepair.pages.run.division import read_report
from truepair.pages.run.figures import belief_by_epoch, indicator_histogram, parts_by_epoch
from truepair.pages.run.indicators import Components, Indicator
from truepair.pages.run.write import epoch_rows, facts, run_labels, summary, write_comparison, write_report
from truepair.training.setup import Setup

pytestmark = pytest.mark.usefixtures("few_drawings")


def test_without_the_truth_nothing_is_said_about_it(noisy, tmp_path):
    run = truepair.fit(noisy.without_truth(), method="gsc", out=tmp_path / "run", setup=SMALL, **QUICK)
    report = read_report(run.path)
    assert report.mismatch_rate is None
    assert epoch_rows(report.epochs)[0] == ["epoch", "clean", "hard", "noisy"]
    written = {path.name for path in write_report(report, tmp_path / "report")}
    assert "parts_by_epoch.png" in written and "indicator_seen_structure.png" in written
    assert not {"belief_by_epoch.png", "detection_by_epoch.png"} & written
    page = (tmp_path / "report" / "report.html").read_text()
    assert "the truth is unknown" in page
    assert '<th scope="col">truth' not in page and "AUROC" not in page
    kept = json.loads((tmp_path / "report" / "report.json").read_text())
    assert "matched" not in kept["indicators"][0] and kept["indicators"][0]["all"]["count"] == len(noisy)


def test_one_epoch_is_enough(noisy, tmp_path):
    run = truepair.fit(noisy, method="gsc", out=tmp_path / "run", setup=SMALL, **{**QUICK, "epochs": 1})
    report = read_report(run.path)
    assert "; 1 epoch." in summary(report)
    for path in write_report(report, tmp_path / "report"):
        if path.suffix == ".png":
            check_picture(path)


def test_an_unfinished_run_has_its_epochs_and_says_what_is_missing(runs, tmp_path):
    lines = (runs("crcl") / "metrics.jsonl").read_text()
    run = hand_written(tmp_path / "run", [], method="crcl")
    (run / "metrics.jsonl").write_text(lines + lines[:50])  # a line is being written just now
    report = read_report(run)
    assert report.epochs == read_report(runs("crcl")).epochs
    assert not report.finished and not report.indicators and not report.examples
    assert report.mismatch_rate == pytest.approx(read_report(runs("crcl")).mismatch_rate)
    written = {path.name for path in write_report(report, run / "report")}
    assert written == {
        "parts_by_epoch.png", "detection_by_epoch.png", "belief_by_epoch.png", "report.html", "report.json",
    }  # fmt: skip
    assert "not finished: distributions and examples come with its end" in (run / "report" / "report.html").read_text()
    assert "not finished" not in summary(read_report(runs("crcl")))


def test_the_estimated_share_is_shown_where_the_method_makes_one(runs, tmp_path):
    run = tmp_path / "run"
    shutil.copytree(runs("truepair"), run)
    result = json.loads((run / "result.json").read_text())
    assert "mismatch_share" not in result  # 24 images are too few for linear models
    plain = read_report(run)
    assert "linear models" not in summary(plain) and facts(plain, [])["mismatch_share"] is None
    estimate = {"share": 0.412, "low": 0.3, "high": 0.55, "error": 0.01, "quantile": 0.4}
    (run / "result.json").write_text(json.dumps(result | {"mismatch_share": estimate}))
    report = read_report(run)
    told = "By the estimate of linear models that have not seen the pairs, 41.2 % of the pairs are mismatched"
    assert f"{told} (95 % interval 30–55 %)" in summary(report)
    assert facts(report, [])["mismatch_share"] == estimate
    by_network = {"mismatch_share": estimate, "mismatch_share_by": "the network of the first stage"}
    (run / "result.json").write_text(json.dumps(result | by_network))
    report = read_report(run)
    assert "By the estimate of the network of the first stage, 41.2 %" in summary(report)
    assert by_network.items() <= facts(report, []).items()
    (run / "result.json").write_text(json.dumps(result | {"mismatch_share": {"share": 0.4}}))
    with pytest.raises(RunFolderError, match=r"result\.json: mismatch_share is no estimate"):
        read_report(run)


def test_damaged_runs_are_refused_by_file_and_line(tmp_path):
    with pytest.raises(RunFolderError, match="not a run folder"):
        read_report(tmp_path)
    empty = hand_written(tmp_path / "empty", [])
    with pytest.raises(RunFolderError, match="no epoch is finished yet"):
        read_report(empty)
    torn = hand_written(tmp_path / "torn", [record(1), record(2)])
    (torn / "metrics.jsonl").write_text((torn / "metrics.jsonl").read_text()[5:])
    with pytest.raises(RunFolderError, match="metrics.jsonl, line 1"):
        read_report(torn)
    (torn / "metrics.jsonl").write_text('{"epoch": 1}\n')
    with pytest.raises(RunFolderError, match="line 1.*stage"):
        read_report(torn)
    broken = hand_written(tmp_path / "broken", [record()])
    (broken / "pairs.parquet").write_bytes(b"PAR1 and then nothing")
    with pytest.raises(RunFolderError, match="pairs.parquet cannot be read as Parquet"):
        read_report(broken)
    other = hand_written(tmp_path / "other", [record()], {"a": [1]})
    with pytest.raises(RunFolderError, match="lacks the column pair_id"):
        read_report(other)
    nan = hand_written(tmp_path / "nan", [record()], table([0.1, 0.9], memory_label=[0.1, float("nan")]))
    with pytest.raises(RunFolderError, match="column memory_label holds a value that is not finite"):
        read_report(nan)
    nameless = hand_written(tmp_path / "nameless", [record()])
    (nameless / "config.json").write_text("{}")
    with pytest.raises(RunFolderError, match="names no method"):
        read_report(nameless)


def test_a_run_of_a_version_without_divisions_is_read_too(tmp_path):
    pairs = table([0.1, 0.9, 0.8], mismatched=[True, False, False])
    for name in ("division", "row", "image", "p_match", "flagged"):
        del pairs[name]
    pairs |= {"pair_id": [0, 1, 2], "image_id": ["a", "b", "c"], "belief": [0.1, 0.9, 0.8]}
    pairs["taken_as_matched"] = [False, True, True]
    old = {"epoch": 1, "stage": 0, "loss": 1.0, "detection": {"auroc": 1.0, "division_accuracy": 1.0}}
    report = read_report(hand_written(tmp_path / "run", [old], pairs))
    assert epoch_rows(report.epochs) == [["epoch", "division accuracy", "AUROC"], ["1", "100.0 %", "1.000"]]
    assert [(example.part, example.pair_id) for example in report.examples] == [
        ("clean", "2"),
        ("clean", "1"),
        ("noisy", "0"),
    ]
    names = {path.name for path in write_report(report, tmp_path / "report")}
    assert names == {"detection_by_epoch.png", "indicator_belief.png", "report.html", "report.json"}


def test_empty_parts_are_dashes_and_known_columns_stay():
    full = {"clean": 3, "hard": 0, "noisy": 1, "clean_matched": 1.0, "hard_matched": None, "noisy_matched": 0.0}
    from truepair.pages.run.epochs import epoch_of

    rows = epoch_rows([epoch_of(record(1, **full)), epoch_of(record(2, **{**full, "clean_matched": None, "clean": 0}))])
    assert rows[0] == ["epoch", "clean", "matched", "hard", "noisy", "matched"]
    assert rows[1:] == [["1", "3", "100.0 %", "0", "1", "0.0 %"], ["2", "0", "–", "0", "1", "0.0 %"]]


@pytest.mark.parametrize("value", [0.0, 1.0, 0.37, -3.0, 1e-6, 5000.0])
@pytest.mark.parametrize("unit", [True, False])
def test_values_that_are_all_equal_are_one_bar(value, unit):
    indicator = Indicator("x", PairField("value", unit=unit), None, np.full(7, value, dtype=np.float32))
    counts = np.histogram(indicator.values, indicator.edges)[0]
    assert sorted(counts)[-1] == counts.sum() == 7
    assert np.diff(indicator.edges).min() > 0
    figure = indicator_histogram(indicator, None)
    assert figure.axes[0].get_xlim() == pytest.approx((indicator.edges[0], indicator.edges[-1]))


def test_a_histogram_adds_up_to_all_pairs_and_lies_on_the_scale_of_the_components():
    rng = np.random.default_rng(0)
    values = np.concatenate([rng.normal(0.3, 0.05, 40_000), rng.normal(0.7, 0.05, 60_000)])
    mismatched = np.arange(100_000) < 40_000
    components = Components((0.3, 0.7), (0.05, 0.05), (0.4, 0.6), True)
    indicator = Indicator("s", PairField("s", unit=False), None, values, components=components)
    axes = indicator_histogram(indicator, mismatched).axes[0]
    bars = [patch.get_data().values for patch in axes.patches[::2]]
    assert [bar.sum() for bar in bars] == pytest.approx([60, 40])
    for bar, line in zip(reversed(bars), axes.lines, strict=True):
        assert bar.max() == pytest.approx(line.get_ydata().max(), rel=0.05)


def test_captions_and_names_are_shown_as_they_are(tmp_path):
    wild = "a $x^{$ | `b` <script>alert(1)</script> *c* [d](e)\nnew"
    pictures = {"source": "scenes:4"}
    images = truepair.load("scenes:4").images
    pairs = table([0.1, 0.9], image=list(images.ids[:2]), caption=[wild, "漢字 of no known font"])
    run = hand_written(tmp_path / "_run_$x^{$", [record(belief_matched_mean=0.5)], pairs, data=pictures)
    report = read_report(run)
    assert "examples.png" in {path.name for path in write_report(report, tmp_path / "report")}
    check_picture(tmp_path / "report" / "examples.png")
    page = (tmp_path / "report" / "report.html").read_text()
    assert "<script>" not in page
    assert "a $x^{$ | `b` &lt;script&gt;alert(1)&lt;/script&gt; *c* [d](e)" in page
    write_comparison([report, replace(report, method="other")], tmp_path / "two")
    figure = belief_by_epoch([report, replace(report, name="$x^{$" + "x" * 99)])
    labels = [text.get_text() for text in figure.legends[0].get_texts()]
    assert labels[0] == " _run_$x^{$" and len(labels[1]) <= LETTERS - SIGN
    assert shortened("x" * 44) == "x" * 44


def test_runs_at_different_noise_are_compared_by_it(noisy, runs, tiny, tmp_path):
    less = truepair.inject_noise(truepair.load(tiny), 0.2, seed=1)
    other = truepair.fit(less, method="crcl", out=tmp_path / "less", setup=SMALL, **QUICK)
    reports = [read_report(runs("crcl")), read_report(other.path)]
    rates = [f"{100 * pairs.mismatch_rate:.0f} % noise" for pairs in (noisy, less)]
    assert run_labels(reports) == rates
    assert run_labels([reports[0], reports[0]]) == [f"crcl ({rates[0]})"] * 2
    figure = belief_by_epoch(reports, run_labels(reports))
    lines = figure.axes[0].lines
    curves = [list(line.get_ydata()) for line in lines if len(line.get_ydata()) == len(reports[0].epochs)]
    assert curves[:4] == [
        [getattr(epoch, f"belief_{truth}_mean") for epoch in report.epochs]
        for report in reports
        for truth in ("matched", "mismatched")
    ]
    assert [text.get_text() for text in figure.legends[0].get_texts()][:2] == rates
    check_picture(write_comparison(reports, tmp_path / "all"))
    unknown = [replace(report, epochs=(replace(report.epochs[0], belief_matched_mean=None,
               belief_mismatched_mean=None),)) for report in reports]  # fmt: skip
    assert write_comparison(unknown, tmp_path / "none") is None
    assert not (tmp_path / "none").exists()


def test_bars_are_the_parts_matched_pairs_first(tmp_path):
    sizes = {"clean": 4, "hard": 1, "noisy": 5, "clean_matched": 0.75, "hard_matched": 0.0, "noisy_matched": 0.2}
    other = {**sizes, "clean": 0, "noisy": 9, "clean_matched": None}
    run = hand_written(tmp_path / "run", [record(1, **sizes), record(2, **other)])
    bars = [patch.get_height() for patch in parts_by_epoch(read_report(run)).axes[0].patches]
    first, second = bars[0::2], bars[1::2]  # matched and mismatched of clean, hard and noisy, in percent of 10 pairs
    assert first == pytest.approx([30, 10, 0, 10, 10, 40])
    assert second == pytest.approx([0, 0, 0, 10, 18, 72])
    assert read_report(run).epochs[0].mismatch_rate == pytest.approx(0.6)


def test_a_fresh_network_is_marked(runs):
    figure = belief_by_epoch([read_report(runs("crcl"))])
    labels = [text.get_text() for text in figure.legends[0].get_texts()]
    assert labels == ["matched", "mismatched", "fresh network"]
    stages = [line["stage"] for line in map(json.loads, (runs("crcl") / "metrics.jsonl").read_text().splitlines())]
    start = stages.index(1) + 0.5
    assert [list(line.get_xdata()) for line in figure.axes[0].lines][-1] == [start, start]


def test_a_run_about_labels_is_told_as_one(tmp_path):
    from tests.methods.labelled import labelled_pairs
    from truepair.engines.config import MLPConfig

    pairs = labelled_pairs(40, wrong=0.25)
    setup = Setup(model=MLPConfig(width=8, hidden_width=8))
    truepair.fit(pairs, method="ce", out=tmp_path / "run", setup=setup, epochs=2, batch_size=16)
    report = read_report(tmp_path / "run")
    assert report.mismatch_rate == 0.25
    write_report(report, tmp_path / "report")
    page = (tmp_path / "report" / "report.html").read_text(encoding="utf-8").replace("\xa0", " ")
    assert "25.0 % of them with a wrong class label" in page
    assert "a pair is matched where its given label is right" in page
